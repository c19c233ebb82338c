/* Launches of kernels, work that libraries enqueue, and telling drivers to start. */
#include "runtime.h"

/* Tells the driver of a device to start what was enqueued. A failing flush is not recorded: the wait that needs
 * the work reports it. */
static void start(Device *device) {
  if (device->pending) {
    device->driver->flush(device);
    device->pending = 0;
  }
}

/* Called before the host waits for one device, so that the others work meanwhile. */
static void start_all(void) {
  for (int64_t slot = 0; slot < devscope_context->device_count; slot++)
    start(&devscope_context->devices[slot]);
}

/* Compiled code calls this when it has enqueued what it has for a device, and goes on to something else: the
 * device works meanwhile. */
void devscope_start(int64_t slot) {
  Device *device = device_at(slot, OPERATION_LAUNCH);
  if (device)
    start(device);
}

/* Bytes of workgroup-local memory that an argument asks for, whose size in the kernel's record is below 0. */
static int64_t local_bytes(int64_t size, int64_t cell) { return size == DYNAMIC_LOCAL_SIZE ? cell : -size; }

/* Records why a launch cannot be. False, for the caller to return. */
static bool refuse_launch(int64_t slot, int64_t index, enum Code code, int64_t size) {
  fail(ORIGIN_RUNTIME, code, OPERATION_LAUNCH, slot, index);
  devscope_context->error.size = size;
  return false;
}

/* A size below 1 is none; more than all work items of a workgroup, in one direction, is too much already. */
static bool check_size(int64_t slot, int64_t index, const LaunchSize *size) {
  const int64_t most = devscope_context->devices[slot].most_work_items;
  int64_t least = INT64_MAX, longest = 0;
  for (int axis = 0; axis < 3; axis++) {
    least = min(least, min(size->grid[axis], size->block[axis]));
    longest = max(longest, size->block[axis]);
  }
  if (least < 1)
    return refuse_launch(slot, index, CODE_BAD_LAUNCH_SIZE, least);
  if (longest > most)
    return refuse_launch(slot, index, CODE_TOO_MANY_WORK_ITEMS, longest);
  int64_t volume = size->block[0] * size->block[1] * size->block[2];
  return volume <= most || refuse_launch(slot, index, CODE_TOO_MANY_WORK_ITEMS, volume);
}

/* Local memory of 0 bytes counts as 1, since drivers take no less. */
static bool check_local_memory(int64_t slot, int64_t index, const int64_t *cells) {
  const Device *device = &devscope_context->devices[slot];
  const Kernel *kernel = &device->kernels[index];
  uint64_t total = 0;
  for (int64_t number = 0; kernel->local_count && number < kernel->argument_count; number++) {
    if (kernel->sizes[number] >= 0)
      continue;
    int64_t bytes = local_bytes(kernel->sizes[number], cells[number]);
    if (bytes < 0)
      return refuse_launch(slot, index, CODE_TOO_MUCH_LOCAL_MEMORY, bytes);
    total += (uint64_t)max(bytes, 1);
    if (total > (uint64_t)device->most_local)
      return refuse_launch(slot, index, CODE_TOO_MUCH_LOCAL_MEMORY, (int64_t)total);
  }
  return true;
}

static uint64_t launched;

/* Notes a launch: the kernel, its size and its numbers, but not its buffers. */
static void note_launch(const Kernel *kernel, const LaunchSize *size, const int64_t *cells) {
  uint64_t hash = (launched ^ (uint64_t)(intptr_t)kernel) * 0x9E3779B97F4A7C15;
  for (int axis = 0; axis < 3; axis++)
    hash = (hash ^ (uint64_t)size->grid[axis]) * 0x9E3779B97F4A7C15;
  for (int64_t index = 0; index < kernel->argument_count; index++)
    if (kernel->sizes[index] > 0)
      hash = ((hash >> 32) ^ hash ^ (uint64_t)cells[index]) * 0x9E3779B97F4A7C15;
  launched = hash;
}

/* What was launched since this was last asked, as a number. */
static uint64_t take_launched(void) {
  uint64_t hash = launched | 1;
  launched = 0;
  return hash;
}

void devscope_launch(int64_t slot, int64_t index, int64_t grid_x, int64_t grid_y, int64_t grid_z, int64_t block_x,
                     int64_t block_y, int64_t block_z, const int64_t *cells, int64_t cell_count) {
  Device *device = device_at(slot, OPERATION_LAUNCH);
  if (!device || failed() || !grid_x || !grid_y || !grid_z)
    return;
  if ((uint64_t)index >= (uint64_t)device->kernel_count) {
    fail(ORIGIN_RUNTIME, CODE_BAD_KERNEL, OPERATION_LAUNCH, slot, index);
    return;
  }
  const Kernel *kernel = &device->kernels[index];
  if (kernel->argument_count != cell_count) {
    fail(ORIGIN_RUNTIME, CODE_BAD_ARGUMENT_COUNT, OPERATION_LAUNCH, slot, index);
    return;
  }
  const LaunchSize size = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
  if (!check_size(slot, index, &size) || !check_local_memory(slot, index, cells))
    return;
  note_launch(kernel, &size, cells);
  Status status = device->driver->launch(device, kernel, &size, cells);
  if (status)
    fail(ORIGIN_DRIVER, status, OPERATION_LAUNCH, slot, index);
  else
    device->counters.launches++, device->unread = device->status != NULL;
}

void *devscope_lend(int64_t slot, void **buffers, int64_t count) {
  Device *device = device_at(slot, OPERATION_LEND);
  if (!device || failed())
    return NULL;
  void *queue = NULL;
  Status status = device->driver->lend(device, buffers, count, &queue);
  return status ? fail(ORIGIN_DRIVER, status, OPERATION_LEND, slot, 0) : queue;
}

void devscope_lend_done(int64_t slot) {
  Device *device = &devscope_context->devices[slot];
  Status status = device->driver->lend_done(device);
  if (status)
    fail(ORIGIN_DRIVER, status, OPERATION_LEND, slot, 0);
  else
    device->counters.launches++;
}
