/* Devices that work off queues of commands, in the terms of OpenCL's API: queues.c is what their drivers have in
 * common. */
#ifndef DEVSCOPE_QUEUES_H
#define DEVSCOPE_QUEUES_H

#include "runtime.h"

/* ------------------------------------------------------------------------- what is used of the OpenCL API */

typedef struct cl_context_ *cl_context;
typedef struct cl_event_ *cl_event;
typedef struct cl_kernel_ *cl_kernel;
typedef struct cl_mem_ *cl_mem;
typedef struct cl_queue_ *cl_queue;

enum {
  CL_FALSE = 0,
  CL_TRUE = 1,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_MEM_READ_WRITE = 1,
  CL_MEM_USE_HOST_PTR = 1 << 3,
  CL_MEM_SVM_FINE_GRAIN_BUFFER = 1 << 10,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
  CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
};

/* The loader fills them in (opencl_device.py has this struct once more). Null: not there; the last two are only in
 * drivers with SVM. */
typedef struct {
  cl_mem (*clCreateBuffer)(cl_context, uint64_t flags, size_t size, void *host, int32_t *status);
  cl_mem (*clCreateSubBuffer)(cl_mem, uint64_t flags, uint32_t type, const void *region, int32_t *status);
  int32_t (*clReleaseMemObject)(cl_mem);
  int32_t (*clEnqueueWriteBuffer)(cl_queue, cl_mem, uint32_t blocking, size_t offset, size_t size,
                                  const void *host, uint32_t event_count, const cl_event *events, cl_event *event);
  int32_t (*clEnqueueReadBuffer)(cl_queue, cl_mem, uint32_t blocking, size_t offset, size_t size, void *host,
                                 uint32_t event_count, const cl_event *events, cl_event *event);
  int32_t (*clEnqueueCopyBuffer)(cl_queue, cl_mem source, cl_mem target, size_t source_offset,
                                 size_t target_offset, size_t size, uint32_t event_count, const cl_event *events,
                                 cl_event *event);
  int32_t (*clSetKernelArg)(cl_kernel, uint32_t index, size_t size, const void *value);
  int32_t (*clEnqueueNDRangeKernel)(cl_queue, cl_kernel, uint32_t dimensions, const size_t *offset,
                                    const size_t *global, const size_t *local, uint32_t event_count,
                                    const cl_event *events, cl_event *event);
  int32_t (*clEnqueueBarrierWithWaitList)(cl_queue, uint32_t event_count, const cl_event *events, cl_event *event);
  int32_t (*clFlush)(cl_queue);
  int32_t (*clFinish)(cl_queue);
  int32_t (*clWaitForEvents)(uint32_t event_count, const cl_event *events);
  int32_t (*clGetEventInfo)(cl_event, uint32_t what, size_t size, void *value, size_t *actual_size);
  int32_t (*clRetainEvent)(cl_event);
  int32_t (*clReleaseEvent)(cl_event);
  void *(*clSVMAlloc)(cl_context, uint64_t flags, size_t size, uint32_t alignment);
  void (*clSVMFree)(cl_context, void *memory);
} OpenCL;

/* Returns the status of a call that failed. */
#define TRY(call)                                                                                                 \
  do {                                                                                                            \
    const Status try_status = (call);                                                                             \
    if (try_status)                                                                                               \
      return try_status;                                                                                          \
  } while (0)

/* --------------------------------------------------------------------------------------- commands, events */

enum {
  EVENTS = 64,          /* of this many last commands a queue keeps the events */
  COMMANDS_AT_ONCE = 16 /* the driver is told to start after so many: a long row must not wait for its end */
};

/* The state of a device, which the loader makes (opencl_device.py). The commands of the (in-order) queue are
 * numbered from 1. */
typedef struct {
  const OpenCL *cl;
  cl_queue queue;
  cl_queue transfers; /* for copies between host and device; null when the memory is shared, see transfers_of */
  int64_t shared;     /* 1: the host reads and writes buffers itself (fine-grained SVM) */
  int64_t polled;     /* 1: the host asks again and again whether a command is complete, see wait_for */
  int64_t joined;     /* 1: a thread that waits in the driver may do a part of the device's work */
  int64_t issued;     /* the last command enqueued */
  int64_t completed;  /* all commands up to this one are known to be complete */
  cl_event events[EVENTS]; /* that of command n at n mod EVENTS */
} ClQueue;

/* A view is a record by which another device uses the memory of a buffer, which keeps it. */
typedef struct ClBuffer {
  Buffer common;
  int64_t last;           /* the last command of the device's queue that uses it */
  cl_event foreign;       /* of a command of another queue that reads or writes it, or null */
  struct ClBuffer *views; /* the first view; of a view, the next one */
  Device *user;           /* of a view, the device whose queue `last` is about; else null */
} ClBuffer;

static inline ClQueue *queue_of(const Device *device) { return device->state; }
/* Where memory is shared there is no queue for transfers, but a buffer may be plain: see queue_alloc. */
static inline cl_queue transfers_of(const ClQueue *queue) {
  return queue->transfers ? queue->transfers : queue->queue;
}
static inline cl_mem memory_of(const ClBuffer *buffer) { return buffer->common.memory; }

/* queues.c */

static int64_t issue(Device *device, cl_event event);
static Status use(Device *device, ClBuffer *buffer);

static Status queue_alloc(Device *device, int64_t bytes, Handle *out);
static Status queue_free(Device *device, Handle handle);
static Status queue_copy_in(Device *device, Handle handle, int64_t offset, const void *host, int64_t bytes);
static Status queue_copy_out(Device *device, Handle handle, int64_t offset, void *host, int64_t bytes);
static Status queue_copy_on(Device *source, Handle from, int64_t from_offset, Device *target, Handle to,
                            int64_t to_offset, int64_t bytes);
static Status queue_flush(Device *device);
static void queue_finish(Device *device);
static Status queue_map(Device *device, Handle handle, enum Access access, void **out);
static Status queue_view(Device *device, Handle handle, Device *user, Handle *out);
static Status queue_view_done(Device *device, Handle handle, Device *user, Handle view);
static Status queue_part(Device *device, Arena *arena, int64_t offset, int64_t bytes, Handle *out);
static void queue_renew(Device *device, Handle handle);
static void queue_close(Device *device);
static Status queue_lend(Device *device, void **buffers, int64_t count, void **queue);
static Status queue_lend_done(Device *device);

/* What all their drivers do in the same way: all but launches and what libraries enqueue. */
#define QUEUE_DRIVER                                                                                              \
  .alloc = queue_alloc, .free = queue_free, .copy_in = queue_copy_in, .copy_out = queue_copy_out,                 \
  .copy_on = queue_copy_on, .flush = queue_flush, .finish = queue_finish, .map = queue_map, .view = queue_view,   \
  .view_done = queue_view_done, .part = queue_part, .renew = queue_renew, .close = queue_close

#endif
