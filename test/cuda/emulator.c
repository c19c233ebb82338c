/* A CUDA device that the host plays: a driver (abi.h) whose memory is the host's, and whose kernels are functions
 * of the host that `emulated_kernels.py` makes of their LLVM IR.
 *
 * The threads of a block are coroutines, which run until they have to wait for others; blocks run one after the
 * other. The order of both is chosen by a number, so that code which depends on it gives other results. All
 * accesses of kernels to memory are announced. They are checked, byte by byte:
 *   - bounds: bytes that are no one's are never touched, not even behind the end of a buffer or of shared memory;
 *   - alignment: what the instruction promises;
 *   - races: of two accesses of different threads to a byte, one of which writes, there must be a barrier between
 *     them; in one warp, bar.warp.sync is one, too; between blocks there is none. Atomic ones do not race with
 * each other. What nobody has written is NaN, or -1. What cp.async copies is there once the thread has waited for
 * it, not before. The first thing that is wrong ends the launch, and the driver fails with `emulator_report`. */
#include "abi.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { MOST_THREADS = 1024, WARP = 32, STACK = 96 << 10, SLOT = 16, POISON = 0xFF, RED_ZONE = 256 };

/* ------------------------------------------------------------------------------------------------- reports */

static char report[1024];
EXPORT const char *emulator_report(void) { return report; }

/* ------------------------------------------------------------------------------------------------- memory
 * One region, of which each byte has a record of who used it last. A record of zeros: no one's byte. */

typedef struct {
  uint32_t written, read;            /* interval of the last access, see `interval`; 1: before all launches */
  uint16_t writer, reader;           /* thread, or which threads */
  uint16_t writer_step, reader_step; /* of the warp, in the interval */
} Byte;

enum { REGION = 1ull << 33, ATOMIC = 1 << 15, OF_WARP = 1 << 14, OF_BLOCK = 1 << 13, NO_THREAD = 0xFFF };

static char *region;
static Byte *bytes_of_region;
static size_t region_end;
static int64_t pieces;

static Byte *byte_at(const void *memory) { return &bytes_of_region[(const char *)memory - region]; }

/* Makes bytes accessible, or no one's. */
static void set_accessible(void *memory, size_t size, bool accessible) {
  Byte state = accessible ? (Byte){.written = 1, .writer = NO_THREAD, .reader = NO_THREAD} : (Byte){0};
  for (Byte *byte = byte_at(memory), *end = byte + size; byte < end; byte++)
    *byte = state;
}

/* Far from where other memory is: LLVM's linker wants pieces of a program within 2 GiB of each other. */
static void *reserve(size_t size) {
  static uintptr_t next = (uintptr_t)1 << 44;
  void *memory =
      mmap((void *)next, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  next += size;
  return memory == MAP_FAILED ? NULL : memory;
}

/* Memory that nothing had before, aligned as CUDA aligns; null when there is none. */
EXPORT void *emulator_alloc(size_t size) {
  if (!region) {
    region = reserve(REGION);
    bytes_of_region = reserve(REGION * sizeof(Byte));
  }
  size_t room = (size + 2 * RED_ZONE + 255) & ~(size_t)255;
  if (!pieces)
    region_end = 0;
  if (!region || !bytes_of_region || room > REGION - region_end)
    return NULL;
  char *memory = region + region_end + RED_ZONE;
  region_end += room;
  pieces++;
  memset(memory, POISON, size);
  set_accessible(memory, size, true);
  return memory;
}

EXPORT void emulator_free(void *memory, size_t size) {
  set_accessible(memory, size, false);
  pieces--;
}

/* ------------------------------------------------------------------------------------------------- kernels */

typedef struct {
  char *memory;
  int64_t bytes;
} Shared;

/* `emulated_kernels.py` has this once more. */
typedef struct {
  const char *name;
  void (*body)(const void *const *cells);
  int64_t most_threads; /* that it was compiled for */
  int64_t shared_count;
  Shared *shared;
  Shared *dynamic; /* of the size that a launch gives; null if it uses none */
} Code;

/* --------------------------------------------------------------------------------------- threads and warps */

enum State { RUNNABLE, AT_BARRIER, AT_WARP, DONE };

typedef struct {
  char *target;
  const char *source;
  int size, used;
  int64_t group;
} Copy;

/* What the lanes of a warp do together, once all lanes of the mask are there. */
typedef struct Lane Lane;
typedef void Together(Lane *lanes[WARP], uint32_t mask, const int64_t *constants);

struct Lane {
  Together *what;
  const char *arguments; /* one every SLOT bytes */
  char *result;
  uint32_t mask;
};

typedef struct {
  ucontext_t context;
  enum State state;
  int barrier, barrier_count;
  Lane lane;
  Copy *copies;
  int copy_count, copy_room;
  int64_t groups;
} Thread;

static Thread threads[MOST_THREADS];
static char *stacks;
static ucontext_t scheduler;
static int order[MOST_THREADS];
static int thread_count, current;
static LaunchSize sizes;
static int64_t block_index[3];
static const Code *code;
static const void *const *arguments;
static bool failed;

/* Between two barriers of a block lies an interval; all intervals of all launches have numbers. */
static uint32_t interval = 1, first_of_block, first_of_launch;
static uint16_t steps[MOST_THREADS / WARP];

EXPORT int64_t emulator_order; /* chosen by the tests */
static uint64_t random_state;

static uint64_t random_number(uint64_t below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % below;
}

static int64_t thread_index(int thread, int axis) {
  const int64_t *block = sizes.block;
  int64_t along[3] = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
  return along[axis];
}

static void wait_as(enum State state) {
  int self = current;
  threads[self].state = state;
  swapcontext(&threads[self].context, &scheduler);
}

/* Ends the launch. Called by a thread, which never goes on, or by the scheduler, which does. */
static void wrong(bool by_thread, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int length = snprintf(report, sizeof report, "kernel '%s', block (%ld, %ld, %ld)", code->name,
                        (long)block_index[0], (long)block_index[1], (long)block_index[2]);
  if (by_thread)
    length +=
        snprintf(report + length, sizeof report - (size_t)length, ", thread (%ld, %ld, %ld)",
                 (long)thread_index(current, 0), (long)thread_index(current, 1), (long)thread_index(current, 2));
  length += snprintf(report + length, sizeof report - (size_t)length, ": ");
  vsnprintf(report + length, sizeof report - (size_t)length, format, values);
  va_end(values);
  failed = true;
  if (by_thread)
    wait_as(DONE);
}

/* ------------------------------------------------------------------------------------------ memory accesses */

enum Kind { READ, WRITE, CHANGE /* atomically */ };

/* Whether what a thread did comes before what the current one does. */
static bool is_before(uint32_t when, uint16_t who, uint16_t step) {
  if (when < first_of_launch || (when >= first_of_block && when < interval))
    return true;
  if (when < first_of_block)
    return false;
  int own_step = steps[current / WARP];
  if (who & OF_BLOCK)
    return false;
  if (who & OF_WARP)
    return (who & NO_THREAD) == current / WARP && step < own_step;
  who &= NO_THREAD;
  return who == current || (who / WARP == current / WARP && step < own_step);
}

static void note_read(Byte *byte) {
  int warp = current / WARP;
  uint16_t reader = (uint16_t)current;
  if (byte->read == interval && byte->reader != current) {
    int before = byte->reader & OF_WARP ? byte->reader & NO_THREAD : byte->reader / WARP;
    if (byte->reader & OF_BLOCK || before != warp)
      reader = OF_BLOCK;
    else if (byte->reader_step == steps[warp])
      reader = (uint16_t)(OF_WARP | warp);
  } else if (byte->read >= first_of_launch && byte->read < first_of_block) {
    return; /* whoever writes it now races with that block, too */
  }
  byte->read = interval;
  byte->reader = reader;
  byte->reader_step = steps[warp];
}

static const char *place_of(const char *memory) {
  size_t at = (size_t)(memory - region);
  for (int64_t number = 0; number < code->shared_count; number++) {
    const Shared *shared = &code->shared[number];
    if (memory >= shared->memory - RED_ZONE && memory < shared->memory + shared->bytes + RED_ZONE)
      return "shared memory";
  }
  return at < REGION ? "global memory" : "memory of no buffer";
}

static void conflict(const char *memory, const char *now, const char *then, uint32_t when, uint16_t who) {
  char other[64] = "another thread";
  if (when < first_of_block)
    snprintf(other, sizeof other, "another block");
  else if (!(who & (OF_WARP | OF_BLOCK)))
    snprintf(other, sizeof other, "thread (%ld, %ld, %ld)", (long)thread_index(who & NO_THREAD, 0),
             (long)thread_index(who & NO_THREAD, 1), (long)thread_index(who & NO_THREAD, 2));
  wrong(true, "race: %s %s that %s %s, with no barrier between", now, place_of(memory), other, then);
}

static void check_access(const char *memory, int64_t size, int64_t alignment, enum Kind kind) {
  static const char *const words[] = {"reads", "writes", "changes"};
  if ((uint64_t)(memory - region) >= REGION - (uint64_t)size)
    wrong(true, "%s %ld bytes at an address that no buffer has", words[kind], (long)size);
  if ((uintptr_t)memory % (uint64_t)alignment)
    wrong(true, "%s %ld bytes of %s at an address that is no multiple of %ld", words[kind], (long)size,
          place_of(memory), (long)alignment);
  for (const char *at = memory; at < memory + size; at++) {
    Byte *byte = byte_at(at);
    if (!byte->written) {
      const char *inside = at;
      while (inside > region && inside > at - RED_ZONE && !byte_at(inside)->written)
        inside--;
      if (byte_at(inside)->written)
        wrong(true, "%s %ld bytes of %s, %ld bytes behind its end", words[kind], (long)size, place_of(memory),
              (long)(at - inside - 1));
      wrong(true, "%s %ld bytes of %s outside of all buffers", words[kind], (long)size, place_of(memory));
    }
    bool both_atomic = kind == CHANGE && byte->writer & ATOMIC;
    if (!both_atomic && !is_before(byte->written, byte->writer & ~ATOMIC, byte->writer_step))
      conflict(at, words[kind], "wrote", byte->written, byte->writer & ~ATOMIC);
    if (kind == READ) {
      note_read(byte);
      continue;
    }
    if (byte->read && !is_before(byte->read, byte->reader, byte->reader_step))
      conflict(at, words[kind], "read", byte->read, byte->reader);
    byte->written = interval;
    byte->writer = (uint16_t)(current | (kind == CHANGE ? ATOMIC : 0));
    byte->writer_step = steps[current / WARP];
  }
}

/* Of pointers that may point to a thread's own memory. */
EXPORT void emulated_access_any(const char *memory, int64_t size, int64_t alignment, int64_t kind) {
  if ((uint64_t)(memory - region) < REGION)
    check_access(memory, size, alignment, (enum Kind)kind);
}

EXPORT void emulated_access(const char *memory, int64_t size, int64_t alignment, int64_t kind) {
  if (size)
    check_access(memory, size, alignment, (enum Kind)kind);
  if (kind == CHANGE)
    wait_as(RUNNABLE); /* others may come in between */
}

/* ---------------------------------------------------------------------------------------------- intrinsics
 * All take their arguments, one every SLOT bytes, where the result goes, and constants of their names. */

static uint32_t word(const char *slots, int index) {
  uint32_t value;
  memcpy(&value, slots + index * SLOT, sizeof value);
  return value;
}

static char *pointer(const char *slots, int index) {
  char *value;
  memcpy(&value, slots + index * SLOT, sizeof value);
  return value;
}

static void give(char *result, uint32_t value) { memcpy(result, &value, sizeof value); }

enum Register { TID, CTAID, NTID, NCTAID, LANEID, WARPID, NWARPID, WARPSIZE, LANEMASK, CLOCK };

EXPORT void emulated_register(const char *slots, char *result, const int64_t *constants) {
  (void)slots;
  static uint32_t time;
  int axis = (int)constants[1], lane = current % WARP;
  uint32_t at = 1u << lane;
  const uint32_t masks[] = {at, at - 1, at | (at - 1), ~(at | (at - 1)), ~(at - 1)};
  switch ((enum Register)constants[0]) {
  case TID:
    return give(result, (uint32_t)thread_index(current, axis));
  case CTAID:
    return give(result, (uint32_t)block_index[axis]);
  case NTID:
    return give(result, (uint32_t)sizes.block[axis]);
  case NCTAID:
    return give(result, (uint32_t)sizes.grid[axis]);
  case LANEID:
    return give(result, (uint32_t)lane);
  case WARPID:
    return give(result, (uint32_t)(current / WARP));
  case NWARPID:
    return give(result, (uint32_t)(thread_count + WARP - 1) / WARP);
  case WARPSIZE:
    return give(result, WARP);
  case LANEMASK:
    return give(result, masks[axis]);
  case CLOCK:
    return give(result, time++);
  }
}

/* To the nearest number with 10 bits behind the point, of two away from 0. */
EXPORT void emulated_round_tf32(const char *slots, char *result, const int64_t *constants) {
  (void)constants;
  uint32_t bits = word(slots, 0);
  bool finite = (bits & 0x7F800000) != 0x7F800000;
  give(result, finite ? (bits + 0x1000) & ~0x1FFFu : bits);
}

EXPORT void emulated_nothing(const char *slots, char *result, const int64_t *constants) {
  (void)slots, (void)result, (void)constants;
}

/* constants: 1 if the number of threads is an argument. */
EXPORT void emulated_barrier(const char *slots, char *result, const int64_t *constants) {
  (void)result;
  Thread *self = &threads[current];
  self->barrier = constants[1] ? 0 : (int)word(slots, 0);
  self->barrier_count = constants[0] ? (int)word(slots, 1) : thread_count;
  wait_as(AT_BARRIER);
}

static void together(Together *what, uint32_t mask, const char *slots, char *result, const int64_t *constants) {
  const int warp = current / WARP * WARP;
  threads[current].lane = (Lane){what, slots, result, mask};
  Lane *lanes[WARP] = {0};
  bool complete = mask >> (current % WARP) & 1;
  if (!complete)
    wrong(true, "takes part in an instruction of its warp whose mask %#x is without it", mask);
  for (int lane = 0; lane < WARP && warp + lane < thread_count; lane++) {
    Thread *other = &threads[warp + lane];
    bool there = warp + lane == current || (other->state == AT_WARP && other->lane.what == what);
    if (mask >> lane & 1) {
      if (there && other->lane.mask != mask)
        wrong(true, "an instruction of its warp has masks %#x and %#x", mask, other->lane.mask);
      complete = complete && there;
      lanes[lane] = &other->lane;
    }
  }
  if (!complete) {
    wait_as(AT_WARP);
    return;
  }
  what(lanes, mask, constants);
  for (int lane = 0; lane < WARP; lane++)
    if (lanes[lane] && warp + lane != current)
      threads[warp + lane].state = RUNNABLE;
}

/* Calls FUNCTION for the warp, whose mask is argument MASK, or all lanes where MASK is below 0. */
#define OF_THE_WARP(NAME, MASK)                                                                                   \
  static void NAME##_of_warp(Lane *lanes[WARP], uint32_t mask, const int64_t *constants);                         \
  EXPORT void emulated_##NAME(const char *slots, char *result, const int64_t *constants) {                        \
    together(NAME##_of_warp, (MASK) < 0 ? ~0u : word(slots, MASK), slots, result, constants);                     \
  }                                                                                                               \
  static void NAME##_of_warp(Lane *lanes[WARP], uint32_t mask, const int64_t *constants)

OF_THE_WARP(warp_barrier, 0) {
  (void)lanes, (void)mask, (void)constants;
  steps[current / WARP]++;
}

enum Shuffle { UP, DOWN, BUTTERFLY, INDEX };

/* (mask, value, lane, clamp and segment): PTX ISA, shfl.sync. constants: mode, 1 if the result has a predicate. */
OF_THE_WARP(shuffle, 0) {
  (void)mask;
  for (int lane = 0; lane < WARP; lane++) {
    if (!lanes[lane])
      continue;
    const char *slots = lanes[lane]->arguments;
    int by = (int)(word(slots, 2) & 31), clamp = (int)(word(slots, 3) & 31);
    int segment = (int)(word(slots, 3) >> 8 & 31), least = lane & segment, most = least | (clamp & ~segment);
    int from = lane;
    bool inside = true;
    switch ((enum Shuffle)constants[0]) {
    case UP:
      from = lane - by, inside = from >= most;
      break;
    case DOWN:
      from = lane + by, inside = from <= most;
      break;
    case BUTTERFLY:
      from = lane ^ by, inside = from <= most;
      break;
    case INDEX:
      from = least | (by & ~segment), inside = from <= most;
      break;
    }
    from = inside ? from : lane;
    give(lanes[lane]->result, lanes[from] ? word(lanes[from]->arguments, 1) : ~0u);
    if (constants[1])
      lanes[lane]->result[4] = inside;
  }
}

enum Vote { ALL, ANY, UNIFORM, BALLOT };

/* (mask, predicate). */
OF_THE_WARP(vote, 0) {
  uint32_t ballot = 0;
  for (int lane = 0; lane < WARP; lane++)
    if (lanes[lane] && word(lanes[lane]->arguments, 1) & 1)
      ballot |= 1u << lane;
    else if (!lanes[lane])
      mask &= ~(1u << lane);
  const uint32_t votes[] = {ballot == mask, ballot != 0, ballot == 0 || ballot == mask, ballot};
  for (int lane = 0; lane < WARP; lane++)
    if (lanes[lane] && constants[0] == BALLOT)
      give(lanes[lane]->result, ballot);
    else if (lanes[lane])
      *lanes[lane]->result = (char)votes[constants[0]];
}

/* (mask, value): the lanes that have the same one. constants: bytes of a value; 1: all or none, with a predicate.
 */
OF_THE_WARP(match, 0) {
  uint32_t present = 0;
  for (int lane = 0; lane < WARP; lane++)
    present |= lanes[lane] ? 1u << lane : 0;
  (void)mask;
  for (int lane = 0; lane < WARP; lane++) {
    if (!lanes[lane])
      continue;
    uint32_t same = 0;
    for (int other = 0; other < WARP; other++)
      if (lanes[other] &&
          !memcmp(lanes[lane]->arguments + SLOT, lanes[other]->arguments + SLOT, (size_t)constants[0]))
        same |= 1u << other;
    give(lanes[lane]->result, constants[1] && same != present ? 0 : same);
    if (constants[1])
      lanes[lane]->result[4] = same == present;
  }
}

enum Reduction { ADD, MIN, MAX, UMIN, UMAX, AND, OR, XOR };

/* (value, mask). */
OF_THE_WARP(reduce, 1) {
  (void)mask;
  bool first = true;
  uint32_t sum = 0;
  for (int lane = 0; lane < WARP; lane++) {
    if (!lanes[lane])
      continue;
    uint32_t value = word(lanes[lane]->arguments, 0);
    bool less = (int32_t)value < (int32_t)sum, below = value < sum;
    const uint32_t next[] = {sum + value,         less ? value : sum, less ? sum : value, below ? value : sum,
                             below ? sum : value, sum & value,        sum | value,        sum ^ value};
    sum = first ? value : next[constants[0]];
    first = false;
  }
  for (int lane = 0; lane < WARP; lane++)
    if (lanes[lane])
      give(lanes[lane]->result, sum);
}

/* (): the first lane of the mask is elected. */
OF_THE_WARP(elect, 0) {
  (void)mask, (void)constants;
  int first = 0;
  while (!lanes[first])
    first++;
  for (int lane = 0; lane < WARP; lane++)
    if (lanes[lane]) {
      give(lanes[lane]->result, (uint32_t)first);
      lanes[lane]->result[4] = lane == first;
    }
}

/* (address of a row): PTX ISA, ldmatrix, 8x8 elements of 16 bits. constants: matrices, 1 if transposed. Lane 8 m +
 * r has the address of row r of matrix m; a lane gets two elements of each. */
OF_THE_WARP(load_matrix, -1) {
  (void)mask;
  const int self = current;
  for (int matrix = 0; matrix < constants[0]; matrix++) {
    uint16_t elements[8][8];
    for (int row = 0; row < 8; row++) {
      current = self / WARP * WARP + 8 * matrix + row; /* who reads it */
      const char *memory = lanes[8 * matrix + row] ? pointer(lanes[8 * matrix + row]->arguments, 0) : NULL;
      check_access(memory, 16, 16, READ);
      memcpy(elements[row], memory, 16);
    }
    for (int lane = 0; lane < WARP; lane++) {
      int major = lane / 4, minor = lane % 4 * 2;
      uint16_t pair[2] = {elements[major][minor], elements[major][minor + 1]};
      if (constants[1])
        pair[0] = elements[minor][major], pair[1] = elements[minor + 1][major];
      if (lanes[lane])
        memcpy(lanes[lane]->result + 4 * matrix, pair, sizeof pair);
    }
  }
  current = self;
}

/* --------------------------------------------------------------------------------------- products of matrices */

enum Element { F16, BF16, TF32, S8, U8, F64, F32, S32 };

static const int bits_of_element[] = {16, 16, 32, 8, 8, 64, 32, 32};

static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                : ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

/* Rounds to nearest even. */
static uint16_t half_bits(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  if (isnan(value))
    return 0x7E00;
  if (magnitude >= 65520)
    return sign | 0x7C00;
  int exponent;
  frexp(magnitude, &exponent);
  int scale = exponent - 11 < -24 ? -24 : exponent - 11;
  uint32_t fraction = (uint32_t)nearbyint(ldexp(magnitude, -scale));
  return (uint16_t)(sign | (fraction + (uint32_t)((scale + 24) << 10)));
}

static double float_value(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

/* Element `index` of the register in a slot. tf32 is f32 without its last 13 bits. */
static double element(const char *slot, enum Element type, int index) {
  uint32_t bits;
  double real;
  memcpy(&bits, slot, sizeof bits);
  memcpy(&real, slot, sizeof real);
  switch (type) {
  case F16:
    return half_value((uint16_t)(bits >> (16 * index)));
  case BF16:
    return float_value(bits >> (16 * index) << 16);
  case TF32:
    return float_value(bits & ~0x1FFFu);
  case S8:
    return (int8_t)(bits >> (8 * index));
  case U8:
    return (uint8_t)(bits >> (8 * index));
  case F64:
    return real;
  case F32:
    return float_value(bits);
  case S32:
    return (int32_t)bits;
  }
  return NAN;
}

static void set_element(char *memory, enum Element type, double value) {
  const float single = (float)value;
  const uint16_t half = half_bits(value);
  const int32_t integer = (int32_t)(uint32_t)(int64_t)fmax(fmin(value, 9e18), -9e18);
  if (type == F64)
    memcpy(memory, &value, sizeof value);
  else if (type == F32)
    memcpy(memory, &single, sizeof single);
  else if (type == F16)
    memcpy(memory, &half, sizeof half);
  else
    memcpy(memory, &integer, sizeof integer);
}

/* PTX ISA, mma.sync, fragments: with E elements in a register, register r of A has rows g and g + 8 in turns,
 * columns from t * E + 4 E * (r / 2) on, where g = lane / 4 and t = lane % 4; B likewise, with columns g.
 * constants: m, n, k, types of A, B and of C and D. */
OF_THE_WARP(multiply, -1) {
  (void)mask;
  const int m = (int)constants[0], n = (int)constants[1], k = (int)constants[2];
  const enum Element type_a = (enum Element)constants[3], type_b = (enum Element)constants[4],
                     type_c = (enum Element)constants[5];
  const int wide_a = bits_of_element[type_a] == 64 ? 1 : 32 / bits_of_element[type_a], rows = m / 8;
  const int registers_a = m * k / (WARP * wide_a), registers_b = n * k / (WARP * wide_a);
  const int wide_c = type_c == F16 ? 2 : 1, registers_c = m * n / (WARP * wide_c);
  static double a[16][64], b[64][8], c[16][8];
  for (int lane = 0; lane < WARP; lane++) {
    const int g = lane / 4, t = lane % 4;
    if (!lanes[lane])
      wrong(true, "a product of matrices in a warp of less than 32 threads");
    const char *slot = lanes[lane]->arguments;
    for (int r = 0; r < registers_a; r++, slot += SLOT)
      for (int e = 0; e < wide_a; e++)
        a[g + 8 * (r % rows)][t * wide_a + e + 4 * wide_a * (r / rows)] = element(slot, type_a, e);
    for (int r = 0; r < registers_b; r++, slot += SLOT)
      for (int e = 0; e < wide_a; e++)
        b[t * wide_a + e + 4 * wide_a * r][g] = element(slot, type_b, e);
    for (int r = 0; r < registers_c; r++, slot += SLOT)
      for (int e = 0; e < wide_c; e++)
        c[g + 8 * (r * wide_c / 2)][t * 2 + (r * wide_c + e) % 2] = element(slot, type_c, e);
  }
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      for (int l = 0; l < k; l++)
        c[i][j] += a[i][l] * b[l][j];
  for (int lane = 0; lane < WARP; lane++)
    for (int i = 0; i < registers_c * wide_c; i++) {
      int size = type_c == F64 ? 8 : type_c == F16 ? 2 : 4;
      set_element(lanes[lane]->result + i * size, type_c, c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2]);
    }
}

/* --------------------------------------------------------------------------------------- asynchronous copies */

/* (to, from[, bytes that are read; the others become 0]). constants: bytes, 1 if there is a third argument. */
EXPORT void emulated_copy_async(const char *slots, char *result, const int64_t *constants) {
  (void)result;
  Thread *self = &threads[current];
  int size = (int)constants[0], used = constants[1] ? (int)word(slots, 2) : size;
  if (self->copy_count == self->copy_room) {
    self->copy_room = self->copy_room ? 2 * self->copy_room : 16;
    self->copies = realloc(self->copies, (size_t)self->copy_room * sizeof *self->copies);
  }
  if (used > size)
    wrong(true, "cp.async reads %d bytes for %d", used, size);
  Copy copy = {pointer(slots, 0), pointer(slots, 1), size, used, self->groups};
  check_access(copy.target, size, size, WRITE);
  if (used)
    check_access(copy.source, used, size, READ);
  memset(copy.target, POISON, (size_t)size);
  self->copies[self->copy_count++] = copy;
}

EXPORT void emulated_copy_commit(const char *slots, char *result, const int64_t *constants) {
  (void)slots, (void)result, (void)constants;
  threads[current].groups++;
}

static void finish_copies(Thread *self, int64_t before) {
  int left = 0;
  for (int number = 0; number < self->copy_count; number++) {
    const Copy copy = self->copies[number];
    if (copy.group >= before) {
      self->copies[left++] = copy;
      continue;
    }
    check_access(copy.target, copy.size, 1, WRITE);
    memset(copy.target, 0, (size_t)copy.size);
    memcpy(copy.target, copy.source, (size_t)copy.used);
  }
  self->copy_count = left;
}

/* (groups that may be left), or all. */
EXPORT void emulated_copy_wait(const char *slots, char *result, const int64_t *constants) {
  (void)result;
  Thread *self = &threads[current];
  finish_copies(self, constants[0] ? INT64_MAX : self->groups - (int64_t)word(slots, 0));
}

/* ------------------------------------------------------------------------------------------------- blocks */

static void thread_main(void) {
  code->body(arguments);
  wait_as(DONE);
}

static void begin_thread(int number) {
  Thread *thread = &threads[number];
  getcontext(&thread->context);
  thread->context.uc_stack.ss_sp = stacks + (size_t)number * STACK;
  thread->context.uc_stack.ss_size = STACK;
  thread->context.uc_link = NULL;
  makecontext(&thread->context, thread_main, 0);
  thread->state = RUNNABLE;
  thread->copy_count = 0;
  thread->groups = 0;
}

/* In order, backwards, at random; and, of the odd ones, whoever is first goes on as long as it can. */
static void choose_order(void) {
  for (int number = 0; number < thread_count; number++)
    order[number] = emulator_order / 2 % 3 == 1 ? thread_count - 1 - number : number;
  if (emulator_order / 2 % 3 == 2)
    for (int number = thread_count - 1; number > 0; number--) {
      int other = (int)random_number((uint64_t)number + 1), kept = order[number];
      order[number] = order[other];
      order[other] = kept;
    }
}

/* Lets those go on who wait at a barrier for which all are there. */
static bool open_barriers(void) {
  bool opened = false;
  for (int barrier = 0; barrier < 16; barrier++) {
    int there = 0, wanted = 0;
    for (int number = 0; number < thread_count; number++)
      if (threads[number].state == AT_BARRIER && threads[number].barrier == barrier)
        there++, wanted = threads[number].barrier_count;
    if (!there || there < wanted)
      continue;
    for (int number = 0; number < thread_count; number++)
      if (threads[number].state == AT_BARRIER && threads[number].barrier == barrier)
        threads[number].state = RUNNABLE;
    opened = true;
    interval++;
    memset(steps, 0, sizeof steps);
  }
  return opened;
}

/* Nobody can go on. */
static void report_deadlock(void) {
  int counts[4] = {0};
  for (int number = 0; number < thread_count; number++)
    counts[threads[number].state]++;
  if (counts[AT_WARP])
    wrong(false, "%d threads wait for others of their warp, which wait elsewhere or have ended", counts[AT_WARP]);
  else
    wrong(false, "%d threads wait at a barrier, and %d have ended", counts[AT_BARRIER], counts[DONE]);
}

static void run_block(void) {
  for (int number = 0; number < thread_count; number++)
    begin_thread(number);
  first_of_block = ++interval;
  memset(steps, 0, sizeof steps);
  for (int64_t number = 0; number < code->shared_count; number++) {
    Shared *shared = &code->shared[number];
    memset(shared->memory, POISON, (size_t)shared->bytes);
    set_accessible(shared->memory, (size_t)shared->bytes, true);
  }
  choose_order();
  for (;;) {
    bool ran = false, ended = true;
    for (int place = 0; place < thread_count; place++) {
      current = order[place];
      if (threads[current].state == RUNNABLE) {
        ran = true;
        swapcontext(&scheduler, &threads[current].context);
        if (failed)
          return;
        if (emulator_order % 2 && place >= WARP)
          break;
      }
    }
    for (int number = 0; number < thread_count; number++)
      ended = ended && threads[number].state == DONE;
    if (ended)
      return;
    if (!ran && !open_barriers()) {
      report_deadlock();
      return;
    }
  }
}

/* Dynamic shared memory is accessible as far as the launch says. */
static void run_grid(void) {
  const int64_t count = sizes.grid[0] * sizes.grid[1] * sizes.grid[2];
  random_state = (uint64_t)emulator_order;
  first_of_launch = interval + 1;
  for (int64_t number = 0; number < count && !failed; number++) {
    int64_t block = emulator_order % 2 ? count - 1 - number : number;
    block_index[0] = block % sizes.grid[0];
    block_index[1] = block / sizes.grid[0] % sizes.grid[1];
    block_index[2] = block / sizes.grid[0] / sizes.grid[1];
    run_block();
  }
}

/* ------------------------------------------------------------------------------------------------- the driver */

enum { FAILED = 1, NO_MEMORY = 2 };

static char *memory_of(Handle handle) { return ((Buffer *)handle)->memory; }

static Status emulator_driver_alloc(Device *device, int64_t size, Handle *out) {
  (void)device;
  Buffer *buffer = calloc(1, sizeof *buffer);
  void *memory = buffer && size < (int64_t)REGION / 4 ? emulator_alloc((size_t)size) : NULL;
  if (!memory) {
    free(buffer);
    return NO_MEMORY;
  }
  *buffer = (Buffer){.memory = memory, .size = size, .used = size};
  *out = buffer;
  return 0;
}

static Status emulator_driver_free(Device *device, Handle handle) {
  (void)device;
  emulator_free(memory_of(handle), (size_t)((Buffer *)handle)->size);
  free(handle);
  return 0;
}

static Status copy_in(Device *device, Handle handle, int64_t offset, const void *host, int64_t size) {
  (void)device;
  memcpy(memory_of(handle) + offset, host, (size_t)size);
  return 0;
}

static Status copy_out(Device *device, Handle handle, int64_t offset, void *host, int64_t size) {
  (void)device;
  memcpy(host, memory_of(handle) + offset, (size_t)size);
  return 0;
}

static Status copy_on(Device *device, Handle handle, int64_t offset, Device *target, Handle to, int64_t to_offset,
                      int64_t size) {
  (void)device, (void)target;
  memmove(memory_of(to) + to_offset, memory_of(handle) + offset, (size_t)size);
  return 0;
}

/* Nothing but what the program asked for is accessible: sizes of buffers are rounded up. An empty tensor has room
 * for an element: code whose check of an index has failed goes on with index 0. */
static void limit(const Buffer *buffer) {
  const int64_t used = buffer->used ? buffer->used : 16;
  char *memory = buffer->memory, *end = memory + used;
  if (!byte_at(end - 1)->written)
    set_accessible(memory, (size_t)used, true);
  if (used < buffer->size && byte_at(end)->written)
    set_accessible(end, (size_t)(buffer->size - used), false);
}

static Status launch(Device *device, const Kernel *kernel, const LaunchSize *size, const int64_t *cells) {
  (void)device;
  const void *values[kernel->argument_count + 1];
  int64_t dynamic = 0;
  code = kernel->handle;
  sizes = *size;
  failed = false;
  thread_count = (int)(size->block[0] * size->block[1] * size->block[2]);
  memset(block_index, 0, sizeof block_index);
  for (int64_t index = 0; index < kernel->argument_count; index++) {
    Buffer *buffer = kernel->sizes[index] ? NULL : (Buffer *)(intptr_t)cells[index];
    values[index] = buffer ? &buffer->memory : (const void *)&cells[index];
    if (buffer)
      limit(buffer);
    if (kernel->sizes[index] == DYNAMIC_LOCAL_SIZE)
      dynamic = cells[index];
  }
  arguments = values;
  if (!stacks)
    stacks = reserve((size_t)MOST_THREADS * STACK);
  if (thread_count > code->most_threads)
    wrong(false, "is launched with %d threads, and was compiled for %ld", thread_count, (long)code->most_threads);
  if (code->dynamic) {
    set_accessible(code->dynamic->memory, (size_t)code->dynamic->bytes, false);
    code->dynamic->bytes = dynamic;
  }
  if (!failed)
    run_grid();
  return failed ? FAILED : 0;
}

static Status flush(Device *device) {
  (void)device;
  return 0;
}

static void finish(Device *device) { (void)device; }

static Status part(Device *device, Arena *arena, int64_t offset, int64_t size, Handle *out) {
  (void)device, (void)arena, (void)offset, (void)size, (void)out;
  return FAILED; /* each buffer has memory of its own: see base_alignment */
}

static void renew(Device *device, Handle handle) {
  (void)device;
  Buffer *buffer = handle;
  memset(buffer->memory, POISON, (size_t)buffer->size);
}

static Status lend(Device *device, void **buffers, int64_t count, void **queue) {
  (void)device;
  for (int64_t index = 0; index < count; index++) {
    limit(buffers[index]);
    buffers[index] = memory_of(buffers[index]);
  }
  *queue = report; /* libraries are the host's, too, and done when they return */
  return 0;
}

static Status lend_done(Device *device) {
  (void)device;
  return 0;
}

EXPORT const Driver emulator_driver = {
    .alloc = emulator_driver_alloc,
    .free = emulator_driver_free,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_on = copy_on,
    .launch = launch,
    .flush = flush,
    .finish = finish,
    .part = part,
    .renew = renew,
    .close = finish,
    .lend = lend,
    .lend_done = lend_done,
};
