/* Buffers of devices: free lists, live buffers, constants, arenas. */
#include "runtime.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------- free lists
 * Buffers are reused when their size is equal: a program in a steady state asks for the same sizes again and
 * again. A linear search is enough for the bounded list. Reuse by the device needs no wait: its queue is in order,
 * so new work on the buffer comes after the old. The buffer that was freed last is taken first: it is the one that
 * caches hold. The host may not write into it yet; that is up to the driver's copy_in. */

/* Removes one entry and keeps the order (by age) of the others. */
static Handle free_list_remove(FreeList *list, int64_t index) {
  FreeBuffer *entry = &list->entries[index];
  Handle handle = entry->handle;
  list->bytes -= entry->bytes;
  list->count--;
  memmove(entry, entry + 1, (size_t)(list->count - index) * sizeof(FreeBuffer));
  return handle;
}

/* The most recently freed buffer of this size, or null. */
static Handle free_list_take(FreeList *list, int64_t bytes) {
  for (int64_t index = list->count - 1; index >= 0; index--)
    if (list->entries[index].bytes == bytes)
      return free_list_remove(list, index);
  return NULL;
}

/* Gives the oldest buffers back to the driver until at most so many of them and so many bytes are held. */
static void free_list_trim(Device *device, int64_t count, int64_t bytes) {
  FreeList *list = &device->free_list;
  while (list->count > count || list->bytes > bytes)
    device->driver->free(device, free_list_remove(list, 0));
}

/* Keeps a freed buffer if the list may hold it; false when the caller has to free it. */
static bool free_list_keep(Device *device, Handle handle, int64_t bytes) {
  FreeList *list = &device->free_list;
  if (bytes > list->limit)
    return false;
  free_list_trim(device, list->capacity - 1, list->limit - bytes);
  list->entries[list->count++] = (FreeBuffer){handle, bytes};
  list->bytes += bytes;
  return true;
}

/* -------------------------------------------------------------------------------------- allocate and free */

/* A buffer of the free list, else of the driver; null with the error recorded. */
static Handle obtain(int64_t slot, int64_t bytes) {
  Device *device = device_at(slot, OPERATION_ALLOC);
  if (!device)
    return NULL;
  if (bytes < 0)
    return fail(ORIGIN_RUNTIME, CODE_NEGATIVE_SIZE, OPERATION_ALLOC, slot, bytes);
  if (failed())
    return NULL;
  int64_t size = round_up(max(bytes, 1));
  device->counters.allocations++;
  Handle handle = free_list_take(&device->free_list, size);
  if (!handle) {
    Status status = device->driver->alloc(device, size, &handle);
    if (status) {
      /* Memory may be tied up in the free list: give it all back and ask once more. */
      free_list_trim(device, 0, 0);
      status = device->driver->alloc(device, size, &handle);
    }
    if (status)
      return fail(ORIGIN_DRIVER, status, OPERATION_ALLOC, slot, bytes);
    device->counters.driver_allocations++;
  }
  ((Buffer *)handle)->used = bytes;
  return handle;
}

/* To the free list, else to the driver. */
static void release(int64_t slot, Device *device, Handle handle) {
  if (free_list_keep(device, handle, ((Buffer *)handle)->size))
    return;
  Status status = device->driver->free(device, handle);
  if (status)
    fail(ORIGIN_DRIVER, status, OPERATION_FREE, slot, 0);
}

/* A negative number of bytes is the size of a dimension that made no sense. */
Handle devscope_alloc(int64_t slot, int64_t bytes) {
  Buffer *buffer = obtain(slot, bytes);
  if (!buffer)
    return NULL;
  Device *device = &devscope_context->devices[slot];
  buffer->call = devscope_context->calls;
  buffer->previous = NULL;
  buffer->next = device->live;
  if (device->live)
    device->live->previous = buffer;
  device->live = buffer;
  device->live_count++;
  return buffer;
}

/* Takes a buffer out of those that are live. */
static void unlink_buffer(Device *device, const Buffer *buffer) {
  if (buffer->next)
    buffer->next->previous = buffer->previous;
  if (buffer->previous)
    buffer->previous->next = buffer->next;
  else
    device->live = buffer->next;
  device->live_count--;
}

void devscope_free(int64_t slot, Handle handle) {
  Device *device = handle ? device_at(slot, OPERATION_FREE) : NULL;
  if (!device)
    return;
  unlink_buffer(device, handle);
  release(slot, device, handle);
}

/* Frees the buffers that the current call made, on all devices. */
static void free_live_buffers(void) {
  for (int64_t slot = 0; slot < devscope_context->device_count; slot++)
    for (Buffer *buffer = devscope_context->devices[slot].live, *next; buffer; buffer = next) {
      next = buffer->next;
      if (buffer->call == devscope_context->calls)
        devscope_free(slot, buffer);
    }
}

/* ---------------------------------------------------------------------------------------------- constants
 * They are not live buffers: they stay until the executable is closed. */

static Handle upload(int64_t slot, const Constant *constant) {
  Handle handle = obtain(slot, constant->bytes);
  devscope_copy(0, (Handle)constant->data, 0, slot, handle, 0, constant->bytes);
  if (!failed())
    return handle;
  if (handle)
    release(slot, &devscope_context->devices[slot], handle);
  return NULL;
}

/* On the host a constant is the loader's memory; a device gets its copy at the first use. */
Handle devscope_constant(int64_t slot, int64_t index) {
  const Context *context = devscope_context;
  Device *device = device_at(slot, OPERATION_CONSTANT);
  if (!device)
    return NULL;
  if ((uint64_t)index >= (uint64_t)context->constant_count)
    return fail(ORIGIN_RUNTIME, CODE_BAD_CONSTANT, OPERATION_CONSTANT, slot, index);
  const Constant *constant = &context->constants[index];
  if (is_host(device))
    return (Handle)constant->data;
  if (!device->constants[index])
    device->constants[index] = upload(slot, constant);
  return device->constants[index];
}

/* ------------------------------------------------------------------------------------------------- state
 * Buffers that a call leaves for later ones. While it runs they are live buffers, which it frees if it fails.
 * Those of a call that went well wait for the loader's word: what it does with the results may fail, too. */

static State *state_at(int64_t number) {
  if ((uint64_t)number < (uint64_t)devscope_context->state_count)
    return &devscope_context->states[number];
  return fail(ORIGIN_RUNTIME, CODE_BAD_STATE, OPERATION_CONSTANT, 0, number);
}

Handle devscope_state(int64_t number) {
  const State *state = state_at(number);
  if (state && !state->kept)
    return fail(ORIGIN_RUNTIME, CODE_BAD_STATE, OPERATION_CONSTANT, 0, number);
  return state ? state->kept : NULL;
}

void devscope_keep(int64_t slot, int64_t number, Handle handle) {
  State *state = state_at(number);
  if (!state || !handle || failed())
    return;
  for (int64_t other = 0; other < devscope_context->state_count; other++)
    if (devscope_context->states[other].next == handle) {
      const Handle first = handle;
      const int64_t bytes = ((const Buffer *)first)->used;
      handle = devscope_alloc(slot, bytes);
      devscope_copy(slot, first, 0, slot, handle, 0, bytes);
      break;
    }
  state->slot = slot;
  state->next = handle;
}

static void drop(const State *state, Handle handle) {
  if (handle)
    release(state->slot, &devscope_context->devices[state->slot], handle);
}

/* Before a call begins: what the last one left was not wanted. */
static void drop_next_states(void) {
  for (int64_t number = 0; number < devscope_context->state_count; number++) {
    State *state = &devscope_context->states[number];
    drop(state, state->next);
    state->next = NULL;
  }
}

/* After a call: what it left is not live any more; of one that failed, it is freed as its other buffers are. */
static void take_next_states(void) {
  for (int64_t number = 0; number < devscope_context->state_count; number++) {
    State *state = &devscope_context->states[number];
    if (failed())
      state->next = NULL;
    else if (state->next)
      unlink_buffer(&devscope_context->devices[state->slot], state->next);
  }
}

void devscope_keep_states(Context *context) {
  devscope_context = context;
  for (int64_t number = 0; number < context->state_count; number++) {
    State *state = &context->states[number];
    if (!state->next)
      continue;
    drop(state, state->kept);
    state->kept = state->next;
    state->next = NULL;
  }
}

static void close_states(void) {
  for (int64_t number = 0; number < devscope_context->state_count; number++) {
    State *state = &devscope_context->states[number];
    drop(state, state->kept);
    drop(state, state->next);
    state->kept = state->next = NULL;
  }
}

/* ------------------------------------------------------------------------------------- reports of kernels
 * A kernel cannot leave a call: it notes the number of an assertion that does not hold, and goes on. */

static Status set_status(Device *device, int32_t number) {
  return device->driver->copy_in(device, device->status, 0, &number, sizeof number);
}

Handle devscope_status(int64_t slot, const char *reports) {
  Device *device = device_at(slot, OPERATION_LAUNCH);
  if (!device || device->status)
    return device ? device->status : NULL;
  device->reports = reports;
  device->status = obtain(slot, sizeof(int32_t));
  Status status = device->status ? set_status(device, 0) : 0;
  return status ? fail(ORIGIN_DRIVER, status, OPERATION_COPY, slot, sizeof(int32_t)) : device->status;
}

/* Called when the work of a device is waited for; leaves the call if a kernel has reported something. */
static void read_status(int64_t slot) {
  Device *device = &devscope_context->devices[slot];
  int32_t number = 0;
  if (!device->unread || failed())
    return;
  device->unread = 0;
  Status status = device->driver->copy_out(device, device->status, 0, &number, sizeof number);
  if (!status && number)
    status = set_status(device, 0);
  leave_if_interrupted();
  if (status)
    fail(ORIGIN_DRIVER, status, OPERATION_COPY, slot, sizeof number);
  if (status || number <= 0)
    return;
  const char *report = device->reports;
  while (--number)
    report += strlen(report) + 1;
  devscope_fail_assertion(report, 0, 0);
}

/* After a call that failed. Its kernels may still run: the next call gets other memory, or waits. */
static void forget_reports(void) {
  for (int64_t slot = 1; slot < devscope_context->device_count; slot++) {
    Device *device = &devscope_context->devices[slot];
    if (device->status)
      release(slot, device, device->status);
    device->status = NULL;
    device->unread = 0;
  }
}

/* ------------------------------------------------------------------------------------------------- arenas
 * Buffers whose lifetime the compiler knows have places in the arena of their memory: one piece of storage per
 * slot, which stays. Places overlap where buffers are not needed at the same time; the order of a device's queue
 * keeps them apart, and the host waits for the commands on the same bytes before it writes to one. The host's
 * arena is made by the loader, that of a device here, at its first use. */

/* A place in host memory. As an allocation, it touches no memory that LLVM knows of, and nothing else points there
 * until devscope_host_done. */
void *devscope_host_place(int64_t number) { return devscope_context->arenas[0].places[number].memory; }

/* Says to LLVM what a release would: the place may hold something else from now on. */
void devscope_host_done(void *memory) { (void)memory; }

static Handle make_place(int64_t slot, Arena *arena, const Place *place) {
  if (arena->separate || place->offset < 0)
    return obtain(slot, place->bytes);
  if (!arena->whole)
    arena->whole = obtain(slot, arena->bytes);
  if (!arena->whole)
    return NULL;
  Device *device = &devscope_context->devices[slot];
  Handle part = NULL;
  Status status = device->driver->part(device, arena, place->offset, place->bytes, &part);
  return status ? fail(ORIGIN_DRIVER, status, OPERATION_ALLOC, slot, place->bytes) : part;
}

/* A place in the memory of a device; null with the error recorded. What it held does not matter any more: where
 * another device may still look at that, the place gets other memory, so that this one need not wait. */
Handle devscope_arena_buffer(int64_t slot, int64_t number) {
  Device *device = &devscope_context->devices[slot];
  Arena *arena = &devscope_context->arenas[slot];
  Place *place = &arena->places[number];
  if (place->memory)
    device->driver->renew(device, place->memory);
  else
    place->memory = make_place(slot, arena, place);
  return place->memory;
}

/* Parts go before the whole. The memory of the host's arena is the loader's. */
static void close_arena(int64_t slot) {
  Device *device = &devscope_context->devices[slot];
  Arena *arena = &devscope_context->arenas[slot];
  for (int64_t number = 0; number < arena->place_count; number++) {
    if (!is_host(device) && arena->places[number].memory)
      device->driver->free(device, arena->places[number].memory);
    arena->places[number].memory = NULL;
  }
  if (arena->whole)
    device->driver->free(device, arena->whole);
  arena->whole = NULL;
}

/* -------------------------------------------------------------------------------------------------- close */

static void close_buffers(Device *device) {
  free_list_trim(device, 0, 0);
  for (Buffer *buffer = device->live, *next; buffer; buffer = next) {
    next = buffer->next;
    device->driver->free(device, buffer);
  }
  device->live = NULL;
  if (device->status)
    device->driver->free(device, device->status);
  device->status = NULL;
  for (int64_t index = 0; index < devscope_context->constant_count; index++)
    if (device->constants[index])
      device->driver->free(device, device->constants[index]);
}
