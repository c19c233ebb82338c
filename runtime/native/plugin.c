/* The driver of devices that a vendor's table of functions is for, see plugin.h. The host waits for all it asks
 * for. */
#include "plugin.h"
#include "runtime.h"

#include <stdlib.h>

/* The state of a device, which the loader makes (plugin_devices.py has this struct once more). */
typedef struct {
  const DevscopeDeviceTable *table;
  void *device;
} Plugin;

enum { PLUGIN_OUT_OF_HOST_MEMORY = -1, PLUGIN_MISSING = -2 };

static const DevscopeDeviceTable *table_of(const Device *device) { return ((const Plugin *)device->state)->table; }
static void *plugin_of(const Device *device) { return ((const Plugin *)device->state)->device; }
static void *plugin_memory(Handle handle) { return ((const Buffer *)handle)->memory; }

static Status plugin_alloc(Device *device, int64_t bytes, Handle *out) {
  Buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer)
    return PLUGIN_OUT_OF_HOST_MEMORY;
  Status status = table_of(device)->alloc(plugin_of(device), bytes, &buffer->memory);
  if (status) {
    free(buffer);
    return status;
  }
  buffer->size = bytes;
  *out = buffer;
  return 0;
}

static Status plugin_free(Device *device, Handle handle) {
  Status status = table_of(device)->free(plugin_of(device), plugin_memory(handle));
  free(handle);
  return status;
}

static Status plugin_copy_in(Device *device, Handle handle, int64_t offset, const void *host, int64_t bytes) {
  return table_of(device)->copy_in(plugin_of(device), plugin_memory(handle), offset, host, bytes);
}

static Status plugin_copy_out(Device *device, Handle handle, int64_t offset, void *host, int64_t bytes) {
  return table_of(device)->copy_out(plugin_of(device), plugin_memory(handle), offset, host, bytes);
}

static Status plugin_copy_on(Device *device, Handle from, int64_t from_offset, Device *target, Handle to,
                             int64_t to_offset, int64_t bytes) {
  (void)target; /* of the same domain, which is the device */
  return table_of(device)->copy_on(plugin_of(device), plugin_memory(from), from_offset, plugin_memory(to),
                                   to_offset, bytes);
}

static Status plugin_launch(Device *device, const Kernel *kernel, const LaunchSize *size, const int64_t *cells) {
  (void)size;
  int64_t *values = malloc((size_t)max(kernel->argument_count, 1) * sizeof *values);
  if (!values)
    return PLUGIN_OUT_OF_HOST_MEMORY;
  for (int64_t index = 0; index < kernel->argument_count; index++) {
    const bool is_buffer = kernel->sizes[index] == 0 && cells[index];
    values[index] = is_buffer ? (int64_t)(intptr_t)plugin_memory((Handle)(intptr_t)cells[index]) : cells[index];
  }
  Status status = table_of(device)->launch(plugin_of(device), kernel->handle, values, kernel->argument_count);
  free(values);
  return status;
}

static Status plugin_flush(Device *device) {
  (void)device;
  return 0;
}

static void plugin_finish(Device *device) { (void)device; }

static Status plugin_map(Device *device, Handle handle, enum Access access, void **out) {
  (void)device, (void)handle, (void)access, (void)out;
  return PLUGIN_MISSING;
}

static Status plugin_view(Device *device, Handle handle, Device *user, Handle *out) {
  (void)device, (void)handle, (void)user, (void)out;
  return PLUGIN_MISSING;
}

static Status plugin_view_done(Device *device, Handle handle, Device *user, Handle view) {
  (void)device, (void)handle, (void)user, (void)view;
  return PLUGIN_MISSING;
}

/* Its alignment says that each place of an arena is memory of its own. */
static Status plugin_part(Device *device, Arena *arena, int64_t offset, int64_t bytes, Handle *out) {
  (void)device, (void)arena, (void)offset, (void)bytes, (void)out;
  return PLUGIN_MISSING;
}

/* What runs on these devices are kernels of the backend. */
static Status plugin_lend(Device *device, void **buffers, int64_t count, void **queue) {
  (void)device, (void)buffers, (void)count, (void)queue;
  return PLUGIN_MISSING;
}

static Status plugin_lend_done(Device *device) {
  (void)device;
  return PLUGIN_MISSING;
}

static void plugin_renew(Device *device, Handle handle) { (void)device, (void)handle; }

static void plugin_close(Device *device) { (void)device; }

EXPORT const Driver devscope_driver_plugin = {
    .alloc = plugin_alloc,
    .free = plugin_free,
    .copy_in = plugin_copy_in,
    .copy_out = plugin_copy_out,
    .copy_on = plugin_copy_on,
    .launch = plugin_launch,
    .flush = plugin_flush,
    .finish = plugin_finish,
    .map = plugin_map,
    .view = plugin_view,
    .view_done = plugin_view_done,
    .part = plugin_part,
    .renew = plugin_renew,
    .close = plugin_close,
    .lend = plugin_lend,
    .lend_done = plugin_lend_done,
};
