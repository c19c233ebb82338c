/* devscope build model.mlir --shared && cc main.c -L. -lmodel -Wl,-rpath,. -o main && ./main */
#include "model.h"

#include <stdio.h>

static int fail(void) {
  fprintf(stderr, "error: %s\n", model_error());
  return 1;
}

int main(void) {
  const float x[2 * 3] = {1, 2, 3, 4, 5, 6}, w[3 * 2] = {1, 0, 0, 1, 1, 1};
  const int64_t x_sizes[2] = {2, 3};
  float *y;           /* the size of this result is known when the program runs only: it is new memory */
  int64_t y_sizes[2]; /* of so many elements */
  if (model_layer(x, x_sizes, w, 0.5f, &y, y_sizes))
    return fail();
  for (int64_t row = 0; row < y_sizes[0]; row++)
    printf("%g %g\n", y[2 * row], y[2 * row + 1]);
  model_free(y);

  float element; /* the caller's memory */
  if (model_element(x, 3, &element))
    return fail();
  printf("%g\n", element);
  if (model_element(x, 7, &element))
    printf("%s\n", model_error());
  model_close();
  return 0;
}
