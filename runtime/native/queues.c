/* What drivers of devices with queues have in common: buffers, copies, and who waits for whom.
 *
 * One in-order queue per virtual device. The host never waits for more than it needs: buffers know the last
 * command that uses them. Between queues, and from the host's side where it cannot reach the memory, events order
 * what must be in order; nothing else waits. */
#include "queues.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Numbers a command that was enqueued and keeps its event, which it owns from now on. */
static int64_t issue(Device *device, cl_event event) {
  ClQueue *queue = queue_of(device);
  int64_t number = ++queue->issued;
  cl_event *place = &queue->events[(uint64_t)number % EVENTS];
  cl_event old = *place;
  *place = event;
  if (++device->pending >= COMMANDS_AT_ONCE)
    start(device);
  if (old)
    queue->cl->clReleaseEvent(old);
  return number;
}

/* The event to wait for when a command must be complete; null when it is known to be. The events of old commands
 * are gone: the oldest that is left completes after them. */
static cl_event event_of(const Device *device, int64_t number) {
  const ClQueue *queue = queue_of(device);
  /* A launch that the driver refused has a number in its buffers that was not issued. */
  number = min(number, queue->issued);
  if (number <= queue->completed)
    return NULL;
  return queue->events[(uint64_t)max(number, queue->issued - EVENTS + 1) % EVENTS];
}

static void set_completed(Device *device, int64_t number) {
  ClQueue *queue = queue_of(device);
  queue->completed = max(queue->completed, min(number, queue->issued));
}

/* What follows waits for an event, whose queue was told to start. */

/* A wait that was given up, since the call is left. */
enum { CANCELLED = INT32_MIN, QUICK = 1000000 /* ns */ };

/* Where a device is a part of another one, the host polls: CPU drivers let a thread that waits do the device's
 * work. It polls without a pause at first, which costs no time when the command is short, then every 50 us. */
static Status poll_until_done(const ClQueue *queue, cl_event event) {
  const int64_t without_pause = 4096;
  for (int64_t asked = 1;; asked++) {
    int32_t state = 0; /* above 0 until complete, below 0 if the command failed */
    TRY(queue->cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    if (state <= 0)
      return state;
    if (asked < without_pause) {
      sched_yield();
      continue;
    }
    if (interrupted())
      return CANCELLED;
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
}

static int64_t nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Waits in another thread; where there is none for it, it returns at once. */
static Status wait_elsewhere(const ClQueue *queue, cl_event event) {
  const OpenCL *cl = queue->cl;
  Status status = 0;
  TRY(cl->clRetainEvent(event));
  switch (devscope_context->wait_apart((WaitForEvent *)cl->clWaitForEvents, (DropEvent *)cl->clReleaseEvent, event,
                                       asked_to_leave, &status)) {
  case WAIT_REFUSED:
    cl->clReleaseEvent(event);
    return 0;
  case WAIT_LEFT:
    return CANCELLED;
  default:
    return status;
  }
}

/* A wait that a signal can end: in another thread, or with pauses that grow with the time that has passed. */
static Status wait_in_slices(const ClQueue *queue, cl_event event, bool *was_quick) {
  const int64_t begin = nanoseconds();
  bool is_to_join = queue->joined && devscope_context->wait_apart;
  for (;;) {
    int32_t state = 0;
    TRY(queue->cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    const int64_t elapsed = nanoseconds() - begin;
    if (state <= 0) {
      *was_quick = elapsed < QUICK;
      return state;
    }
    if (interrupted())
      return CANCELLED;
    if (elapsed < 20000) {
      sched_yield();
    } else if (is_to_join) {
      is_to_join = false;
      TRY(wait_elsewhere(queue, event));
    } else {
      nanosleep(&(struct timespec){.tv_nsec = min(max(elapsed / 16, 5000), 1000000)}, NULL);
    }
  }
}

/* Launches with arguments that were done quickly before are waited for in the driver, where the thread that waits
 * works for a CPU device; and so is everything in threads that no signal interrupts. */
static Status wait_for(const Device *device, cl_event event) {
  const ClQueue *queue = queue_of(device);
  if (queue->polled)
    return poll_until_done(queue, event);
  const uint64_t launched = take_launched();
  static uint64_t quick[64];
  uint64_t *known = &quick[launched % 64];
  if (!devscope_context->interpreter || *known == launched)
    return queue->cl->clWaitForEvents(1, &event);
  bool was_quick = false;
  Status status = wait_in_slices(queue, event, &was_quick);
  if (was_quick)
    *known = launched;
  return status;
}

static Status wait(Device *device, int64_t number) {
  cl_event event = event_of(device, number);
  if (!event)
    return 0;
  start_all();
  TRY(wait_for(device, event));
  set_completed(device, number);
  return 0;
}

/* ------------------------------------------------------------------------------------- what uses a buffer */

/* Whether two buffers of one arena have bytes in common. Places at offset -1 are buffers of their own. */
static bool overlaps(const Buffer *buffer, const Place *place) {
  return place->offset >= 0 && place->offset < buffer->offset + buffer->size &&
         buffer->offset < place->offset + place->bytes;
}

/* The last command that uses the memory of a buffer, for whatever buffer. A linear search is enough: places are
 * hundreds at most, and copies take longer. Who only reads needs buffer->last alone: what used these bytes for
 * another buffer came before, on the same queue. */
static int64_t last_use(const ClBuffer *buffer) {
  int64_t last = buffer->last;
  const Arena *arena = buffer->common.arena;
  for (int64_t number = 0; arena && number < arena->place_count; number++) {
    const Place *place = &arena->places[number];
    if (place->memory && overlaps(&buffer->common, place))
      last = max(last, ((const ClBuffer *)place->memory)->last);
  }
  return last;
}

/* Whether a command may still use the memory of a buffer, as far as waits have shown: drivers are not asked, so
 * that equal calls of a program do equal things, and need no new memory from some call on. */
static bool is_busy(const Device *device, const ClBuffer *buffer) {
  return buffer->foreign || event_of(device, last_use(buffer));
}

static void set_foreign(const OpenCL *cl, ClBuffer *buffer, cl_event event) {
  if (buffer->foreign)
    cl->clReleaseEvent(buffer->foreign);
  buffer->foreign = event;
}

/* Waits until nothing uses the memory of a buffer. */
static Status settle(Device *device, ClBuffer *buffer) {
  TRY(wait(device, last_use(buffer)));
  if (!buffer->foreign)
    return 0;
  start_all();
  Status status = wait_for(device, buffer->foreign);
  set_foreign(queue_of(device)->cl, buffer, NULL);
  return status;
}

/* Makes what is enqueued next on the device wait for the other queue's command that uses the buffer. */
static Status claim(Device *device, ClBuffer *buffer) {
  if (!buffer->foreign)
    return 0;
  /* The other device must start for this one to go on. */
  start_all();
  const ClQueue *queue = queue_of(device);
  Status status = queue->cl->clEnqueueBarrierWithWaitList(queue->queue, 1, &buffer->foreign, NULL);
  set_foreign(queue->cl, buffer, NULL);
  return status;
}

/* What is enqueued next on the device uses the buffer. */
static Status use(Device *device, ClBuffer *buffer) {
  buffer->last = queue_of(device)->issued + 1;
  return claim(device, buffer);
}

/* --------------------------------------------------------------------------------------- alloc, free, part */

/* A new record for memory of the driver, which goes if there is no room for the record. */
static Status make_record(const OpenCL *cl, cl_mem memory, void *host, int64_t size, Handle *out) {
  ClBuffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) {
    cl->clReleaseMemObject(memory);
    return CL_OUT_OF_HOST_MEMORY;
  }
  buffer->common = (Buffer){.memory = memory, .host = host, .size = size};
  *out = buffer;
  return 0;
}

/* Where host and device share memory (fine-grained SVM, which the host may use while the device works on other
 * buffers), a buffer is made of memory that both reach. */
static Status queue_alloc(Device *device, int64_t bytes, Handle *out) {
  const ClQueue *queue = queue_of(device);
  const OpenCL *cl = queue->cl;
  cl_context context = device->domain;
  void *host = NULL;
  if (queue->shared)
    host = cl->clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, (size_t)bytes, ALIGNMENT);
  ask_for_large_pages(host, bytes);
  /* A refused SVM allocation becomes a plain one: the driver then says what is wrong. */
  uint64_t flags = host ? CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR : CL_MEM_READ_WRITE;
  Status status = 0;
  cl_mem memory = cl->clCreateBuffer(context, flags, (size_t)bytes, host, &status);
  if (!status)
    status = make_record(cl, memory, host, bytes, out);
  if (status && host)
    cl->clSVMFree(context, host);
  return status;
}

/* The whole may be a freed buffer that the device still works on, which its parts would not know: the host could
 * write to one too early. */
static Status queue_part(Device *device, Arena *arena, int64_t offset, int64_t bytes, Handle *out) {
  const OpenCL *cl = queue_of(device)->cl;
  const Buffer *whole = arena->whole;
  TRY(settle(device, (ClBuffer *)arena->whole));
  const size_t region[2] = {(size_t)offset, (size_t)max(bytes, 1)};
  Status status = 0;
  cl_mem memory = cl->clCreateSubBuffer(whole->memory, 0, CL_BUFFER_CREATE_TYPE_REGION, region, &status);
  TRY(status);
  TRY(make_record(cl, memory, whole->host ? (char *)whole->host + offset : NULL, max(bytes, 1), out));
  ClBuffer *buffer = *out;
  buffer->common.used = bytes;
  buffer->common.arena = arena;
  buffer->common.offset = offset;
  return 0;
}

/* Nothing uses the views of a buffer any more. */
static void drop_views(ClBuffer *buffer) {
  ClBuffer *view = buffer->views;
  buffer->views = NULL;
  while (view) {
    ClBuffer *next = view->views;
    settle(view->user, view);
    free(view);
    view = next;
  }
}

/* A cl_mem goes when the commands that use it are complete; SVM would go at once. The memory of a part belongs to
 * the whole. */
static Status queue_free(Device *device, Handle handle) {
  const OpenCL *cl = queue_of(device)->cl;
  ClBuffer *buffer = handle;
  must_finish = true;
  settle(device, buffer);
  drop_views(buffer);
  must_finish = false;
  Status status = cl->clReleaseMemObject(memory_of(buffer));
  if (buffer->common.host && !buffer->common.arena)
    cl->clSVMFree(device->domain, buffer->common.host);
  free(buffer);
  return status;
}

/* ------------------------------------------------------------------------------------ renaming of buffers */

/* Exchanges the memory of two buffers of one size, with what is known of its use; what the program asked for
 * stays. */
static void swap_memory(ClBuffer *one, ClBuffer *two) {
  const ClBuffer old = *one;
  one->common.memory = two->common.memory;
  one->common.host = two->common.host;
  one->last = two->last;
  one->foreign = two->foreign;
  two->common.memory = old.common.memory;
  two->common.host = old.common.host;
  two->last = old.last;
  two->foreign = old.foreign;
}

/* Gives a buffer whose contents do not matter memory that is free sooner: idle memory of a freed buffer of the
 * same size, else new memory as long as at most two freed ones are busy, else the freed one that is done first.
 * The buffer's own memory takes its place among the freed ones. So copying in overlaps the work on what was copied
 * in before, with at most a few times the memory. */
static void rename_buffer(Device *device, ClBuffer *buffer) {
  const FreeList *list = &device->free_list;
  ClBuffer *best = buffer;
  int64_t same = 0;
  for (int64_t index = 0; index < list->count; index++) {
    ClBuffer *other = list->entries[index].handle;
    if (list->entries[index].bytes != buffer->common.size)
      continue;
    if (!is_busy(device, other)) {
      swap_memory(buffer, other);
      return;
    }
    if (last_use(other) < last_use(best))
      best = other;
    same++;
  }
  Handle new = NULL;
  if (same >= 2 || queue_alloc(device, buffer->common.size, &new)) {
    if (best != buffer)
      swap_memory(buffer, best);
    return;
  }
  device->counters.driver_allocations++;
  swap_memory(buffer, new);
  if (!free_list_keep(device, new, buffer->common.size))
    queue_free(device, new);
}

/* Where a buffer of its own is still used, what replaces all of its contents goes to other memory. */
static void rename_if_busy(Device *device, ClBuffer *buffer) {
  if (!buffer->common.arena && is_busy(device, buffer))
    rename_buffer(device, buffer);
}

/* Whether a command of another device may still use a view of a buffer, as far as waits have shown. */
static bool is_viewed(const ClBuffer *buffer) {
  for (const ClBuffer *view = buffer->views; view; view = view->views)
    if (event_of(view->user, last_use(view)))
      return true;
  return false;
}

/* Only buffers of their own are viewed. */
static void queue_renew(Device *device, Handle buffer) {
  if (is_viewed(buffer))
    rename_buffer(device, buffer);
}

/* ------------------------------------------------------------------------------------------------ copies */

/* The host's memory was read on return: host code may change it then. A buffer that the device still uses and that
 * is written as a whole gets other memory instead of waiting. */
static Status queue_copy_in(Device *device, Handle handle, int64_t offset, const void *host, int64_t bytes) {
  const ClQueue *queue = queue_of(device);
  ClBuffer *buffer = handle;
  if (bytes >= buffer->common.used)
    rename_if_busy(device, buffer);
  TRY(settle(device, buffer));
  if (buffer->common.host) {
    memmove((char *)buffer->common.host + offset, host, (size_t)bytes);
    return 0;
  }
  /* Blocking means that the host's memory was read, not that the buffer was written (drivers copy small ones). */
  TRY(queue->cl->clEnqueueWriteBuffer(transfers_of(queue), memory_of(buffer), CL_TRUE, (size_t)offset,
                                      (size_t)bytes, host, 0, NULL, &buffer->foreign));
  /* The queue that will wait for it does not start it. */
  queue->cl->clFlush(transfers_of(queue));
  /* Other buffers are in this memory: what uses them next would not know that it has to wait. */
  return buffer->common.arena ? settle(device, buffer) : 0;
}

/* Waits for the command that wrote the buffer, not for what was enqueued after it. */
static Status queue_copy_out(Device *device, Handle handle, int64_t offset, void *host, int64_t bytes) {
  const ClQueue *queue = queue_of(device);
  const ClBuffer *buffer = handle;
  if (buffer->common.host) {
    TRY(wait(device, buffer->last));
    memmove(host, (const char *)buffer->common.host + offset, (size_t)bytes);
    return 0;
  }
  cl_event event = event_of(device, buffer->last);
  start_all();
  if (event && devscope_context->interpreter)
    TRY(wait_for(device, event));
  TRY(queue->cl->clEnqueueReadBuffer(transfers_of(queue), memory_of(buffer), CL_TRUE, (size_t)offset,
                                     (size_t)bytes, host, event ? 1 : 0, event ? &event : NULL, NULL));
  set_completed(device, buffer->last);
  return 0;
}

/* Both buffers are in one cl_context. Between two queues the copy waits, on the target's queue, for the last
 * command that uses the source; what writes to the source next waits for the copy. The host waits for neither. */
static Status queue_copy_on(Device *source, Handle from_handle, int64_t from_offset, Device *target,
                            Handle to_handle, int64_t to_offset, int64_t bytes) {
  const ClQueue *queue = queue_of(target);
  ClBuffer *from = from_handle, *to = to_handle;
  /* What other queues do with the source comes before the copy. So the next use on the source's queue, which waits
   * for the copy, waits for that too. */
  TRY(claim(target, to));
  TRY(claim(target, from));
  cl_event needed = NULL, made = NULL;
  if (source != target) {
    needed = event_of(source, last_use(from));
    /* An event of another queue is worth waiting for only if that queue was told to start. */
    start(source);
  }
  TRY(queue->cl->clEnqueueCopyBuffer(queue->queue, memory_of(from), memory_of(to), (size_t)from_offset,
                                     (size_t)to_offset, (size_t)bytes, needed ? 1 : 0, needed ? &needed : NULL,
                                     &made));
  to->last = issue(target, made);
  if (source == target) {
    from->last = to->last;
  } else {
    queue->cl->clRetainEvent(made);
    from->foreign = made;
  }
  return 0;
}

/* ---------------------------------------------------------------------------------------- memory in place */

/* Who only reads waits for the command that wrote the buffer; who writes, for all that use it; who makes new
 * contents gets other memory, if it can, as in queue_copy_in. */
static Status queue_map(Device *device, Handle handle, enum Access access, void **out) {
  ClBuffer *buffer = handle;
  if (access == ACCESS_NEW_CONTENTS)
    rename_if_busy(device, buffer);
  /* The driver refused to share this allocation. */
  if (!buffer->common.host)
    return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  *out = buffer->common.host;
  return access == ACCESS_READ ? wait(device, buffer->last) : settle(device, buffer);
}

/* A barrier on a device's queue that waits for up to two events (null: none), as the last command that uses a
 * buffer. */
static Status wait_on_queue(Device *device, ClBuffer *buffer, cl_event one, cl_event two) {
  cl_event events[2];
  uint32_t count = 0;
  if (one)
    events[count++] = one;
  if (two)
    events[count++] = two;
  if (count == 0)
    return 0;
  /* The queues of the events must start for this one to go on. */
  start_all();
  const ClQueue *queue = queue_of(device);
  cl_event made = NULL;
  TRY(queue->cl->clEnqueueBarrierWithWaitList(queue->queue, count, events, &made));
  buffer->last = issue(device, made);
  return 0;
}

/* The view of a buffer for a device, a new one if there is none; null without memory. */
static ClBuffer *view_for(ClBuffer *buffer, Device *user) {
  for (ClBuffer *view = buffer->views; view; view = view->views)
    if (view->user == user)
      return view;
  ClBuffer *view = calloc(1, sizeof *view);
  if (view) {
    view->user = user;
    view->views = buffer->views;
    buffer->views = view;
  }
  return view;
}

/* The devices are in one cl_context, where memory is everybody's: a barrier on the other queue waits for what used
 * the buffer so far, and is the first command that uses the view. */
static Status queue_view(Device *device, Handle handle, Device *user, Handle *out) {
  ClBuffer *buffer = handle;
  ClBuffer *view = view_for(buffer, user);
  if (!view)
    return CL_OUT_OF_HOST_MEMORY;
  *out = view;
  /* The buffer may have got other memory since the last view. It is in no arena: only buffers of their own are
   * viewed. */
  view->common = buffer->common;
  return wait_on_queue(user, view, event_of(device, last_use(buffer)), buffer->foreign);
}

/* The buffer's next use waits for the last command that uses the view, which comes after all others that use it.
 */
static Status queue_view_done(Device *device, Handle handle, Device *user, Handle view_handle) {
  (void)device;
  ClBuffer *buffer = handle, *view = view_handle;
  const OpenCL *cl = queue_of(user)->cl;
  /* The view's: of a copy from it to a third device. */
  TRY(wait_on_queue(user, view, buffer->foreign, view->foreign));
  cl_event event = event_of(user, last_use(view));
  if (event) {
    cl->clRetainEvent(event);
    set_foreign(cl, view, NULL);
    set_foreign(cl, buffer, event);
  }
  return 0;
}

/* ------------------------------------------------------------------------------------- libraries, and the end */

static Status queue_lend(Device *device, void **buffers, int64_t count, void **queue) {
  for (int64_t index = 0; index < count; index++) {
    ClBuffer *buffer = buffers[index];
    TRY(use(device, buffer));
    buffers[index] = memory_of(buffer);
  }
  *queue = queue_of(device)->queue;
  return 0;
}

/* A barrier stands for all that was enqueued meanwhile: its event comes after theirs. */
static Status queue_lend_done(Device *device) {
  const ClQueue *queue = queue_of(device);
  cl_event event = NULL;
  TRY(queue->cl->clEnqueueBarrierWithWaitList(queue->queue, 0, NULL, &event));
  issue(device, event);
  return 0;
}

static Status queue_flush(Device *device) { return queue_of(device)->cl->clFlush(queue_of(device)->queue); }

static void queue_finish(Device *device) {
  const ClQueue *queue = queue_of(device);
  queue->cl->clFinish(queue->queue);
  if (queue->transfers)
    queue->cl->clFinish(queue->transfers);
}

static void queue_close(Device *device) {
  ClQueue *queue = queue_of(device);
  for (int place = 0; place < EVENTS; place++) {
    if (queue->events[place])
      queue->cl->clReleaseEvent(queue->events[place]);
    queue->events[place] = NULL;
  }
}
