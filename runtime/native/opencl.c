/* The driver of OpenCL devices: launches. The rest is in queues.c. */
#include "queues.h"

static Status set_arguments(Device *device, const Kernel *kernel, const int64_t *cells) {
  const ClQueue *queue = queue_of(device);
  for (int64_t index = 0; index < kernel->argument_count; index++) {
    int64_t size = kernel->sizes[index];
    const void *value = &cells[index];
    if (size == 0) {
      size = sizeof(cl_mem);
      ClBuffer *buffer = (ClBuffer *)(intptr_t)cells[index];
      /* There is none for a descriptor that nobody filled in. */
      if (buffer) {
        value = &buffer->common.memory;
        TRY(use(device, buffer));
      }
    } else if (size < 0) {
      /* OpenCL wants the amount of local memory, at least 1, and no value. */
      size = max(local_bytes(size, cells[index]), 1);
      value = NULL;
    }
    TRY(queue->cl->clSetKernelArg(kernel->handle, (uint32_t)index, (size_t)size, value));
  }
  return 0;
}

static Status opencl_launch(Device *device, const Kernel *kernel, const LaunchSize *size, const int64_t *cells) {
  const ClQueue *queue = queue_of(device);
  TRY(set_arguments(device, kernel, cells));
  size_t global[3], local[3];
  for (int axis = 0; axis < 3; axis++) {
    /* OpenCL counts work items where devscope counts workgroups. */
    global[axis] = (size_t)size->grid[axis] * (size_t)size->block[axis];
    local[axis] = (size_t)size->block[axis];
  }
  cl_event event = NULL;
  TRY(queue->cl->clEnqueueNDRangeKernel(queue->queue, kernel->handle, 3, NULL, global, local, 0, NULL, &event));
  issue(device, event);
  return 0;
}

EXPORT const Driver devscope_driver_opencl = {
    QUEUE_DRIVER,
    .launch = opencl_launch,
    .lend = queue_lend,
    .lend_done = queue_lend_done,
};
