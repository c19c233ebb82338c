/* What the files of the native runtime have in common and nobody else sees. They are compiled as one translation
 * unit (see compile_native.py): all of this is static, since whatever else is linked into a program may have the
 * same names. */
#ifndef DEVSCOPE_RUNTIME_H
#define DEVSCOPE_RUNTIME_H

#include "abi.h"

/* The context of the call that runs. */
static Context *devscope_context;

EXPORT extern const Driver devscope_driver_cpu;

/* Drivers refuse empty buffers, and equal sizes are what free lists can use. */
enum { ALIGNMENT = 64 };

/* Unsigned, since a size that makes no sense must not overflow; it is refused later. */
static inline int64_t round_up(int64_t bytes) {
  return (int64_t)(((uint64_t)bytes + ALIGNMENT - 1) & -(uint64_t)ALIGNMENT);
}

static inline int64_t min(int64_t one, int64_t two) { return one < two ? one : two; }
static inline int64_t max(int64_t one, int64_t two) { return one > two ? one : two; }

/* Cells of a descriptor. */
enum { ALLOCATED, ALIGNED, OFFSET, SIZES };

/* errors and devices: context.c */

static inline bool failed(void) { return devscope_context->error.origin != ORIGIN_NONE; }
static inline bool is_host(const Device *device) { return device->driver == &devscope_driver_cpu; }

static void *fail(enum Origin origin, int64_t code, enum Operation operation, int64_t slot, int64_t detail);
static _Noreturn void stop(enum Code code, enum Operation operation, int64_t detail);

/* The device of a slot; null, with the error recorded, when the program has no such slot. */
static inline Device *device_at(int64_t slot, enum Operation operation) {
  if ((uint64_t)slot < (uint64_t)devscope_context->device_count)
    return &devscope_context->devices[slot];
  return fail(ORIGIN_RUNTIME, CODE_BAD_SLOT, operation, slot, devscope_context->device_count);
}

/* calls that are interrupted: interrupts.c */

static void begin_interrupts(void);
static bool interrupted(void);
static int32_t asked_to_leave(void);
static bool must_finish;
static void leave_if_interrupted(void);

/* blocks that Python has: python.c */

static Block *take_returned(Returned *returned);

/* host memory: host_memory.c */

static void host_take_back(void);
static void host_free_all(void);
static void ask_for_large_pages(void *memory, int64_t size);

/* free lists, buffers and arenas: buffers.c */

static Handle free_list_take(FreeList *list, int64_t bytes);
static bool free_list_keep(Device *device, Handle handle, int64_t bytes);
static void free_list_trim(Device *device, int64_t count, int64_t bytes);

static Handle obtain(int64_t slot, int64_t bytes);
static void free_live_buffers(void);
static void drop_next_states(void);
static void take_next_states(void);
static void close_states(void);
static void close_buffers(Device *device);
static void close_arena(int64_t slot);
static void read_status(int64_t slot);
static void forget_reports(void);

/* launches: launches.c */

static void start(Device *device);
static void start_all(void);
static uint64_t take_launched(void);
static int64_t local_bytes(int64_t size, int64_t cell);

#endif
