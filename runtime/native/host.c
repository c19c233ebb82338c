/* The driver of the host's own memory, type cpu. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 1 }; /* the status code */

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

static Status host_map(Device *device, Handle memory, enum Access access, void **out) {
  (void)device, (void)access;
  *out = memory;
  return 0;
}

static void host_finish(Device *device) { (void)device; }

/* The rest is null: the host has no kernels, no queue to flush, and no other device uses its memory in place; of
 * its arena, the loader knows the places. */
const Driver devscope_driver_cpu = {
    .alloc = host_alloc,
    .free = host_free,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .copy_on = host_copy_on,
    .finish = host_finish,
    .map = host_map,
    .close = host_finish,
};
