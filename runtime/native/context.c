/* Errors, and the calls of a program from their begin to their end. */
#include "runtime.h"

const char devscope_sources[] = DEVSCOPE_SOURCES;

/* Records the first error of a call; null, for the caller to return. */
__attribute__((cold)) static void *fail(enum Origin origin, int64_t code, enum Operation operation, int64_t slot,
                                        int64_t detail) {
  Error *error = &devscope_context->error;
  if (error->origin == ORIGIN_NONE)
    *error = (Error){.origin = origin, .code = code, .operation = operation, .slot = slot, .detail = detail};
  return NULL;
}

/* Leaves the call. Everything that runs on the host's behalf is compiled code: no frame in between needs to be
 * unwound. */
__attribute__((cold)) static _Noreturn void stop(enum Code code, enum Operation operation, int64_t detail) {
  fail(ORIGIN_RUNTIME, code, operation, 0, detail);
  _longjmp(*devscope_context->stop, 1);
}

/* message: a C string that outlives the call; one, other: what it may say. */
__attribute__((cold)) _Noreturn void devscope_fail_assertion(const char *message, int64_t one, int64_t other) {
  if (!failed()) {
    fail(ORIGIN_RUNTIME, CODE_ASSERTION_FAILED, OPERATION_ASSERT, 0, (intptr_t)message);
    devscope_context->error.numbers[0] = one;
    devscope_context->error.numbers[1] = other;
  }
  stop(CODE_ASSERTION_FAILED, OPERATION_ASSERT, (intptr_t)message);
}

/* _setjmp: with the underscore it leaves the signal mask alone, which would take a system call. */
int32_t devscope_call(Context *context, Entry *entry, void **pointers) {
  jmp_buf here;
  devscope_context = context;
  context->stop = &here;
  context->calls++;
  begin_interrupts();
  context->blocks.next = context->blocks.previous = &context->blocks;
  host_take_back();
  drop_next_states();
  if (_setjmp(here) == 0) {
    entry(pointers);
    for (int64_t slot = 1; slot < context->device_count; slot++)
      read_status(slot);
  }
  take_next_states();
  if (!failed())
    return 0;
  host_free_all();
  free_live_buffers();
  forget_reports();
  return 1;
}

/* Waits for the work of all devices: queues use buffers of each other. */
static void finish_all(const Context *context) {
  for (int64_t slot = 1; slot < context->device_count; slot++)
    context->devices[slot].driver->finish(&context->devices[slot]);
}

void devscope_set_arena(Context *context, int64_t slot, int64_t bytes, void *memory) {
  devscope_context = context;
  finish_all(context);
  close_arena(slot);
  Arena *arena = &context->arenas[slot];
  arena->bytes = bytes;
  if (memory)
    for (int64_t number = 0; number < arena->place_count; number++)
      arena->places[number].memory = (char *)memory + arena->places[number].offset;
}

/* Buffers know events of other devices' queues: all buffers go before the first device. */
void devscope_close(Context *context) {
  devscope_context = context;
  finish_all(context);
  host_take_back();
  close_states();
  for (int64_t slot = 0; slot < context->device_count; slot++) {
    close_buffers(&context->devices[slot]);
    close_arena(slot);
  }
  for (int64_t slot = 1; slot < context->device_count; slot++)
    context->devices[slot].driver->close(&context->devices[slot]);
}
