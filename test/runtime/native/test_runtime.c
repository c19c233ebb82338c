/* The native runtime with a fake OpenCL, as a program of its own, so that sanitizers can watch all of it. It is
 * compiled behind the runtime's sources, in one translation unit. */
#undef NDEBUG
#include "fake_opencl.h"

enum { SLOTS = 4, HOST = 0, ONE = 1, NEAR = 2, FAR = 3 }; /* FAR is in another cl_context */

static Device devices[SLOTS];
static ClQueue states[SLOTS];
static FakeQueue queues[2 * SLOTS];
static Traffic traffic[SLOTS * SLOTS];
static FreeBuffer free_entries[SLOTS][4];
static Handle uploaded[SLOTS][2];
static Arena arenas[SLOTS];
static Place places[SLOTS][4];
static FakeKernel fake_kernel;
static const int64_t sizes[] = {0, 0, 8, -64, DYNAMIC_LOCAL_SIZE};
static const Kernel kernel = {&fake_kernel, 5, sizes, 2};
static const char constant_data[100] = "constant";
static const Constant constants[] = {{constant_data, sizeof constant_data}, {NULL, 0}};
static Context context;
static bool shared, polled;

static void open_context(void) {
  memset(devices, 0, sizeof devices);
  memset(states, 0, sizeof states);
  memset(traffic, 0, sizeof traffic);
  memset(places, 0, sizeof places);
  memset(uploaded, 0, sizeof uploaded);
  memset(&context, 0, sizeof context);
  for (int slot = 0; slot < SLOTS; slot++) {
    Device *device = &devices[slot];
    device->driver = slot ? &devscope_driver_opencl : &devscope_driver_cpu;
    device->free_list.capacity = 4;
    device->free_list.entries = free_entries[slot];
    device->constants = uploaded[slot];
    device->free_list.limit = 1 << 16;
    device->most_work_items = 64;
    device->most_local = 1024;
    device->kernels = &kernel;
    device->kernel_count = slot ? 1 : 0;
    device->domain = slot == FAR ? &devices[1] : &devices[0];
    device->state = &states[slot];
    states[slot] =
        (ClQueue){.cl = &fake_opencl, .queue = (cl_queue)&queues[slot], .shared = shared, .polled = polled};
    if (!shared)
      states[slot].transfers = (cl_queue)&queues[SLOTS + slot];
    arenas[slot] = (Arena){.places = places[slot], .place_count = 4};
    const Place plan[4] = {{0, 64, NULL}, {64, 64, NULL}, {0, 128, NULL}, {slot ? -1 : 0, 64, NULL}};
    memcpy(places[slot], plan, sizeof plan);
  }
  context = (Context){.device_count = SLOTS,
                      .devices = devices,
                      .constant_count = 2,
                      .constants = constants,
                      .traffic = traffic,
                      .arenas = arenas};
}

static void close_context(void) {
  devscope_close(&context);
  assert(live_memories == 0 && live_events == 0 && live_svm == 0);
}

static int32_t call(Entry *entry, void *argument) { return devscope_call(&context, entry, (void **)argument); }

static void expect_error(enum Origin origin, int64_t code, enum Operation operation, int64_t slot) {
  const Error *error = &context.error;
  if (error->origin != origin || error->code != code || error->operation != operation || error->slot != slot) {
    fprintf(stderr, "unexpected error: origin %lld, code %lld, operation %lld, slot %lld\n",
            (long long)error->origin, (long long)error->code, (long long)error->operation, (long long)error->slot);
    abort();
  }
  context.error = (Error){0};
}

static void launch_one(Handle one, Handle two) {
  const int64_t cells[] = {(intptr_t)one, (intptr_t)two, 7, 0, 128};
  devscope_launch(ONE, 0, 2, 1, 1, 8, 1, 1, cells, 5);
}

/* ------------------------------------------------------------------------------------------- host memory */

static void host_memory(void **pointers) {
  char *kept = devscope_host_alloc(100);
  void *memories[10];
  for (int index = 0; index < 10; index++) {
    memories[index] = _mlir_memref_to_llvm_alloc(64 * index);
    memset(memories[index], index, 64 * (size_t)index);
  }
  for (int index = 0; index < 10; index++)
    _mlir_memref_to_llvm_free(memories[(index * 7) % 10]);
  _mlir_memref_to_llvm_free(NULL);
  memset(kept, 1, 100);
  *(void **)pointers = kept;
}

static void fails_on_the_host(void **pointers) {
  for (int index = 0; index < 3; index++)
    memset(devscope_host_alloc(1000), 0, 1000);
  devscope_alloc(ONE, 64);
  switch ((intptr_t)pointers) {
  case 0:
    devscope_fail_assertion("no", 0, 0);
  case 1:
    devscope_host_alloc(-3);
    break;
  case 2:
    devscope_host_alloc(INT64_MAX);
    break;
  default:
    devscope_host_alloc(INT64_MAX / 4);
  }
}

/* A part of an interpreter, whose objects are blocks of memory. */
static Object *new_capsule(void *memory, const char *name, void (*finalize)(Object *)) {
  (void)name, (void)finalize;
  return memory;
}
static void *memory_of_capsule(Object *capsule, const char *name) {
  (void)name;
  return capsule;
}
static Object *no_capsule(void *memory, const char *name, void (*finalize)(Object *)) {
  (void)memory, (void)name, (void)finalize;
  return NULL;
}

static void test_host_memory(void) {
  open_context();
  Interpreter parts = {.new_capsule = new_capsule, .memory = memory_of_capsule};
  devscope_set_interpreter(&parts);
  Returned *returned = context.returned = devscope_open_returned();
  char *kept;
  for (int round = 0; round < 3; round++) {
    assert(call(host_memory, &kept) == 0);
    finalize(own((Block *)kept - 1, returned)); /* an array is gone */
  }
  assert(call(host_memory, &kept) == 0);
  Object *last = own((Block *)kept - 1, returned);
  assert(call(host_memory, &kept) == 0);
  parts.new_capsule = no_capsule;
  assert(own((Block *)kept - 1, returned) == NULL);
  assert(devices[HOST].free_list.count <= 4);
  for (intptr_t what = 0; what < 4; what++) {
    assert(call(fails_on_the_host, (void *)what) == 1);
    assert(devices[ONE].live_count == 0);
    enum Code codes[] = {CODE_ASSERTION_FAILED, CODE_NEGATIVE_SIZE, CODE_OUT_OF_HOST_MEMORY,
                         CODE_OUT_OF_HOST_MEMORY};
    expect_error(ORIGIN_RUNTIME, codes[what], what ? OPERATION_ALLOC : OPERATION_ASSERT, HOST);
  }
  close_context();
  devscope_close_returned(returned);
  finalize(last); /* an array that outlives the program */
}

/* ---------------------------------------------------------------------------------- buffers and constants */

static void buffers(void **pointers) {
  (void)pointers;
  Handle handles[200];
  for (int index = 0; index < 200; index++)
    handles[index] = devscope_alloc(1 + index % 3, index % 7 * 100);
  for (int index = 0; index < 200; index++)
    devscope_free(1 + index % 3, handles[index]);
  devscope_free(ONE, NULL);
  assert(devscope_constant(HOST, 0) == constant_data);
  char copy[100];
  for (int round = 0; round < 2; round++) {
    devscope_copy(ONE, devscope_constant(ONE, 0), 0, HOST, copy, 0, 100);
    assert(memcmp(copy, constant_data, 100) == 0);
    assert(devscope_constant(FAR, 1));
  }
}

/* ------------------------------------------------------------------------------------------------- state */

static void leaves_state(void **pointers) {
  char *text = (char *)pointers;
  Handle handle = devscope_alloc(ONE, 16);
  devscope_copy(HOST, text, 0, ONE, handle, 0, 16);
  devscope_keep(ONE, 0, handle);
  devscope_keep(ONE, 1, handle); /* one value may be two states */
  if (text[0] == '!')
    devscope_fail_assertion("no", 0, 0);
}

static void reads_state(void **pointers) {
  char text[2][16] = {0};
  for (int number = 0; number < 2; number++)
    devscope_copy(ONE, devscope_state(number), 0, HOST, text[number], 0, 16);
  assert(strcmp(text[0], (char *)pointers) == 0 && strcmp(text[1], (char *)pointers) == 0);
}

static void reads_no_state(void **pointers) { devscope_state((intptr_t)pointers); }

static void test_state(void) {
  open_context();
  State states[2] = {{0}};
  context.states = states;
  context.state_count = 2;
  assert(call(reads_no_state, (void *)0) == 1);
  expect_error(ORIGIN_RUNTIME, CODE_BAD_STATE, OPERATION_CONSTANT, HOST);
  for (int round = 0; round < 3; round++) {
    char one[16] = "one", other[16] = "other", bad[16] = "!";
    assert(call(leaves_state, one) == 0);
    devscope_keep_states(&context);
    assert(call(leaves_state, other) == 0); /* not kept */
    assert(call(reads_state, one) == 0);
    assert(call(leaves_state, bad) == 1);
    context.error = (Error){0};
    assert(call(reads_state, one) == 0);
    assert(call(leaves_state, other) == 0);
    devscope_keep_states(&context);
    assert(call(reads_state, other) == 0 && context.devices[ONE].live_count == 0);
  }
  assert(call(leaves_state, (char[16]){"left"}) == 0);
  assert(states[0].next != states[1].next);
  assert(call(reads_no_state, (void *)2) == 1);
  expect_error(ORIGIN_RUNTIME, CODE_BAD_STATE, OPERATION_CONSTANT, HOST);
  close_context();
  context.states = NULL;
  context.state_count = 0;
}

static void leaves_buffers(void **pointers) {
  for (int index = 0; index < 100; index++)
    devscope_alloc(1 + index % 3, 64);
  if (pointers)
    devscope_fail_assertion("leave them", 0, 0);
}

static void test_buffers(void) {
  open_context();
  for (int round = 0; round < 3; round++)
    assert(call(buffers, NULL) == 0);
  assert(devices[ONE].free_list.count <= 4);
  /* What a call leaves that succeeds is its program's, until the end; what another one leaves is freed. */
  assert(call(leaves_buffers, NULL) == 0);
  assert(call(leaves_buffers, &context) == 1);
  expect_error(ORIGIN_RUNTIME, CODE_ASSERTION_FAILED, OPERATION_ASSERT, HOST);
  assert(devices[ONE].live_count == 34);
  close_context();
}

/* ------------------------------------------------------------------------------------------------- copies */

static void copies(void **pointers) {
  (void)pointers;
  enum { BYTES = (9 << 20) + 5 };
  char *from = devscope_host_alloc(BYTES), *to = devscope_host_alloc(BYTES);
  for (int index = 0; index < BYTES; index++)
    from[index] = (char)(index * 31);
  Handle one = devscope_alloc(ONE, BYTES), near = devscope_alloc(NEAR, BYTES), far = devscope_alloc(FAR, BYTES);
  devscope_copy(HOST, from, 0, ONE, one, 0, BYTES);
  devscope_copy(ONE, one, 0, NEAR, near, 0, BYTES);
  devscope_copy(HOST, from, 0, ONE, one, 0, BYTES); /* what NEAR still reads gets other memory */
  devscope_copy(NEAR, near, 3, FAR, far, 1, BYTES - 3);
  devscope_copy(FAR, far, 1, HOST, to, 3, BYTES - 3);
  assert(memcmp(from + 3, to + 3, BYTES - 3) == 0);
  devscope_copy(ONE, one, 0, ONE, one, 64, 64);
  devscope_copy(HOST, to, 0, HOST, to, 8, 100);
  devscope_copy(HOST, NULL, 0, ONE, one, 0, 0);
  devscope_free(ONE, one);
  devscope_free(NEAR, near);
  devscope_free(FAR, far);
  _mlir_memref_to_llvm_free(from);
  _mlir_memref_to_llvm_free(to);
}

static void refused_copy(void **pointers) {
  char *bytes = *(char **)pointers;
  Handle one = devscope_alloc(ONE, 64);
  fail_write = 1;
  devscope_copy(HOST, bytes, 0, ONE, one, 0, 64);
  launch_one(one, one); /* after a failure devices are left alone */
  memset(bytes, 1, 64);
  devscope_copy(ONE, one, 0, HOST, bytes, 32, 32);
  assert(devscope_alloc(ONE, 64) == NULL);
  char *host = devscope_host_alloc(64);
  devscope_copy(HOST, bytes, 0, HOST, host, 0, 64);
  assert(host[31] == 1 && host[32] == 0);
}

static void strided(void **pointers) {
  (void)pointers;
  int32_t from[2][3] = {{1, 2, 3}, {4, 5, 6}}, to[3][2];
  int64_t source[] = {0, (intptr_t)from, 0, 2, 3, 3, 1}, target[] = {0, (intptr_t)to, 0, 2, 3, 1, 2};
  memrefCopy(4, &(UnrankedMemref){2, source}, &(UnrankedMemref){2, target});
  assert(to[0][1] == 4 && to[2][0] == 3 && to[2][1] == 6);
  memrefCopy(4, &(UnrankedMemref){0, source}, &(UnrankedMemref){0, target});
}

static void test_copies(void) {
  open_context();
  assert(call(copies, NULL) == 0);
  assert(call(copies, NULL) == 0);
  assert(call(strided, NULL) == 0);
  assert(traffic[HOST * SLOTS + ONE].copies == 4 && traffic[NEAR * SLOTS + FAR].bytes == 2 * ((9 << 20) + 2));
  if (!shared) {
    char bytes[64] = {0};
    char *pointer = bytes;
    assert(call(refused_copy, &pointer) == 1);
    expect_error(ORIGIN_DRIVER, CL_OUT_OF_HOST_MEMORY, OPERATION_COPY, ONE);
  }
  close_context();
}

/* ----------------------------------------------------------------------------------------------- launches */

static void launches(void **pointers) {
  (void)pointers;
  char byte = 0;
  Handle one = devscope_alloc(ONE, 1), two = devscope_alloc(ONE, 1), near = devscope_alloc(NEAR, 1);
  devscope_copy(HOST, &byte, 0, ONE, one, 0, 1);
  for (int index = 0; index < 100; index++) /* more than a queue has events */
    launch_one(one, two);
  launch_one(one, NULL);
  devscope_start(ONE);
  devscope_copy(ONE, one, 0, NEAR, near, 0, 1);
  launch_one(one, two); /* waits for the copy */
  devscope_copy(NEAR, near, 0, HOST, &byte, 0, 1);
  assert(byte == 101);
  devscope_copy(ONE, one, 0, HOST, &byte, 0, 1);
  assert(byte == 102);
  /* A library enqueues work that uses the buffers, after a copy that reads one of them on another queue. */
  devscope_copy(ONE, one, 0, NEAR, near, 0, 1);
  void *lent[] = {one, two};
  assert(devscope_lend(ONE, lent, 2) == &queues[ONE]);
  assert(lent[0] == ((Buffer *)one)->memory && lent[1] == ((Buffer *)two)->memory);
  devscope_lend_done(ONE);
  assert(((ClBuffer *)one)->last == states[ONE].issued && event_of(&devices[ONE], states[ONE].issued));
  devscope_copy(ONE, one, 0, HOST, &byte, 0, 1);
  assert(byte == 102);
  devscope_free(ONE, one);
  devscope_free(ONE, two);
  devscope_free(NEAR, near);
}

typedef struct {
  int64_t slot, index, grid, block, local, count;
} Launch;

static void wrong_launch(void **pointers) {
  const Launch *launch = (const Launch *)pointers;
  const int64_t cells[] = {0, 0, 0, 0, launch->local};
  devscope_launch(launch->slot, launch->index, launch->grid, 1, 1, launch->block, 2, 1, cells, launch->count);
}

static void test_launches(void) {
  open_context();
  assert(call(launches, NULL) == 0);
  assert(devices[ONE].counters.launches == 103);
  static const struct {
    Launch launch;
    int64_t code, size;
  } wrong[] = {
      {{9, 0, 1, 1, 1, 5}, CODE_BAD_SLOT, 0},
      {{ONE, 3, 1, 1, 1, 5}, CODE_BAD_KERNEL, 0},
      {{HOST, 0, 1, 1, 1, 5}, CODE_BAD_KERNEL, 0},
      {{ONE, 0, 1, 1, 1, 4}, CODE_BAD_ARGUMENT_COUNT, 0},
      {{ONE, 0, -1, 1, 1, 5}, CODE_BAD_LAUNCH_SIZE, -1},
      {{ONE, 0, 1, INT64_MAX, 1, 5}, CODE_TOO_MANY_WORK_ITEMS, INT64_MAX},
      {{ONE, 0, 1, 64, 1, 5}, CODE_TOO_MANY_WORK_ITEMS, 128},
      {{ONE, 0, 1, 1, 1000, 5}, CODE_TOO_MUCH_LOCAL_MEMORY, 1064},
      {{ONE, 0, 1, 1, -2, 5}, CODE_TOO_MUCH_LOCAL_MEMORY, -2},
      {{ONE, 0, 1, 1, INT64_MAX, 5}, CODE_TOO_MUCH_LOCAL_MEMORY, INT64_MIN + 63},
  };
  for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
    assert(call(wrong_launch, (void *)&wrong[index].launch) == 1);
    assert(context.error.size == wrong[index].size);
    expect_error(ORIGIN_RUNTIME, wrong[index].code, OPERATION_LAUNCH, wrong[index].launch.slot);
  }
  assert(call(wrong_launch, (void *)&(Launch){ONE, 0, 0, 1, 1, 5}) == 0); /* an empty grid is no launch */
  fail_launch = 1;
  assert(call(wrong_launch, (void *)&(Launch){ONE, 0, 1, 1, 0, 5}) == 1);
  expect_error(ORIGIN_DRIVER, -5, OPERATION_LAUNCH, ONE);
  close_context();
}

/* ------------------------------------------------------------------------------------------------- arenas */

static void uses_arena(void **pointers) {
  (void)pointers;
  char byte = 5;
  for (int number = 0; number < 4; number++) {
    char *host = devscope_host_place(number);
    memset(host, number, 64);
    devscope_host_done(host);
    Handle place = devscope_arena_buffer(ONE, number);
    devscope_copy(HOST, &byte, 0, ONE, place, 0, 1);
    launch_one(place, NULL);
    devscope_copy(ONE, place, 0, HOST, &byte, 0, 1);
    assert(byte == 6 + number);
  }
}

static void place_on_near(void **pointers) { *pointers = devscope_arena_buffer(NEAR, 1); }

/* The memory of an arena may be a buffer that was freed while the device worked on it. */
static void arena_of_a_busy_buffer(void **pointers) {
  (void)pointers;
  const ClBuffer *whole = devscope_alloc(ONE, 128);
  launch_one((Handle)whole, NULL);
  devscope_free(ONE, (Handle)whole);
  assert(is_busy(&devices[ONE], whole));
  devscope_arena_buffer(ONE, 1);
  assert(arenas[ONE].whole == &whole->common && !is_busy(&devices[ONE], whole));
}

static void test_arenas(void) {
  open_context();
  devscope_set_arena(&context, ONE, 128, NULL);
  assert(call(arena_of_a_busy_buffer, NULL) == 0);
  close_context();
  open_context();
  char memory[256];
  for (int64_t bytes = 128; bytes <= 256; bytes += 128) { /* grows */
    devscope_set_arena(&context, HOST, bytes, memory);
    devscope_set_arena(&context, ONE, bytes, NULL);
    assert(call(uses_arena, NULL) == 0);
    assert(call(uses_arena, NULL) == 0);
  }
  /* A device that cannot have parts at these offsets: each place is a buffer, of which the driver refuses one. */
  arenas[NEAR].separate = 1;
  devscope_set_arena(&context, NEAR, 128, NULL);
  Handle place = NULL;
  fail_alloc = 2;
  assert(call(place_on_near, &place) == 1 && !place);
  expect_error(ORIGIN_DRIVER, CL_MEM_OBJECT_ALLOCATION_FAILURE, OPERATION_ALLOC, NEAR);
  assert(call(place_on_near, &place) == 0 && place);
  close_context();
}

/* ----------------------------------------------------------------------------------------- memory in place */

static void in_place(void **pointers) {
  (void)pointers;
  Handle one = devscope_alloc(ONE, 64), two = devscope_alloc(NEAR, 64);
  char *memory = devscope_map_new(ONE, one);
  memset(memory, 1, 64);
  launch_one(one, one);
  Handle view = devscope_view(ONE, one, NEAR);
  devscope_copy(NEAR, view, 0, NEAR, two, 0, 64);
  devscope_view_done(ONE, one, NEAR, view);
  memory = devscope_map_new(ONE, one); /* the view may still be read: other memory */
  memset(memory, 9, 64);
  view = devscope_view(ONE, one, NEAR);
  devscope_view_done(ONE, one, NEAR, view);
  assert(*(char *)devscope_map(NEAR, two, ACCESS_READ) == 3);
  *(char *)devscope_map(ONE, one, ACCESS_WRITE) = 4;
  devscope_free(ONE, one);
  devscope_free(NEAR, two);
}

static void cannot_map(void **pointers) {
  (void)pointers;
  fail_svm = 1;
  Handle one = devscope_alloc(ONE, 640);
  devscope_map(ONE, one, ACCESS_READ);
}

static void test_memory_in_place(void) {
  open_context();
  if (shared) {
    assert(call(in_place, NULL) == 0);
    assert(call(in_place, NULL) == 0);
  }
  assert(call(cannot_map, NULL) == 1);
  expect_error(ORIGIN_DRIVER, CL_MEM_OBJECT_ALLOCATION_FAILURE, OPERATION_COPY, ONE);
  fail_svm = 0;
  close_context();
}

/* ------------------------------------------------------------------------------------------------- errors */

static void wrong_calls(void **pointers) {
  switch ((intptr_t)pointers) {
  case 0:
    devscope_alloc(SLOTS, 64);
    break;
  case 1:
    devscope_alloc(ONE, -1);
    break;
  case 2:
    devscope_constant(ONE, 2);
    break;
  case 3:
    devscope_copy(HOST, NULL, 0, -1, NULL, 0, 8);
    break;
  case 4:
    devscope_copy(HOST, NULL, 0, ONE, NULL, 0, -8);
    break;
  case 5:
    fail_alloc = 2;
    devscope_alloc(ONE, 64);
    break;
  case 6:
    fail_alloc = 2;
    devscope_constant(ONE, 0);
    break;
  default:
    devscope_alloc(ONE, INT64_MAX);
  }
}

static void test_errors(void) {
  open_context();
  static const struct {
    enum Origin origin;
    int64_t code;
    enum Operation operation;
    int64_t slot;
  } errors[] = {
      {ORIGIN_RUNTIME, CODE_BAD_SLOT, OPERATION_ALLOC, SLOTS},
      {ORIGIN_RUNTIME, CODE_NEGATIVE_SIZE, OPERATION_ALLOC, ONE},
      {ORIGIN_RUNTIME, CODE_BAD_CONSTANT, OPERATION_CONSTANT, ONE},
      {ORIGIN_RUNTIME, CODE_BAD_SLOT, OPERATION_COPY, -1},
      {ORIGIN_RUNTIME, CODE_NEGATIVE_SIZE, OPERATION_COPY, ONE},
      {ORIGIN_DRIVER, CL_MEM_OBJECT_ALLOCATION_FAILURE, OPERATION_ALLOC, ONE},
      {ORIGIN_DRIVER, CL_MEM_OBJECT_ALLOCATION_FAILURE, OPERATION_ALLOC, ONE},
  };
  for (size_t index = 0; index < sizeof errors / sizeof *errors; index++) {
    assert(call(wrong_calls, (void *)index) == 1);
    expect_error(errors[index].origin, errors[index].code, errors[index].operation, errors[index].slot);
  }
  close_context();
}

int main(void) {
  for (int kind = 0; kind < 4; kind++) {
    shared = kind & 1;
    polled = kind & 2;
    test_host_memory();
    test_buffers();
    test_state();
    test_copies();
    test_launches();
    test_arenas();
    test_memory_in_place();
    test_errors();
  }
  puts("done");
  return 0;
}
