/* A thread that waits for devices in the place of the one that handles signals.
 *
 * A driver of a CPU device may have a worker less than there are cores, and let the thread that waits do its part:
 * without one, a core has nothing to do. The thread that handles signals must not be in the driver for long: so
 * another one is, and the first waits for that. */
#include "runtime.h"

#include <linux/futex.h>
#include <stdatomic.h>

enum { ASK_NS = 10000000 /* pauses between questions whether the call is to be left */ };

/* The thread has something to wait for while `given` and `done` differ; only then does it use the rest. */
static struct {
  _Alignas(64) _Atomic uint32_t given;
  _Alignas(64) _Atomic uint32_t done;
  WaitForEvent *wait;
  DropEvent *drop;
  void *event;
  int32_t status;
  pid_t process; /* whose thread it is */
} waiter;

static void *wait_for_events(void *unused) {
  (void)unused;
  for (;;) {
    const uint32_t given = atomic_load(&waiter.given);
    if (given == atomic_load(&waiter.done)) {
      futex(&waiter.given, FUTEX_WAIT_PRIVATE, given);
      continue;
    }
    waiter.status = waiter.wait(1, &waiter.event);
    waiter.drop(waiter.event);
    atomic_store(&waiter.done, given);
    futex(&waiter.done, FUTEX_WAKE_PRIVATE, 1);
  }
  return NULL;
}

/* Of one thread alone. A handler that runs in the middle, in `leave`, finds the thread busy. */
EXPORT int32_t devscope_wait_apart(WaitForEvent *wait, DropEvent *drop, void *event, Leave *leave,
                                   int32_t *status) {
  const pid_t here = getpid();
  if (waiter.process != here) { /* threads do not survive a fork */
    atomic_store(&waiter.done, atomic_load(&waiter.given));
    if (make_threads(wait_for_events, 0, 0, 1) == 0)
      return WAIT_REFUSED;
    waiter.process = here;
  }
  uint32_t number = atomic_load(&waiter.given), done;
  if (number++ != atomic_load(&waiter.done))
    return WAIT_REFUSED;
  waiter.wait = wait;
  waiter.drop = drop;
  waiter.event = event;
  atomic_store(&waiter.given, number);
  futex(&waiter.given, FUTEX_WAKE_PRIVATE, 1);
  while ((done = atomic_load(&waiter.done)) != number) {
    if (leave())
      return WAIT_LEFT;
    futex_for(&waiter.done, FUTEX_WAIT_PRIVATE, done, &(struct timespec){.tv_nsec = ASK_NS});
  }
  *status = waiter.status;
  return WAIT_DONE;
}
