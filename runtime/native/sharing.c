/* Memory that the host or several devices use in place. Compiled code that calls these is loaded only where
 * devices reach each other's memory as it expects. */
#include "runtime.h"

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
    if (!status)
      return memory;
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
