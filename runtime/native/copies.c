/* Copies between slots and of strided memory on the host; memory that is used in place instead. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

/* One end of a copy. */
typedef struct {
  int64_t slot;
  Device *device;
  Handle handle;
  int64_t offset;
} End;

static void *host_address(const End *end) { return (char *)end->handle + end->offset; }

static Status copy_in(const End *target, const void *host, int64_t bytes) {
  return target->device->driver->copy_in(target->device, target->handle, target->offset, host, bytes);
}

static Status copy_out(const End *source, void *host, int64_t bytes) {
  return source->device->driver->copy_out(source->device, source->handle, source->offset, host, bytes);
}

/* True if the copy was made, else the error is recorded. */
static bool report(Status status, const End *culprit, int64_t bytes) {
  if (status)
    fail(ORIGIN_DRIVER, status, OPERATION_COPY, culprit->slot, bytes);
  return status == 0;
}

/* Devices that cannot reach each other copy through a host buffer of at most 4 MiB. */
static bool copy_staged(End source, End target, int64_t bytes) {
  const int64_t chunk = min(bytes, 4 << 20);
  void *bounce = malloc((size_t)chunk);
  if (!bounce) {
    fail(ORIGIN_RUNTIME, CODE_OUT_OF_HOST_MEMORY, OPERATION_COPY, source.slot, chunk);
    return false;
  }
  bool made = true;
  for (int64_t left = bytes; made && left > 0; left -= chunk) {
    int64_t part = min(left, chunk);
    made = report(copy_out(&source, bounce, part), &source, bytes) &&
           report(copy_in(&target, bounce, part), &target, bytes);
    source.offset += part;
    target.offset += part;
  }
  free(bounce);
  return made;
}

static bool are_near(const Device *one, const Device *two) {
  return one->driver == two->driver && one->domain == two->domain;
}

static bool copy(const End *source, const End *target, int64_t bytes) {
  bool from_host = is_host(source->device), to_host = is_host(target->device);
  if (from_host && to_host) {
    memmove(host_address(target), host_address(source), (size_t)bytes);
    return true;
  }
  if (failed())
    return false;
  if (are_near(source->device, target->device))
    return report(source->device->driver->copy_on(source->device, source->handle, source->offset, target->device,
                                                  target->handle, target->offset, bytes),
                  target, bytes);
  if (from_host)
    return report(copy_in(target, host_address(source), bytes), target, bytes);
  if (to_host)
    return report(copy_out(source, host_address(target), bytes), source, bytes);
  return copy_staged(*source, *target, bytes);
}

void devscope_copy(int64_t source_slot, Handle from, int64_t from_offset, int64_t target_slot, Handle to,
                   int64_t to_offset, int64_t bytes) {
  const End source = {source_slot, device_at(source_slot, OPERATION_COPY), from, from_offset};
  const End target = {target_slot, device_at(target_slot, OPERATION_COPY), to, to_offset};
  if (!source.device || !target.device || bytes == 0)
    return;
  if (bytes < 0) {
    fail(ORIGIN_RUNTIME, CODE_NEGATIVE_SIZE, OPERATION_COPY, target_slot, bytes);
    return;
  }
  if (copy(&source, &target, bytes)) {
    Traffic *cell = &devscope_context->traffic[source_slot * devscope_context->device_count + target_slot];
    cell->copies++;
    cell->bytes += bytes;
    if (is_host(target.device))
      read_status(source_slot);
  } else {
    leave_if_interrupted();
    if (is_host(target.device) && to)
      memset(host_address(&target), 0, (size_t)bytes);
  }
}

/* Copies the outermost of so many dimensions slice by slice; as deep as the rank. A last dimension that is dense
 * on both sides is one run of bytes. */
static void copy_strided(int64_t rank, int64_t element_bytes, const int64_t *sizes, const int64_t *from_strides,
                         const int64_t *to_strides, const char *from, char *to) {
  if (rank == 0 || (rank == 1 && *from_strides == 1 && *to_strides == 1)) {
    memmove(to, from, (size_t)((rank ? *sizes : 1) * element_bytes));
    return;
  }
  for (int64_t index = 0; index < *sizes; index++) {
    copy_strided(rank - 1, element_bytes, sizes + 1, from_strides + 1, to_strides + 1, from, to);
    from += *from_strides * element_bytes;
    to += *to_strides * element_bytes;
  }
}

static char *first_element(const int64_t *descriptor, int64_t element_bytes) {
  return (char *)(intptr_t)descriptor[ALIGNED] + descriptor[OFFSET] * element_bytes;
}

/* MLIR lowers memref.copy of strided buffers to a call of this function of its C runtime library. */
void memrefCopy(int64_t element_bytes, UnrankedMemref *from, UnrankedMemref *to) {
  const int64_t rank = from->rank;
  const int64_t *sizes = from->descriptor + SIZES;
  copy_strided(rank, element_bytes, sizes, sizes + rank, to->descriptor + SIZES + rank,
               first_element(from->descriptor, element_bytes), first_element(to->descriptor, element_bytes));
}

/* --------------------------------------------------------------------------------------- memory in place
 * Memory that the host or several devices use in place. Compiled code that calls these is loaded only where
 * devices reach each other's memory as it expects. */

static void *refuse(int64_t slot, Handle handle, Status status) {
  return fail(ORIGIN_DRIVER, status, OPERATION_COPY, slot, ((Buffer *)handle)->used);
}

/* Where the host reaches a buffer of a device, when that may be used as `access` (an enum Access) says. Host code
 * cannot run on without the memory: a failure leaves the call. */
void *devscope_map(int64_t slot, Handle handle, int64_t access) {
  Device *device = device_at(slot, OPERATION_COPY);
  if (!failed() && handle) {
    void *memory = NULL;
    Status status = device->driver->map(device, handle, (enum Access)access, &memory);
    if (!status) {
      if (access == ACCESS_READ)
        read_status(slot);
      return memory;
    }
    refuse(slot, handle, status);
  }
  /* The error is recorded already. */
  stop(CODE_OUT_OF_HOST_MEMORY, OPERATION_COPY, 0);
}

/* Nothing else points there until compiled code says that others look at it: LLVM may take it for memory of its
 * own. */
void *devscope_map_new(int64_t slot, Handle handle) { return devscope_map(slot, handle, ACCESS_NEW_CONTENTS); }

/* A device's buffer for another device, which only reads it, from what the first one has enqueued so far; null
 * with the error recorded. It is the buffer's, and used until devscope_view_done. */
Handle devscope_view(int64_t slot, Handle handle, int64_t user_slot) {
  Device *device = device_at(slot, OPERATION_COPY);
  Device *user = device_at(user_slot, OPERATION_COPY);
  if (failed() || !handle)
    return NULL;
  Handle view = NULL;
  Status status = device->driver->view(device, handle, user, &view);
  return status ? refuse(user_slot, handle, status) : view;
}

/* What uses the buffer from now on waits for what used the view. */
void devscope_view_done(int64_t slot, Handle handle, int64_t user_slot, Handle view) {
  Device *device = device_at(slot, OPERATION_COPY);
  Device *user = device_at(user_slot, OPERATION_COPY);
  if (!device || !user || !view)
    return;
  Status status = device->driver->view_done(device, handle, user, view);
  if (status)
    refuse(user_slot, handle, status);
}
