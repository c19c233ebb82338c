/* OpenCL functions over malloc, for tests of the native runtime: commands run when they are enqueued, but their
 * events say so only after the queue was flushed and somebody asked. Every object is counted: what the runtime
 * forgets to release, or releases twice, is found. A number of calls of one function can be made to fail. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int references;
  bool is_part;
  char *data;
  size_t size;
} FakeMemory;

typedef struct FakeEvent {
  int references;
  bool waited;
} FakeEvent;

typedef struct {
  int flushes;
  int commands;
} FakeQueue;

/* Adds 1 to the first byte of every buffer argument when it is launched. */
typedef struct {
  FakeMemory *arguments[8];
  int local_arguments;
} FakeKernel;

static int live_memories, live_events, live_svm;
static int fail_alloc, fail_launch, fail_write, fail_svm; /* how many of the next calls fail */

static bool fails(int *left) { return *left > 0 && (*left)--; }

static FakeEvent *new_event(void) {
  FakeEvent *event = calloc(1, sizeof *event);
  event->references = 1;
  live_events++;
  return event;
}

static void enqueued(void *queue, uint32_t count, const cl_event *events, cl_event *event) {
  ((FakeQueue *)queue)->commands++;
  for (uint32_t index = 0; index < count; index++)
    assert(((FakeEvent *)events[index])->references > 0);
  if (event)
    *event = (cl_event)new_event();
}

static cl_mem fake_create_buffer(cl_context context, uint64_t flags, size_t size, void *host, int32_t *status) {
  (void)context;
  if (fails(&fail_alloc)) {
    *status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
  }
  assert(!host == !(flags & CL_MEM_USE_HOST_PTR));
  FakeMemory *memory = calloc(1, sizeof *memory);
  memory->references = 1;
  memory->is_part = host;
  memory->data = host ? host : malloc(size);
  memory->size = size;
  live_memories++;
  return (cl_mem)memory;
}

static cl_mem fake_create_part(cl_mem whole, uint64_t flags, uint32_t type, const void *region, int32_t *status) {
  (void)flags;
  assert(type == CL_BUFFER_CREATE_TYPE_REGION);
  const size_t *range = region;
  FakeMemory *all = (FakeMemory *)whole;
  assert(range[0] + range[1] <= all->size);
  FakeMemory *part = calloc(1, sizeof *part);
  *part = (FakeMemory){.references = 1, .is_part = true, .data = all->data + range[0], .size = range[1]};
  live_memories++;
  *status = 0;
  return (cl_mem)part;
}

static int32_t fake_release_memory(cl_mem memory) {
  FakeMemory *fake = (FakeMemory *)memory;
  assert(--fake->references == 0);
  if (!fake->is_part)
    free(fake->data);
  free(fake);
  live_memories--;
  return 0;
}

static char *at(cl_mem memory, size_t offset, size_t size) {
  FakeMemory *fake = (FakeMemory *)memory;
  assert(offset + size <= fake->size);
  return fake->data + offset;
}

static int32_t fake_write(cl_queue queue, cl_mem memory, uint32_t blocking, size_t offset, size_t size,
                          const void *host, uint32_t count, const cl_event *events, cl_event *event) {
  assert(blocking == CL_TRUE);
  if (fails(&fail_write))
    return CL_OUT_OF_HOST_MEMORY;
  memcpy(at(memory, offset, size), host, size);
  enqueued(queue, count, events, event);
  return 0;
}

static int32_t fake_read(cl_queue queue, cl_mem memory, uint32_t blocking, size_t offset, size_t size, void *host,
                         uint32_t count, const cl_event *events, cl_event *event) {
  assert(blocking == CL_TRUE);
  memcpy(host, at(memory, offset, size), size);
  enqueued(queue, count, events, event);
  return 0;
}

static int32_t fake_copy(cl_queue queue, cl_mem source, cl_mem target, size_t from, size_t to, size_t size,
                         uint32_t count, const cl_event *events, cl_event *event) {
  memmove(at(target, to, size), at(source, from, size), size);
  enqueued(queue, count, events, event);
  return 0;
}

static int32_t fake_set_argument(cl_kernel kernel, uint32_t index, size_t size, const void *value) {
  FakeKernel *fake = (FakeKernel *)kernel;
  assert(index < 8 && size > 0);
  fake->arguments[index] = NULL;
  if (!value)
    fake->local_arguments++;
  else if (size == sizeof(cl_mem) && index < 2)
    memcpy(&fake->arguments[index], value, sizeof(cl_mem));
  return 0;
}

static int32_t fake_launch(cl_queue queue, cl_kernel kernel, uint32_t dimensions, const size_t *offset,
                           const size_t *global, const size_t *local, uint32_t count, const cl_event *events,
                           cl_event *event) {
  (void)offset;
  assert(dimensions == 3);
  for (int axis = 0; axis < 3; axis++)
    assert(global[axis] % local[axis] == 0);
  if (fails(&fail_launch))
    return -5;
  for (int index = 0; index < 2; index++)
    if (((FakeKernel *)kernel)->arguments[index])
      ++*((FakeKernel *)kernel)->arguments[index]->data;
  enqueued(queue, count, events, event);
  return 0;
}

static int32_t fake_barrier(cl_queue queue, uint32_t count, const cl_event *events, cl_event *event) {
  enqueued(queue, count, events, event);
  return 0;
}

static int32_t fake_flush(cl_queue queue) {
  ((FakeQueue *)queue)->flushes++;
  return 0;
}

static int32_t fake_finish(cl_queue queue) { return fake_flush(queue); }

static int32_t fake_wait(uint32_t count, const cl_event *events) {
  for (uint32_t index = 0; index < count; index++)
    ((FakeEvent *)events[index])->waited = true;
  return 0;
}

/* Running when asked for the first time, then complete. */
static int32_t fake_event_info(cl_event event, uint32_t what, size_t size, void *value, size_t *actual) {
  (void)actual;
  assert(what == CL_EVENT_COMMAND_EXECUTION_STATUS && size == sizeof(int32_t));
  FakeEvent *fake = (FakeEvent *)event;
  *(int32_t *)value = fake->waited ? 0 : 1;
  fake->waited = true;
  return 0;
}

static int32_t fake_retain_event(cl_event event) {
  ((FakeEvent *)event)->references++;
  return 0;
}

static int32_t fake_release_event(cl_event event) {
  FakeEvent *fake = (FakeEvent *)event;
  if (--fake->references == 0) {
    free(fake);
    live_events--;
  }
  return 0;
}

static void *fake_svm_alloc(cl_context context, uint64_t flags, size_t size, uint32_t alignment) {
  (void)context, (void)flags;
  if (fails(&fail_svm))
    return NULL;
  live_svm++;
  return aligned_alloc(alignment, size);
}

static void fake_svm_free(cl_context context, void *memory) {
  (void)context;
  live_svm--;
  free(memory);
}

static const OpenCL fake_opencl = {
    .clCreateBuffer = fake_create_buffer,
    .clCreateSubBuffer = fake_create_part,
    .clReleaseMemObject = fake_release_memory,
    .clEnqueueWriteBuffer = fake_write,
    .clEnqueueReadBuffer = fake_read,
    .clEnqueueCopyBuffer = fake_copy,
    .clSetKernelArg = fake_set_argument,
    .clEnqueueNDRangeKernel = fake_launch,
    .clEnqueueBarrierWithWaitList = fake_barrier,
    .clFlush = fake_flush,
    .clFinish = fake_finish,
    .clWaitForEvents = fake_wait,
    .clGetEventInfo = fake_event_info,
    .clRetainEvent = fake_retain_event,
    .clReleaseEvent = fake_release_event,
    .clSVMAlloc = fake_svm_alloc,
    .clSVMFree = fake_svm_free,
};
