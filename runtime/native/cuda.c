/* The driver of CUDA devices: what queues.c asks of OpenCL, done by CUDA's driver API, and launches.
 *
 * A queue is a stream. Its commands are numbered, and an event of OpenCL is the number of one: CUDA's events,
 * which cost time, are recorded where the device is told to start, and where somebody waits for a number that none
 * covers. */
#include "queues.h"

#include <stdlib.h>

typedef int32_t Result;   /* CUresult */
typedef uint64_t Address; /* CUdeviceptr */

enum {
  CUDA_NOT_READY = 600,
  CUDA_EVENT_DISABLE_TIMING = 2,
  CUDA_POINTER_MEMORY_TYPE = 2,
  MARKS = 64, /* how many of CUDA's events a stream has */
  /* Statuses are negative, as OpenCL's, and beyond these. */
  CUDA_STATUS = -1000,
};

/* The loader fills them in (cuda_device.py has this struct once more). */
typedef struct {
  Result (*cuCtxPushCurrent)(void *context);
  Result (*cuCtxPopCurrent)(void **context);
  Result (*cuMemAlloc)(Address *memory, size_t size);
  Result (*cuMemFree)(Address memory);
  Result (*cuMemcpyHtoDAsync)(Address target, const void *source, size_t size, void *stream);
  Result (*cuMemcpyDtoHAsync)(void *target, Address source, size_t size, void *stream);
  Result (*cuMemcpyDtoDAsync)(Address target, Address source, size_t size, void *stream);
  Result (*cuPointerGetAttribute)(void *value, int32_t attribute, Address pointer);
  Result (*cuLaunchKernel)(void *kernel, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                           uint32_t block_y, uint32_t block_z, uint32_t shared, void *stream, void **arguments,
                           void **extra);
  Result (*cuStreamSynchronize)(void *stream);
  Result (*cuStreamWaitEvent)(void *stream, void *event, uint32_t flags);
  Result (*cuEventCreate)(void **event, uint32_t flags);
  Result (*cuEventRecord)(void *event, void *stream);
  Result (*cuEventQuery)(void *event);
  Result (*cuEventSynchronize)(void *event);
} Cuda;

/* As cl_context: one for each physical device. The loader makes it. */
typedef struct {
  const Cuda *cuda;
  void *context; /* the device's primary one, which libraries use, too */
} CudaContext;

/* As cl_queue. The loader makes it. */
typedef struct {
  const CudaContext *context;
  void *stream;
  int64_t issued;         /* the last command enqueued */
  int64_t marked;         /* how many marks were made; number n is at n mod MARKS */
  int64_t numbers[MARKS]; /* the last command before the mark, in ascending order */
  void *marks[MARKS];     /* CUDA's events, made when they are needed; the loader destroys them */
} CudaStream;

/* As cl_mem. */
typedef struct {
  const CudaContext *context;
  Address address;
  bool is_part;
} CudaMemory;

/* As cl_event: a command of a stream. */
typedef struct {
  int64_t references;
  CudaStream *stream;
  int64_t number;
} CudaEvent;

static Status cuda_status(Result result) { return result ? CUDA_STATUS - result : 0; }

/* Calls of CUDA's are about the thread's current context, which is not the caller's to lose. */
static Status cuda_enter(const CudaContext *context) {
  return cuda_status(context->cuda->cuCtxPushCurrent(context->context));
}

static Status cuda_leave(const CudaContext *context, Result result) {
  void *mine;
  context->cuda->cuCtxPopCurrent(&mine);
  return cuda_status(result);
}

/* -------------------------------------------------------------------------------------------------- events */

static Status cuda_new_event(CudaStream *stream, cl_event *out) {
  CudaEvent *event = malloc(sizeof *event);
  if (!event)
    return CL_OUT_OF_HOST_MEMORY;
  *event = (CudaEvent){1, stream, stream->issued};
  *out = (cl_event)event;
  return 0;
}

static int32_t cuda_retain_event(cl_event event) {
  ((CudaEvent *)event)->references++;
  return 0;
}

static int32_t cuda_release_event(cl_event event) {
  if (--((CudaEvent *)event)->references == 0)
    free(event);
  return 0;
}

/* Records an event of CUDA's behind all that was enqueued. */
static Result cuda_mark(CudaStream *stream, void **out) {
  const Cuda *cuda = stream->context->cuda;
  void **mark = &stream->marks[stream->marked % MARKS];
  Result result = *mark ? 0 : cuda->cuEventCreate(mark, CUDA_EVENT_DISABLE_TIMING);
  if (!result)
    result = cuda->cuEventRecord(*mark, stream->stream);
  if (!result)
    stream->numbers[stream->marked++ % MARKS] = stream->issued;
  *out = *mark;
  return result;
}

/* The first mark behind a command, a new one if there is none. Those of old commands are used again: the oldest
 * that is left is behind them, too. */
static Result cuda_mark_of(const CudaEvent *event, void **out) {
  CudaStream *stream = event->stream;
  int64_t found = -1;
  for (int64_t index = stream->marked - 1; index >= 0 && index >= stream->marked - MARKS; index--) {
    if (stream->numbers[index % MARKS] < event->number)
      break;
    found = index % MARKS;
  }
  if (found < 0)
    return cuda_mark(stream, out);
  *out = stream->marks[found];
  return 0;
}

static int32_t cuda_wait_for_events(uint32_t count, const cl_event *events) {
  for (uint32_t index = 0; index < count; index++) {
    const CudaEvent *event = (const CudaEvent *)events[index];
    const CudaContext *context = event->stream->context;
    TRY(cuda_enter(context));
    void *mark;
    Result result = cuda_mark_of(event, &mark);
    TRY(cuda_leave(context, result ? result : context->cuda->cuEventSynchronize(mark)));
  }
  return 0;
}

/* What it asks for is whether the command is complete. */
static int32_t cuda_event_info(cl_event handle, uint32_t what, size_t size, void *value, size_t *actual_size) {
  (void)what, (void)size, (void)actual_size;
  const CudaEvent *event = (const CudaEvent *)handle;
  const CudaContext *context = event->stream->context;
  TRY(cuda_enter(context));
  void *mark;
  Result result = cuda_mark_of(event, &mark);
  if (!result)
    result = context->cuda->cuEventQuery(mark);
  cuda_leave(context, 0);
  *(int32_t *)value = result == CUDA_NOT_READY ? 1 : cuda_status(result);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ commands */

/* Makes a stream wait for events; the context is the current one. */
static Result cuda_wait_on(const CudaStream *stream, uint32_t count, const cl_event *events) {
  for (uint32_t index = 0; index < count; index++) {
    const CudaEvent *event = (const CudaEvent *)events[index];
    if (event->stream == stream)
      continue;
    void *mark;
    Result result = cuda_mark_of(event, &mark);
    if (!result)
      result = stream->context->cuda->cuStreamWaitEvent(stream->stream, mark, 0);
    if (result)
      return result;
  }
  return 0;
}

/* Numbers a command that was enqueued. */
static Status cuda_issued(CudaStream *stream, cl_event *event) {
  stream->issued++;
  return event ? cuda_new_event(stream, event) : 0;
}

static int32_t cuda_barrier(cl_queue queue, uint32_t count, const cl_event *events, cl_event *event) {
  CudaStream *stream = (CudaStream *)queue;
  TRY(cuda_enter(stream->context));
  TRY(cuda_leave(stream->context, cuda_wait_on(stream, count, events)));
  return cuda_issued(stream, event);
}

static int32_t cuda_flush(cl_queue queue) {
  CudaStream *stream = (CudaStream *)queue;
  if (stream->marked && stream->numbers[(stream->marked - 1) % MARKS] == stream->issued)
    return 0;
  TRY(cuda_enter(stream->context));
  void *mark;
  return cuda_leave(stream->context, cuda_mark(stream, &mark));
}

static int32_t cuda_finish(cl_queue queue) {
  const CudaStream *stream = (const CudaStream *)queue;
  TRY(cuda_enter(stream->context));
  return cuda_leave(stream->context, stream->context->cuda->cuStreamSynchronize(stream->stream));
}

/* Of memory that CUDA does not know, the call returns when it was read; of memory that it knows (page-locked), it
 * returns at once. */
static Result cuda_write(const CudaStream *stream, Address target, const void *host, size_t size) {
  const Cuda *cuda = stream->context->cuda;
  Result result = cuda->cuMemcpyHtoDAsync(target, host, size, stream->stream);
  int32_t kind;
  if (result || cuda->cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, (Address)(uintptr_t)host))
    return result;
  return cuda->cuStreamSynchronize(stream->stream);
}

static int32_t cuda_write_buffer(cl_queue queue, cl_mem memory, uint32_t blocking, size_t offset, size_t size,
                                 const void *host, uint32_t count, const cl_event *events, cl_event *event) {
  (void)blocking;
  CudaStream *stream = (CudaStream *)queue;
  TRY(cuda_enter(stream->context));
  Result result = cuda_wait_on(stream, count, events);
  if (!result)
    result = cuda_write(stream, ((const CudaMemory *)memory)->address + offset, host, size);
  TRY(cuda_leave(stream->context, result));
  return cuda_issued(stream, event);
}

static int32_t cuda_read_buffer(cl_queue queue, cl_mem memory, uint32_t blocking, size_t offset, size_t size,
                                void *host, uint32_t count, const cl_event *events, cl_event *event) {
  (void)blocking;
  CudaStream *stream = (CudaStream *)queue;
  const Cuda *cuda = stream->context->cuda;
  TRY(cuda_enter(stream->context));
  Result result = cuda_wait_on(stream, count, events);
  if (!result)
    result = cuda->cuMemcpyDtoHAsync(host, ((const CudaMemory *)memory)->address + offset, size, stream->stream);
  if (!result)
    result = cuda->cuStreamSynchronize(stream->stream);
  TRY(cuda_leave(stream->context, result));
  return cuda_issued(stream, event);
}

static int32_t cuda_copy_buffer(cl_queue queue, cl_mem source, cl_mem target, size_t source_offset,
                                size_t target_offset, size_t size, uint32_t count, const cl_event *events,
                                cl_event *event) {
  CudaStream *stream = (CudaStream *)queue;
  const Address from = ((const CudaMemory *)source)->address + source_offset;
  const Address to = ((const CudaMemory *)target)->address + target_offset;
  TRY(cuda_enter(stream->context));
  Result result = cuda_wait_on(stream, count, events);
  if (!result)
    result = stream->context->cuda->cuMemcpyDtoDAsync(to, from, size, stream->stream);
  TRY(cuda_leave(stream->context, result));
  return cuda_issued(stream, event);
}

/* -------------------------------------------------------------------------------------------------- memory */

static cl_mem cuda_new_memory(CudaMemory value, int32_t *status) {
  CudaMemory *memory = malloc(sizeof *memory);
  if (memory)
    *memory = value;
  *status = memory ? 0 : CL_OUT_OF_HOST_MEMORY;
  return (cl_mem)memory;
}

static cl_mem cuda_create_buffer(cl_context handle, uint64_t flags, size_t size, void *host, int32_t *status) {
  (void)flags, (void)host; /* queues of CUDA devices share no memory with the host */
  const CudaContext *context = (const CudaContext *)handle;
  Address address = 0;
  *status = cuda_enter(context);
  if (*status)
    return NULL;
  *status = cuda_leave(context, context->cuda->cuMemAlloc(&address, size));
  if (*status)
    return NULL;
  cl_mem memory = cuda_new_memory((CudaMemory){context, address, false}, status);
  if (!memory && !cuda_enter(context))
    cuda_leave(context, context->cuda->cuMemFree(address));
  return memory;
}

static cl_mem cuda_create_part(cl_mem whole, uint64_t flags, uint32_t type, const void *region, int32_t *status) {
  (void)flags, (void)type;
  const CudaMemory *memory = (const CudaMemory *)whole;
  const size_t offset = *(const size_t *)region;
  return cuda_new_memory((CudaMemory){memory->context, memory->address + offset, true}, status);
}

static int32_t cuda_release_memory(cl_mem handle) {
  CudaMemory *memory = (CudaMemory *)handle;
  const CudaContext *context = memory->context;
  Status status = 0;
  if (!memory->is_part && !(status = cuda_enter(context)))
    status = cuda_leave(context, context->cuda->cuMemFree(memory->address));
  free(memory);
  return status;
}

/* ------------------------------------------------------------------------------------------------ launches */

/* Workgroup-local memory is no parameter of a kernel, and comes behind those; that of a fixed size is the code's.
 */
static Status cuda_launch(Device *device, const Kernel *kernel, const LaunchSize *size, const int64_t *cells) {
  const ClQueue *queue = queue_of(device);
  CudaStream *stream = (CudaStream *)queue->queue;
  const void *values[kernel->argument_count + 1];
  int64_t shared = 0;
  for (int64_t index = 0; index < kernel->argument_count; index++) {
    const int64_t bytes = kernel->sizes[index];
    ClBuffer *buffer = bytes == 0 ? (ClBuffer *)(intptr_t)cells[index] : NULL;
    values[index] = &cells[index];
    if (buffer) {
      TRY(use(device, buffer));
      values[index] = &((const CudaMemory *)memory_of(buffer))->address;
    } else if (bytes == DYNAMIC_LOCAL_SIZE) {
      shared = cells[index];
    }
  }
  TRY(cuda_enter(stream->context));
  const int64_t *grid = size->grid, *block = size->block;
  TRY(cuda_leave(stream->context, stream->context->cuda->cuLaunchKernel(
                                      kernel->handle, (uint32_t)grid[0], (uint32_t)grid[1], (uint32_t)grid[2],
                                      (uint32_t)block[0], (uint32_t)block[1], (uint32_t)block[2], (uint32_t)shared,
                                      stream->stream, (void **)values, NULL)));
  cl_event event = NULL;
  TRY(cuda_issued(stream, &event));
  issue(device, event);
  return 0;
}

/* Libraries enqueue in the device's context. */
static Status cuda_lend(Device *device, void **buffers, int64_t count, void **queue) {
  TRY(queue_lend(device, buffers, count, queue));
  const CudaStream *stream = *queue;
  for (int64_t index = 0; index < count; index++)
    buffers[index] = (void *)(uintptr_t)((const CudaMemory *)buffers[index])->address;
  *queue = stream->stream;
  return cuda_enter(stream->context);
}

static Status cuda_lend_done(Device *device) {
  cuda_leave(((const CudaStream *)queue_of(device)->queue)->context, 0);
  return queue_lend_done(device);
}

/* The functions stand behind the driver: the loader makes the queues that have their address. */
typedef struct {
  Driver driver;
  OpenCL functions;
} CudaDriver;

EXPORT const CudaDriver devscope_driver_cuda = {
    {
        QUEUE_DRIVER,
        .launch = cuda_launch,
        .lend = cuda_lend,
        .lend_done = cuda_lend_done,
    },
    {
        .clCreateBuffer = cuda_create_buffer,
        .clCreateSubBuffer = cuda_create_part,
        .clReleaseMemObject = cuda_release_memory,
        .clEnqueueWriteBuffer = cuda_write_buffer,
        .clEnqueueReadBuffer = cuda_read_buffer,
        .clEnqueueCopyBuffer = cuda_copy_buffer,
        .clEnqueueBarrierWithWaitList = cuda_barrier,
        .clFlush = cuda_flush,
        .clFinish = cuda_finish,
        .clWaitForEvents = cuda_wait_for_events,
        .clGetEventInfo = cuda_event_info,
        .clRetainEvent = cuda_retain_event,
        .clReleaseEvent = cuda_release_event,
    },
};
