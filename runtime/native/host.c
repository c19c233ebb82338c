/* The driver of the host's own memory, type cpu. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 1, NOT_POSSIBLE = 2 }; /* status codes */

static Status host_alloc(Device *device, int64_t bytes, Handle *out) {
  (void)device;
  *out = aligned_alloc(ALIGNMENT, (size_t)bytes);
  return *out ? 0 : OUT_OF_MEMORY;
}

static Status host_free(Device *device, Handle memory) {
  (void)device;
  free(memory);
  return 0;
}

static Status host_copy_in(Device *device, Handle to, int64_t offset, const void *from, int64_t bytes) {
  (void)device;
  memmove((char *)to + offset, from, (size_t)bytes);
  return 0;
}

static Status host_copy_out(Device *device, Handle from, int64_t offset, void *to, int64_t bytes) {
  (void)device;
  memmove(to, (char *)from + offset, (size_t)bytes);
  return 0;
}

static Status host_copy_on(Device *device, Handle from, int64_t offset, Device *target, Handle to,
                           int64_t to_offset, int64_t bytes) {
  (void)target;
  return host_copy_in(device, to, to_offset, (char *)from + offset, bytes);
}

/* Compiled code calls host functions itself: there is nothing to launch. */
static Status host_launch(Device *device, const Kernel *kernel, const LaunchSize *size, const int64_t *cells) {
  (void)device, (void)kernel, (void)size, (void)cells;
  return NOT_POSSIBLE;
}

static Status host_map(Device *device, Handle memory, enum Access access, void **out) {
  (void)device, (void)access;
  *out = memory;
  return 0;
}

/* Nothing but the host itself uses its memory in place. */
static Status host_view(Device *device, Handle memory, Device *user, Handle *out) {
  (void)device, (void)memory, (void)user, (void)out;
  return NOT_POSSIBLE;
}

static Status host_view_done(Device *device, Handle memory, Device *user, Handle view) {
  (void)device, (void)memory, (void)user, (void)view;
  return NOT_POSSIBLE;
}

/* The host's arena is one piece of memory, of which the loader knows the places. */
static Status host_part(Device *device, Arena *arena, int64_t offset, int64_t bytes, Handle *out) {
  (void)device, (void)arena, (void)offset, (void)bytes, (void)out;
  return NOT_POSSIBLE;
}

static void host_renew(Device *device, Handle memory) { (void)device, (void)memory; }

static Status host_flush(Device *device) {
  (void)device;
  return 0;
}

static void host_finish(Device *device) { (void)device; }

const Driver devscope_driver_cpu = {
    .alloc = host_alloc,
    .free = host_free,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .copy_on = host_copy_on,
    .launch = host_launch,
    .flush = host_flush,
    .finish = host_finish,
    .map = host_map,
    .view = host_view,
    .view_done = host_view_done,
    .part = host_part,
    .renew = host_renew,
    .close = host_finish,
};
