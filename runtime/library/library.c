/* Opens and calls the program of a shared library; what the Python loader does for programs in files.
 *
 * It is compiled with the tables of the program (library.h) and linked with the program's code and the native
 * runtime. One call runs at a time: others wait. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const LibraryProgram library_program;
extern const Driver devscope_driver_cpu;
/* Programs have it whose backends made what has to be released. */
extern void devscope_close_backends(void) __attribute__((weak));

enum {
  FREE_LIST_ENTRIES = 1024,
  FREE_LIST_SHARE = 8, /* a device, or the host, keeps at most this part of its memory for reuse */
  MOST_THREADS = 1024,
};

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static Context *library_context; /* null: not open */
static _Thread_local char library_message[1024];

static int library_fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(library_message, sizeof library_message, format, values);
  va_end(values);
  return 1;
}

/* ------------------------------------------------------------------------------------------------- OpenCL */

#ifdef DEVSCOPE_OPENCL

extern const Driver devscope_driver_opencl;

typedef void *ClObject;
typedef int32_t ClStatus;

enum {
  CL_DEVICE_KIND = 0x1000,
  CL_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_GLOBAL_MEM_SIZE = 0x101F,
  CL_LOCAL_MEM_SIZE = 0x1023,
  CL_BASE_ADDRESS_ALIGNMENT = 0x1019,
  CL_HOST_UNIFIED_MEMORY = 0x1035,
  CL_SVM_CAPABILITIES = 0x1053,
  CL_IL_VERSION = 0x105B,
  CL_BUILD_LOG = 0x1183,
  CL_FINE_GRAIN_BUFFER = 1 << 1,
  CL_KIND_CPU = 1 << 1,
  CL_KIND_GPU = 1 << 2,
  CL_KIND_ACCELERATOR = 1 << 3,
  MOST_DEVICES = 64,
};

static struct {
  void *library;
  ClOpenCL functions;
  ClStatus (*platforms)(uint32_t, ClObject *, uint32_t *);
  ClStatus (*devices)(ClObject, uint64_t, uint32_t, ClObject *, uint32_t *);
  ClStatus (*device_info)(ClObject, uint32_t, size_t, void *, size_t *);
  ClObject (*create_context)(const intptr_t *, uint32_t, const ClObject *, void *, void *, ClStatus *);
  ClObject (*create_queue)(ClObject, ClObject, uint64_t, ClStatus *);
  ClObject (*create_program)(ClObject, const void *, size_t, ClStatus *);
  ClStatus (*build_program)(ClObject, uint32_t, const ClObject *, const char *, void *, void *);
  ClStatus (*build_info)(ClObject, ClObject, uint32_t, size_t, void *, size_t *);
  ClObject (*create_kernel)(ClObject, const char *, ClStatus *);
  void *(*extension)(ClObject, const char *);
  ClObject found[MOST_DEVICES];
  ClObject found_in[MOST_DEVICES]; /* platforms */
  ClObject contexts[MOST_DEVICES];
  int64_t count;
} cl;

static int cl_load(void) {
  if (cl.library)
    return 0;
  const char *names[] = {getenv("DEVSCOPE_OPENCL"), "libOpenCL.so.1", "libOpenCL.so"};
  for (int index = 0; index < 3 && !cl.library; index++)
    if (names[index])
      cl.library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
  if (!cl.library)
    return library_fail("no OpenCL library could be loaded (libOpenCL.so.1; DEVSCOPE_OPENCL names another)");
  static const struct {
    const char *name;
    void *place;
  } wanted[] = {
      {"clGetPlatformIDs", &cl.platforms},           {"clGetDeviceIDs", &cl.devices},
      {"clGetDeviceInfo", &cl.device_info},          {"clCreateContext", &cl.create_context},
      {"clCreateCommandQueue", &cl.create_queue},    {"clBuildProgram", &cl.build_program},
      {"clGetProgramBuildInfo", &cl.build_info},     {"clCreateKernel", &cl.create_kernel},
      {"clCreateProgramWithIL", &cl.create_program}, {"clGetExtensionFunctionAddressForPlatform", &cl.extension},
  };
  for (size_t index = 0; index < sizeof wanted / sizeof *wanted; index++)
    *(void **)wanted[index].place = dlsym(cl.library, wanted[index].name);
  static const char *const functions[] = {DEVSCOPE_CL_FUNCTIONS};
  for (size_t index = 0; index < sizeof functions / sizeof *functions; index++)
    ((void **)&cl.functions)[index] = dlsym(cl.library, functions[index]);
  if (!cl.platforms || !cl.devices || !cl.device_info)
    return library_fail("the OpenCL library lacks clGetPlatformIDs");
  return 0;
}

static uint64_t cl_number(ClObject device, uint32_t what) {
  uint64_t value = 0;
  cl.device_info(device, what, sizeof value, &value, NULL);
  return value;
}

/* GPUs, accelerators, CPUs that take SPIR-V; of a kind, as the drivers list them. */
static int cl_find(void) {
  if (cl_load())
    return 1;
  if (cl.count)
    return 0;
  ClObject platforms[MOST_DEVICES], devices[MOST_DEVICES];
  uint32_t platform_count = 0;
  cl.platforms(MOST_DEVICES, platforms, &platform_count);
  static const uint64_t kinds[] = {CL_KIND_GPU, CL_KIND_ACCELERATOR, CL_KIND_CPU};
  for (int kind = 0; kind < 3; kind++)
    for (uint32_t platform = 0; platform < platform_count && platform < MOST_DEVICES; platform++) {
      uint32_t count = 0;
      if (cl.devices(platforms[platform], kinds[kind], MOST_DEVICES, devices, &count))
        continue;
      for (uint32_t index = 0; index < count && cl.count < MOST_DEVICES; index++) {
        char versions[256] = "";
        cl.device_info(devices[index], CL_IL_VERSION, sizeof versions - 1, versions, NULL);
        if (!strstr(versions, "SPIR-V"))
          continue;
        cl.found[cl.count] = devices[index];
        cl.found_in[cl.count++] = platforms[platform];
      }
    }
  return 0;
}

static int cl_build(const LibraryDevice *device, ClObject handle, ClObject context, int64_t binary,
                    ClObject *made) {
  const LibraryData *data = &device->binaries[binary];
  ClStatus status = 0;
  *made = cl.create_program(context, data->begin, (size_t)(data->end - data->begin), &status);
  if (status)
    return library_fail("%s: the driver refused the SPIR-V module: OpenCL error %d", device->name, status);
  status = cl.build_program(*made, 1, &handle, "", NULL, NULL);
  if (!status)
    return 0;
  char log[512] = "";
  cl.build_info(*made, handle, CL_BUILD_LOG, sizeof log - 1, log, NULL);
  return library_fail("%s: the kernels could not be built: OpenCL error %d. %s", device->name, status, log);
}

static int cl_open(const LibraryDevice *device, Device *record) {
  if (cl_find())
    return 1;
  if (device->number >= cl.count)
    return library_fail("there is no OpenCL device number %d that takes SPIR-V, for '%s'", (int)device->number,
                        device->name);
  ClObject handle = cl.found[device->number], *context = &cl.contexts[device->number];
  if (!cl.create_program && cl.extension)
    *(void **)&cl.create_program = cl.extension(cl.found_in[device->number], "clCreateProgramWithILKHR");
  if (!cl.create_context || !cl.create_queue || !cl.create_program || !cl.build_program || !cl.create_kernel)
    return library_fail("the OpenCL library lacks functions of OpenCL 2.1");
  ClStatus status = 0;
  if (!*context)
    *context = cl.create_context(NULL, 1, &handle, NULL, NULL, &status);
  ClQueue *queue = calloc(1, sizeof *queue);
  if (status || !queue)
    return library_fail("%s: no context could be created: OpenCL error %d", device->name, status);
  queue->cl = (intptr_t)&cl.functions;
  queue->shared = cl_number(handle, CL_HOST_UNIFIED_MEMORY) && cl.functions.clSVMAlloc && cl.functions.clSVMFree &&
                  (cl_number(handle, CL_SVM_CAPABILITIES) & CL_FINE_GRAIN_BUFFER);
  queue->queue = (intptr_t)cl.create_queue(*context, handle, 0, &status);
  if (!status && !queue->shared)
    queue->transfers = (intptr_t)cl.create_queue(*context, handle, 0, &status);
  if (status)
    return library_fail("%s: no command queue could be created: OpenCL error %d", device->name, status);
  record->driver = &devscope_driver_opencl;
  record->state = queue;
  record->domain = *context;
  record->free_list.limit = (int64_t)(cl_number(handle, CL_GLOBAL_MEM_SIZE) / FREE_LIST_SHARE);
  record->most_work_items = (int64_t)cl_number(handle, CL_MAX_WORK_GROUP_SIZE);
  record->most_local = (int64_t)cl_number(handle, CL_LOCAL_MEM_SIZE);
  ClObject *programs = calloc((size_t)device->binary_count + 1, sizeof *programs);
  Kernel *kernels = calloc((size_t)device->kernel_count + 1, sizeof *kernels);
  if (!programs || !kernels)
    return library_fail("out of host memory");
  for (int64_t index = 0; index < device->binary_count; index++)
    if (cl_build(device, handle, *context, index, &programs[index]))
      return 1;
  for (int64_t index = 0; index < device->kernel_count; index++) {
    const LibraryKernel *from = &device->kernels[index];
    Kernel *kernel = &kernels[index];
    kernel->handle = cl.create_kernel(programs[from->binary], from->name, &status);
    if (status)
      return library_fail("%s: kernel '%s' could not be created: OpenCL error %d", device->name, from->name,
                          status);
    kernel->argument_count = from->argument_count;
    kernel->sizes = from->sizes;
    for (int64_t argument = 0; argument < from->argument_count; argument++)
      kernel->local_count += from->sizes[argument] < 0;
  }
  free(programs);
  record->kernels = kernels;
  record->kernel_count = device->kernel_count;
  return 0;
}

static int64_t cl_alignment(const LibraryDevice *device) {
  return (int64_t)cl_number(cl.found[device->number], CL_BASE_ADDRESS_ALIGNMENT) / 8;
}

#else

static int cl_open(const LibraryDevice *device, Device *record) {
  (void)record;
  return library_fail("'%s' is no device of this library", device->name);
}

static int64_t cl_alignment(const LibraryDevice *device) { return (void)device, 1; }

#endif

/* ------------------------------------------------------------------------------------------------- opening */

static int library_threads(int64_t *threads) {
  const char *wanted = getenv("DEVSCOPE_THREADS");
  if (!wanted || !*wanted) {
    cpu_set_t cores;
    *threads = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    return 0;
  }
  char *end;
  *threads = strtol(wanted, &end, 10);
  if (*end || *threads < 1 || *threads > MOST_THREADS)
    return library_fail("DEVSCOPE_THREADS: '%s' is not a number of threads: 1 to %d", wanted, MOST_THREADS);
  return 0;
}

static int library_open_arena(Context *context, int64_t slot) {
  const LibraryArena *from = &library_program.arenas[slot];
  Arena *arena = &context->arenas[slot];
  Place *places = calloc((size_t)from->place_count + 1, sizeof *places);
  if (!places)
    return library_fail("out of host memory");
  for (int64_t index = 0; index < from->place_count; index++)
    places[index] = (Place){.offset = from->places[index][0], .bytes = from->places[index][1]};
  arena->places = places;
  arena->place_count = from->place_count;
  arena->separate = slot && cl_alignment(&library_program.devices[slot]) > from->alignment;
  if (!from->bytes)
    return 0;
  void *memory = NULL;
  if (!slot && posix_memalign(&memory, (size_t)(from->alignment < 64 ? 64 : from->alignment), (size_t)from->bytes))
    return library_fail("allocating %lld bytes failed: out of host memory", (long long)from->bytes);
  devscope_set_arena(context, slot, from->bytes, memory);
  return 0;
}

static int library_open_slot(Context *context, int64_t slot) {
  const LibraryDevice *device = &library_program.devices[slot];
  Device *record = &context->devices[slot];
  record->free_list.capacity = FREE_LIST_ENTRIES;
  record->free_list.entries = calloc(FREE_LIST_ENTRIES, sizeof *record->free_list.entries);
  record->constants = calloc((size_t)library_program.constant_count + 1, sizeof *record->constants);
  if (!record->free_list.entries || !record->constants)
    return library_fail("out of host memory");
  if (slot)
    return cl_open(device, record);
  record->driver = &devscope_driver_cpu;
  record->free_list.limit = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / FREE_LIST_SHARE;
  return 0;
}

/* What cannot be opened stays allocated: there is one program, and another attempt may find the device. */
static int library_open_locked(void) {
  if (library_context)
    return 0;
  int64_t threads;
  if (library_threads(&threads))
    return 1;
  const int64_t count = library_program.slot_count;
  Context *context = calloc(1, sizeof *context);
  Constant *constants = calloc((size_t)library_program.constant_count + 1, sizeof *constants);
  if (!context || !constants)
    return library_fail("out of host memory");
  for (int64_t index = 0; index < library_program.constant_count; index++) {
    const LibraryData *data = &library_program.constants[index];
    constants[index] = (Constant){data->begin, data->end - data->begin};
  }
  context->device_count = count;
  context->constant_count = library_program.constant_count;
  context->constants = constants;
  context->devices = calloc((size_t)count, sizeof *context->devices);
  context->arenas = calloc((size_t)count, sizeof *context->arenas);
  context->traffic = calloc((size_t)(count * count), sizeof *context->traffic);
  context->run_tasks = devscope_pool_run;
  context->wait_apart = devscope_wait_apart;
  context->threads = threads;
  if (!context->devices || !context->arenas || !context->traffic)
    return library_fail("out of host memory");
  for (int64_t slot = 0; slot < count; slot++)
    if (library_open_slot(context, slot))
      return 1;
  for (int64_t slot = 0; slot < count; slot++)
    if (library_open_arena(context, slot))
      return 1;
  library_context = context;
  return 0;
}

static int library_open(void) {
  pthread_mutex_lock(&library_lock);
  const int failed = library_open_locked();
  pthread_mutex_unlock(&library_lock);
  return failed;
}

/* Devices are waited for, and their memory is released. Queues, kernels and contexts stay: they are few. */
static void library_close(void) {
  pthread_mutex_lock(&library_lock);
  if (library_context) {
    devscope_close(library_context);
    if (devscope_close_backends)
      devscope_close_backends();
  }
  library_context = NULL;
  pthread_mutex_unlock(&library_lock);
}

/* -------------------------------------------------------------------------------------------------- calls */

static int64_t library_describe(const LibraryTensor *tensor, int64_t *cells, const void *data,
                                const int64_t *sizes) {
  uint64_t count = 1; /* sizes that make no sense must not overflow */
  cells[0] = cells[1] = (intptr_t)data;
  cells[2] = 0;
  for (int64_t axis = tensor->rank - 1; axis >= 0; axis--) {
    const int64_t size = tensor->shape[axis] < 0 ? sizes[axis] : tensor->shape[axis];
    cells[3 + axis] = size;
    cells[3 + tensor->rank + axis] = (int64_t)count;
    count *= (uint64_t)size;
  }
  return (int64_t)count;
}

static bool library_is_dynamic(const LibraryTensor *tensor) {
  for (int64_t axis = 0; axis < tensor->rank; axis++)
    if (tensor->shape[axis] < 0)
      return true;
  return false;
}

/* What the call recorded, in words. Messages of assertions have {0} and {1} for numbers. */
static int library_report(const LibraryEntry *entry, const Error *error) {
  static const char *const operations[] = {"",       "an allocation",    "freeing a buffer",
                                           "a copy", "using a constant", "a kernel launch"};
  if (error->operation == OPERATION_ASSERT) {
    char text[900];
    size_t length = 0;
    for (const char *at = (const char *)(intptr_t)error->detail; *at && length < sizeof text - 24; at++)
      if (at[0] == '{' && (at[1] == '0' || at[1] == '1') && at[2] == '}') {
        length += (size_t)snprintf(text + length, 24, "%lld", (long long)error->numbers[at[1] - '0']);
        at += 2;
      } else
        text[length++] = *at;
    text[length] = 0;
    return library_fail("%s: %s", entry->name, text);
  }
  const char *device = error->slot < library_program.slot_count ? library_program.devices[error->slot].name : "?";
  const char *operation = operations[error->operation <= OPERATION_LAUNCH ? error->operation : 0];
  if (error->origin == ORIGIN_DRIVER)
    return library_fail("%s: %s: %s failed: error %d of the driver", entry->name, device, operation,
                        (int)error->code);
  if (error->code == CODE_NEGATIVE_SIZE)
    return library_fail("%s: %s: a tensor would have a dimension of size %lld", entry->name, device,
                        (long long)error->detail);
  if (error->code == CODE_OUT_OF_HOST_MEMORY)
    return library_fail("%s: %s: allocating %lld bytes failed: out of host memory", entry->name, device,
                        (long long)error->detail);
  return library_fail("%s: %s: %s failed (reason %d, see devscope's abi.h)", entry->name, device, operation,
                      (int)error->code);
}

/* Puts a result where the caller wants it: in memory of its own, or in new memory. */
static int library_give(const LibraryEntry *entry, const LibraryTensor *tensor, int64_t *cells, void **result,
                        int64_t *sizes) {
  int64_t target[3 + 2 * tensor->rank + 1];
  for (int64_t axis = 0; axis < tensor->rank; axis++)
    if (sizes)
      sizes[axis] = cells[3 + axis];
  const int64_t count = library_describe(tensor, target, *result, cells + 3);
  if (library_is_dynamic(tensor)) {
    *result = malloc((size_t)(count * tensor->item_bytes) + 1);
    if (!*result)
      return library_fail("%s: %s: out of host memory", entry->name, tensor->name);
    library_describe(tensor, target, *result, cells + 3);
  }
  if (cells[1] + cells[2] * tensor->item_bytes != (intptr_t)*result)
    memrefCopy(tensor->item_bytes, &(UnrankedMemref){tensor->rank, cells},
               &(UnrankedMemref){tensor->rank, target});
  return 0;
}

/* Sizes come from the caller; those that the program knows must be what it knows. */
static int library_check_sizes(const LibraryEntry *entry, const LibraryTensor *tensor, const int64_t *sizes) {
  for (int64_t axis = 0; axis < tensor->rank; axis++) {
    if (tensor->shape[axis] >= 0 && sizes[axis] != tensor->shape[axis])
      return library_fail("%s: %s: the size of dimension %lld is %lld, expected %lld", entry->name, tensor->name,
                          (long long)axis, (long long)sizes[axis], (long long)tensor->shape[axis]);
    if (sizes[axis] < 0)
      return library_fail("%s: %s: the size of dimension %lld is %lld", entry->name, tensor->name, (long long)axis,
                          (long long)sizes[axis]);
  }
  return 0;
}

static int library_run(const LibraryEntry *entry, const void *const *arguments,
                       const int64_t *const *argument_sizes, void **results, int64_t *const *result_sizes) {
  int64_t total = 0;
  for (int64_t index = 0; index < entry->argument_count; index++)
    total += 3 + 2 * entry->arguments[index].rank;
  for (int64_t index = 0; index < entry->result_count; index++)
    total += 3 + 2 * entry->results[index].rank;
  int64_t cells[total + 1], bytes[entry->argument_count + 1];
  int64_t *given[entry->argument_count + 1], *made[entry->result_count + 1], *at = cells;
  void *pointers[entry->argument_count + 2];
  Out outs[entry->result_count + 1];
  int64_t pointer_count = 0;
  if (entry->result_count)
    pointers[pointer_count++] = cells;
  for (int64_t index = 0; index < entry->result_count; index++) {
    made[index] = at;
    at += 3 + 2 * entry->results[index].rank;
  }
  for (int64_t index = 0; index < entry->argument_count; index++) {
    const LibraryTensor *tensor = &entry->arguments[index];
    if (library_is_dynamic(tensor) && library_check_sizes(entry, tensor, argument_sizes[index]))
      return 1;
    bytes[index] = library_describe(tensor, at, arguments[index], argument_sizes[index]) * tensor->item_bytes;
    pointers[pointer_count++] = given[index] = at;
    at += 3 + 2 * tensor->rank;
  }
  for (int64_t index = 0; index < entry->result_count; index++) {
    const LibraryTensor *tensor = &entry->results[index];
    outs[index] = (Out){0};
    if (library_is_dynamic(tensor))
      continue;
    const Out out = {results[index], library_describe(tensor, made[index], NULL, NULL) * tensor->item_bytes};
    /* Not in place of an argument, which the program may read later. */
    bool overlaps = false;
    for (int64_t other = 0; other < entry->argument_count && !overlaps; other++)
      overlaps = (intptr_t)out.memory < given[other][0] + bytes[other] &&
                 given[other][0] < (intptr_t)out.memory + out.bytes;
    if (!overlaps)
      outs[index] = out;
  }
  Context *context = library_context;
  context->out_count = entry->result_count;
  context->outs = outs;
  context->error = (Error){0};
  if (devscope_call(context, entry->function, pointers))
    return library_report(entry, &context->error);
  int failed = 0;
  for (int64_t index = 0; index < entry->result_count; index++)
    failed |= library_give(entry, &entry->results[index], made[index], &results[index], result_sizes[index]);
  /* What the results are in: several may be in one block, and one in an argument. */
  for (int64_t index = 0; index < entry->result_count; index++) {
    const int64_t memory = made[index][0];
    bool known = memory == 0;
    for (int64_t other = 0; other < index && !known; other++)
      known = made[other][0] == memory;
    for (int64_t other = 0; other < entry->argument_count && !known; other++)
      known = given[other][0] == memory;
    if (!known)
      _mlir_memref_to_llvm_free((void *)(intptr_t)memory); /* not the caller's */
  }
  context->out_count = 0;
  return failed;
}

static int library_call(const LibraryEntry *entry, const void *const *arguments,
                        const int64_t *const *argument_sizes, void **results, int64_t *const *result_sizes) {
  pthread_mutex_lock(&library_lock);
  const int failed = library_open_locked() || library_run(entry, arguments, argument_sizes, results, result_sizes);
  pthread_mutex_unlock(&library_lock);
  return failed;
}
