/* Buffers whose lifetime the compiler knows have places in the arena of their memory: one piece of storage per
 * slot, which stays. Places overlap where buffers are not needed at the same time; the order of a device's queue
 * keeps them apart, and the host waits for the commands on the same bytes before it writes to one. The host's
 * arena is made by the loader, that of a device here, at its first use. */
#include "runtime.h"

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
