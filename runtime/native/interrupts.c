/* Calls that end early: because a handler of a signal raised an exception, or because the process ends.
 *
 * The interpreter handles signals in its main thread, and only when that runs Python. So a call of that thread
 * asks from time to time whether there are any: loops of compiled code do, when they have used up their budget,
 * and waits for devices. Both ask the clock first: the interpreter's lock is taken every 50 ms. */
#include "runtime.h"

#include <time.h>

int64_t devscope_budget = 1;

/* While memory is freed that a device may use, waits end with the work. */
static bool must_finish = false;

static struct {
  int64_t asked;  /* when the interpreter was, in ns */
  int64_t polled; /* when devscope_poll was called last */
  int64_t given;  /* the budget that it gave */
} clock_of_call;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void begin_interrupts(void) {
  clock_of_call.asked = clock_of_call.polled = 0;
  devscope_budget = clock_of_call.given = 1;
}

/* Handlers run here: they may call another copy of the program, which has globals of its own. */
static bool raised(const Interpreter *interpreter) {
  Context *context = devscope_context;
  int32_t state = interpreter->lock();
  bool raised = interpreter->handle_signals() != 0;
  if (raised)
    interpreter->take_exception(&context->raised[0], &context->raised[1], &context->raised[2]);
  interpreter->unlock(state);
  return raised;
}

/* Whether the call is to be left, which is recorded then. */
static bool interrupted(void) {
  const Error *error = &devscope_context->error;
  if (error->origin == ORIGIN_RUNTIME && (error->code == CODE_INTERRUPTED || error->code == CODE_ENDED))
    return !must_finish;
  if (failed() || must_finish)
    return false;
  if (*(volatile int64_t *)&devscope_context->ended) {
    fail(ORIGIN_RUNTIME, CODE_ENDED, OPERATION_ASSERT, 0, 0);
    return true;
  }
  const Interpreter *interpreter = devscope_context->interpreter;
  const int64_t time = now();
  if (!interpreter || time - clock_of_call.asked < 50000000)
    return false;
  bool first = clock_of_call.asked == 0; /* the interpreter ran a moment ago */
  clock_of_call.asked = time;
  if (first || !raised(interpreter))
    return false;
  fail(ORIGIN_RUNTIME, CODE_INTERRUPTED, OPERATION_ASSERT, 0, 0);
  return true;
}

/* After a wait that ended for this reason. */
static void leave_if_interrupted(void) {
  const Error *error = &devscope_context->error;
  if (error->origin == ORIGIN_RUNTIME && (error->code == CODE_INTERRUPTED || error->code == CODE_ENDED))
    _longjmp(*devscope_context->stop, 1);
}

/* The budget doubles while it is used up faster than the (coarse) clock ticks. */
void devscope_poll(void) {
  const int64_t time = now();
  const bool fast = time == clock_of_call.polled;
  clock_of_call.polled = time;
  clock_of_call.given = fast ? min(2 * clock_of_call.given, 1 << 20) : max(clock_of_call.given / 2, 1);
  devscope_budget = clock_of_call.given;
  if (interrupted())
    leave_if_interrupted();
}
