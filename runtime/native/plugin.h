/* What a vendor implements whose devices devscope runs programs on: one table of functions. It includes nothing of
 * devscope but this file, and is linked with nothing of it.
 *
 * Functions return 0, else a status that `error` has words for. They are called by one thread at a time for a
 * device, and have done what they say when they return. */
#ifndef DEVSCOPE_PLUGIN_H
#define DEVSCOPE_PLUGIN_H

#include <stdint.h>

enum { DEVSCOPE_DEVICE_TABLE_VERSION = 1 };

typedef struct {
  int64_t size;    /* sizeof(DevscopeDeviceTable) of whoever compiled the table; later versions append fields */
  int64_t version; /* DEVSCOPE_DEVICE_TABLE_VERSION */

  /* The devices of this machine, numbered from 0. */
  int64_t (*count)(void);
  const char *(*describe)(int64_t number);
  int64_t (*memory_bytes)(int64_t number);
  int32_t (*open)(int64_t number, void **device);
  void (*close)(void *device);

  /* Memory, whose handles mean something to the device only; offsets and sizes are in bytes. */
  int32_t (*alloc)(void *device, int64_t bytes, void **memory);
  int32_t (*free)(void *device, void *memory);
  int32_t (*copy_in)(void *device, void *memory, int64_t offset, const void *host, int64_t bytes);
  int32_t (*copy_out)(void *device, void *memory, int64_t offset, void *host, int64_t bytes);
  int32_t (*copy_on)(void *device, void *from, int64_t from_offset, void *to, int64_t to_offset, int64_t bytes);

  /* What the backend's codegen gave as a device binary, and a kernel of that. */
  int32_t (*build)(void *device, const void *binary, int64_t bytes, void **program);
  void (*release)(void *device, void *program);
  int32_t (*kernel)(void *device, void *program, const char *name, void **kernel);

  /* `cells`: of each operand and then of each result its memory handle and its sizes, of a number its bits. */
  int32_t (*launch)(void *device, void *kernel, const int64_t *cells, int64_t count);

  const char *(*error)(int32_t status);
} DevscopeDeviceTable;

#endif
