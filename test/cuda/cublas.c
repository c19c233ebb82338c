/* cuBLASLt as far as the backend cublas uses it, on the host, for the emulated device: matrices stand in columns.
 * It counts what is made and not destroyed, and refuses what cuBLASLt does not promise to compute. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  R_32F = 0,
  R_64F = 1,
  R_16F = 2,
  R_16BF = 14,
  COMPUTE_64F = 70,
  OK = 0,
  INVALID_VALUE = 7,
  NOT_SUPPORTED = 15
};

typedef struct {
  int32_t compute, scale, transposes[2], epilogue;
  const void *bias;
} Desc;

typedef struct {
  int32_t type, count;
  uint64_t rows, columns;
  int64_t leading, stride;
} Layout;

int64_t cublas_live, cublas_products, cublas_last_compute, cublas_fails;

int32_t cublasLtCreate(void **handle) {
  cublas_live++;
  *handle = &cublas_live;
  return OK;
}

int32_t cublasLtDestroy(void *handle) {
  cublas_live--;
  return handle == &cublas_live ? OK : INVALID_VALUE;
}

int32_t cublasLtMatmulDescCreate(Desc **desc, int32_t compute, int32_t scale) {
  *desc = calloc(1, sizeof **desc);
  **desc = (Desc){.compute = compute, .scale = scale, .epilogue = 1};
  cublas_live++;
  return OK;
}

int32_t cublasLtMatmulDescDestroy(Desc *desc) {
  free(desc);
  cublas_live--;
  return OK;
}

int32_t cublasLtMatmulDescSetAttribute(Desc *desc, int32_t attribute, const void *value, size_t size) {
  void *fields[9] = {
      [3] = &desc->transposes[0], [4] = &desc->transposes[1], [7] = &desc->epilogue, [8] = &desc->bias};
  if (attribute < 0 || attribute > 8 || !fields[attribute] || size != (attribute == 8 ? 8 : 4))
    return INVALID_VALUE;
  memcpy(fields[attribute], value, size);
  return OK;
}

int32_t cublasLtMatrixLayoutCreate(Layout **layout, int32_t type, uint64_t rows, uint64_t columns,
                                   int64_t leading) {
  *layout = calloc(1, sizeof **layout);
  **layout = (Layout){.type = type, .count = 1, .rows = rows, .columns = columns, .leading = leading};
  cublas_live++;
  return OK;
}

int32_t cublasLtMatrixLayoutDestroy(Layout *layout) {
  free(layout);
  cublas_live--;
  return OK;
}

int32_t cublasLtMatrixLayoutSetAttribute(Layout *layout, int32_t attribute, const void *value, size_t size) {
  if (attribute == 5 && size == 4)
    memcpy(&layout->count, value, 4);
  else if (attribute == 6 && size == 8)
    memcpy(&layout->stride, value, 8);
  else
    return INVALID_VALUE;
  return OK;
}

static double get(const void *data, int64_t index, int32_t type) {
  if (type == R_64F)
    return ((const double *)data)[index];
  if (type == R_32F)
    return ((const float *)data)[index];
  if (type == R_16F)
    return (double)((const _Float16 *)data)[index];
  float number;
  uint32_t bits = (uint32_t)((const uint16_t *)data)[index] << 16;
  memcpy(&number, &bits, 4);
  return number;
}

static void set(void *data, int64_t index, int32_t type, double value) {
  if (type == R_64F) {
    ((double *)data)[index] = value;
  } else if (type == R_32F) {
    ((float *)data)[index] = (float)value;
  } else if (type == R_16F) {
    ((_Float16 *)data)[index] = (_Float16)value;
  } else {
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, 4);
    ((uint16_t *)data)[index] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
}

/* Of a factor, which may have to be transposed. */
static double at(const void *data, const Layout *layout, int transposed, int64_t n, int64_t row, int64_t column) {
  const int64_t first = transposed ? column : row, second = transposed ? row : column;
  return get(data, n * layout->stride + second * layout->leading + first, layout->type);
}

static int fits(const Layout *a, const Layout *b, const Layout *c, const int32_t *transposes, uint64_t *sum) {
  *sum = transposes[0] ? a->rows : a->columns;
  return (transposes[0] ? a->columns : a->rows) == c->rows &&
         (transposes[1] ? b->rows : b->columns) == c->columns && (transposes[1] ? b->columns : b->rows) == *sum &&
         *sum && c->rows && c->columns && a->count == c->count && b->count == c->count &&
         a->leading >= (int64_t)a->rows && b->leading >= (int64_t)b->rows && c->leading >= (int64_t)c->rows;
}

int32_t cublasLtMatmul(void *handle, const Desc *desc, const void *alpha, const void *a, const Layout *a_layout,
                       const void *b, const Layout *b_layout, const void *beta, const void *c,
                       const Layout *c_layout, void *d, const Layout *d_layout, const void *algorithm,
                       void *workspace, size_t workspace_size, void *queue) {
  uint64_t sum = 0;
  if (cublas_fails || handle != &cublas_live || !queue || algorithm || workspace || workspace_size)
    return NOT_SUPPORTED;
  if (c_layout != d_layout || !fits(a_layout, b_layout, d_layout, desc->transposes, &sum))
    return INVALID_VALUE;
  const int type = a_layout->type, is_double = type == R_64F, is_half = type == R_16F || type == R_16BF;
  if (desc->scale != (is_double ? R_64F : R_32F) || (desc->compute == COMPUTE_64F) != is_double ||
      type != b_layout->type || (d_layout->type != type && !(is_half && d_layout->type == R_32F)))
    return NOT_SUPPORTED;
  const double scale = get(alpha, 0, desc->scale), kept = get(beta, 0, desc->scale);
  for (int64_t n = 0; n < d_layout->count; n++)
    for (int64_t column = 0; column < (int64_t)d_layout->columns; column++)
      for (int64_t row = 0; row < (int64_t)d_layout->rows; row++) {
        double total = 0;
        for (int64_t k = 0; k < (int64_t)sum; k++)
          total +=
              at(a, a_layout, desc->transposes[0], n, row, k) * at(b, b_layout, desc->transposes[1], n, k, column);
        const int64_t place = n * d_layout->stride + column * d_layout->leading + row;
        total *= scale;
        if (kept != 0)
          total += kept * get(c, place, d_layout->type);
        if (desc->epilogue == 4)
          total += get(desc->bias, row, d_layout->type);
        set(d, place, d_layout->type, total);
      }
  cublas_products++;
  cublas_last_compute = desc->compute;
  return OK;
}
