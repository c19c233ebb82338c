/* The threads of the process, under ThreadSanitizer where the compiler has it. Compiled behind the runtime's
 * sources, in which pthread_create is give_thread. */
#undef NDEBUG
#undef pthread_create
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
pid_t waitpid(pid_t, int *, int); /* its header has a "wait", as the runtime has */

enum { CALLERS = 4, MOST = 300 };

static _Atomic bool refusing;
static _Atomic int refused;

int give_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
  if (!refusing)
    return pthread_create(thread, attributes, function, argument);
  refused++;
  return 11; /* EAGAIN */
}

/* What a job has done: plain numbers, so that tasks that ran twice, or after the job, would be races. */
typedef struct {
  int64_t times[MOST];
} Work;

static void count_one(void *environment, int64_t number) { ((Work *)environment)->times[number]++; }

static void check(const Work *work, int64_t count, int64_t times) {
  for (int64_t number = 0; number < MOST; number++)
    assert(work->times[number] == (number < count ? times : 0));
}

static int32_t never(void) { return 0; }

static void run_jobs(unsigned seed, int64_t threads, int rounds) {
  for (int round = 0; round < rounds; round++) {
    Work work = {0};
    const int64_t count = rand_r(&seed) % (round % 8 ? 9 : MOST);
    assert(devscope_pool_run(count_one, &work, count, threads, never) == TASKS_DONE);
    check(&work, count, 1);
  }
}

/* What a job has done, and the first of its tasks that another thread than that of the job has done. */
typedef struct {
  Work work;
  _Atomic int64_t of_other;
  pthread_t caller;
} Halves;

static void wait_for_other(void *environment, int64_t number) {
  Halves *halves = environment;
  int64_t none = -1;
  if (!pthread_equal(pthread_self(), halves->caller))
    atomic_compare_exchange_strong(&halves->of_other, &none, number);
  else
    while (halves->of_other < 0)
      sched_yield();
  count_one(&halves->work, number);
}

/* Each thread begins with tasks that stand side by side. The first test: of two threads. */
static void test_shares(void) {
  for (int round = 0; round < 20; round++) {
    Halves halves = {.of_other = -1, .caller = pthread_self()};
    assert(devscope_pool_run(wait_for_other, &halves, 101, 2, never) == TASKS_DONE);
    check(&halves.work, 101, 1);
    assert(halves.of_other == 50);
  }
}

static void test_numbers_of_threads(void) {
  static const int threads[] = {2, 1, 3, 64, 4, 7};
  for (int index = 0; index < 6; index++)
    run_jobs((unsigned)index, threads[index], 400);
  assert(pool.workers == 63);
}

static void *run_many(void *seed) {
  run_jobs((unsigned)(intptr_t)seed, 2 + (intptr_t)seed % 3, 3000);
  return NULL;
}

static void test_callers(void) {
  pthread_t callers[CALLERS];
  for (intptr_t index = 0; index < CALLERS; index++)
    assert(pthread_create(&callers[index], NULL, run_many, (void *)index) == 0);
  for (int index = 0; index < CALLERS; index++)
    pthread_join(callers[index], NULL);
  assert((uint32_t)pool.users == 0);
}

static int32_t not_asked(void) { abort(); }

static void nest(void *environment, int64_t number) {
  Work inner = {0};
  assert(devscope_pool_run(count_one, &inner, 7, 4, not_asked) == TASKS_DONE);
  check(&inner, 7, 1);
  count_one(environment, number);
}

static void test_nested(void) {
  for (int threads = 1; threads < 4; threads++) {
    Work work = {0};
    assert(devscope_pool_run(nest, &work, 50, threads, never) == TASKS_DONE);
    check(&work, 50, 1);
  }
}

static _Atomic int asked;
static int32_t after_ten(void) { return ++asked > 10; }

static void test_leave(void) {
  for (int threads = 1; threads < 4; threads++)
    for (int round = 0; round < 200; round++) {
      Work work = {0};
      asked = 0;
      const int32_t result = devscope_pool_run(count_one, &work, MOST, threads, after_ten);
      int64_t sum = 0;
      /* Of each thread's share, the first ones. */
      for (int64_t number = 0; number < MOST; number++) {
        const bool begins = number % (MOST / threads) == 0;
        assert(work.times[number] <= (begins ? 1 : work.times[number - 1]));
        sum += work.times[number];
      }
      const Work then = work;
      assert(result == (asked > 10 ? TASKS_LEFT : TASKS_DONE) && (result == TASKS_LEFT || sum == MOST));
      assert(threads > 1 || sum == 10);
      assert(memcmp(&work, &then, sizeof work) == 0); /* nothing runs any more */
    }
}

/* The first task is long: the thread of the job sleeps until it is done, unless it does it itself. */
static void sleep_first(void *environment, int64_t number) {
  if (number < 2)
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
  count_one(environment, number);
}

static void test_long_tasks(void) {
  for (int round = 0; round < 20; round++) {
    Work work = {0};
    assert(devscope_pool_run(sleep_first, &work, 10, 3, never) == TASKS_DONE);
    check(&work, 10, 1);
  }
}

static _Atomic int handled;
static _Atomic pthread_t handler_thread;
static void handle(int number) {
  (void)number;
  handler_thread = pthread_self();
  handled++;
}

static void raise_signals(void *environment, int64_t number) {
  kill(getpid(), SIGUSR1);
  nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  count_one(environment, number);
}

static void test_signals(void) {
  signal(SIGUSR1, handle);
  Work work = {0};
  assert(devscope_pool_run(raise_signals, &work, 100, 8, never) == TASKS_DONE);
  check(&work, 100, 1);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  assert(!sigismember(&mask, SIGUSR1) && handled && pthread_equal(handler_thread, pthread_self()));
}

static void test_no_threads(void) {
  refusing = true;
  pool.workers = 0;
  pool.process = 0; /* as after a fork */
  run_jobs(1, 4, 50);
  assert(pool.workers == 0 && refused == 1);
  refusing = false;
  pool.refused = exact_time() - REFUSED_NS;
  run_jobs(1, 4, 50);
  assert(pool.workers == 3);
}

/* --------------------------------------------------------------------------------- waiting in another thread */

/* Of an event: whether it may end, how often it was waited for and dropped, and its status. */
typedef struct {
  _Atomic bool over;
  _Atomic int waited, dropped;
  int32_t status;
} Event;

static int32_t wait_for_one(uint32_t count, void *const *events) {
  Event *event = events[0];
  assert(count == 1 && !event->dropped);
  while (!event->over)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  event->waited++;
  return event->status;
}

static int32_t drop_event(void *event) {
  ((Event *)event)->dropped++;
  return 0;
}

static int32_t wait_apart(Event *event, Leave *leave, int32_t *status) {
  return devscope_wait_apart(wait_for_one, drop_event, event, leave, status);
}

static Event first, second;

/* As a handler of a signal that uses a device: the thread is busy. */
static int32_t end_at_last(void) {
  int32_t status = 0;
  assert(wait_apart(&second, never, &status) == WAIT_REFUSED && !second.waited && !second.dropped);
  if (++asked == 3)
    first.over = true;
  return 0;
}

static int32_t at_once(void) { return 1; }

static void test_waits(void) {
  for (int round = 0; round < 2000; round++) {
    Event event = {.over = true, .status = -round};
    int32_t status = 1;
    assert(wait_apart(&event, never, &status) == WAIT_DONE && status == -round);
    assert(event.waited == 1 && event.dropped == 1);
  }
  asked = 0;
  int32_t status = 1;
  assert(wait_apart(&first, end_at_last, &status) == WAIT_DONE && status == 0 && asked == 3);
  /* The call is left, the thread goes on. */
  assert(wait_apart(&second, at_once, &status) == WAIT_LEFT && !second.dropped);
  Event last = {.over = true};
  assert(wait_apart(&last, never, &status) == WAIT_REFUSED);
  second.over = true;
  while (!second.dropped)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  while (wait_apart(&last, never, &status) == WAIT_REFUSED) /* the thread says so a moment later */
    ;
  assert(last.waited == 1 && second.waited == 1);
}

/* The first wait of the process: a second thread beside a first one would wait for the same events. */
static void test_no_thread_to_wait(void) {
  Event event = {.over = true};
  int32_t status;
  refusing = true;
  assert(wait_apart(&event, never, &status) == WAIT_REFUSED && !event.dropped);
  refusing = false;
  assert(wait_apart(&event, never, &status) == WAIT_DONE && event.dropped == 1);
}

/* --------------------------------------------------------------------------------------------------- forks */

static void expect_done(pid_t child) {
  int status = -1;
  assert(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* While nothing runs: the pool makes threads anew, in the new process and in one forked from that. */
static void test_fork(int depth) {
  run_jobs(1, 4, 10);
  const pid_t child = fork();
  if (child == 0) {
    test_callers();
    run_jobs(1, 4, 10);
    assert(pool.process == getpid() && pool.workers == 3);
    if (depth)
      test_fork(depth - 1);
    _exit(0);
  }
  expect_done(child);
}

static _Atomic bool begun, go_on;

static void wait_to_go_on(void *environment, int64_t number) {
  begun = true;
  while (!go_on)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  count_one(environment, number);
}

static void *run_waiting(void *work) {
  assert(devscope_pool_run(wait_to_go_on, work, 20, 4, never) == TASKS_DONE);
  return NULL;
}

/* While another thread has a job, and so the pool. */
static void test_fork_beside_a_job(void) {
  Work work = {0};
  pthread_t caller;
  assert(pthread_create(&caller, NULL, run_waiting, &work) == 0);
  while (!begun)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  const pid_t child = fork();
  if (child == 0) {
    test_callers();
    run_jobs(1, 4, 10);
    assert(pool.process == getpid() && pool.workers == 3);
    _exit(0);
  }
  expect_done(child);
  go_on = true;
  pthread_join(caller, NULL);
  check(&work, 20, 1);
}

static pid_t forked;

static int32_t fork_once(void) {
  if (begun && forked < 0)
    forked = fork();
  return 0;
}

/* A worker takes a task and holds it while the thread of the job forks in the handler of a signal. */
static void hold(void *environment, int64_t number) {
  if (!pthread_equal(pthread_self(), *(pthread_t *)environment)) {
    begun = true;
    while (!go_on)
      nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  } else if (number < 10) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
  if (forked > 0)
    go_on = true;
}

static void test_fork_in_a_job(void) {
  pthread_t me = pthread_self();
  begun = go_on = false;
  forked = -1;
  const int32_t result = devscope_pool_run(hold, &me, 20, 2, fork_once);
  assert(forked >= 0);
  if (forked == 0) {
    assert(result == TASKS_LOST);
    run_jobs(1, 4, 50);
    _exit(0);
  }
  assert(result == TASKS_DONE);
  expect_done(forked);
}

/* In the middle of a wait, which the new process does not have. */
static int32_t fork_and_end(void) {
  if (forked < 0)
    forked = fork();
  first.over = true;
  return forked == 0;
}

static void test_fork_in_a_wait(void) {
  int32_t status;
  first = (Event){0};
  forked = -1;
  const int32_t result = wait_apart(&first, fork_and_end, &status);
  if (forked == 0) {
    assert(result == WAIT_LEFT && !first.waited);
    assert(wait_apart(&first, never, &status) == WAIT_DONE && first.waited == 1);
    _exit(0);
  }
  assert(result == WAIT_DONE);
  expect_done(forked);
}

static double processor_time(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void test_quiet(void) {
  run_jobs(1, 8, 50);
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  const double before = processor_time();
  nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  assert(processor_time() - before < 0.01);
}

static void test_forks(void) {
  test_fork(1);
  test_fork_beside_a_job();
  test_fork_in_a_job();
  test_fork_in_a_wait();
}

int main(int argument_count, char **arguments) {
  (void)arguments;
  test_shares();
  test_numbers_of_threads();
  test_callers();
  test_nested();
  test_leave();
  test_long_tasks();
  test_signals();
  test_no_threads();
  test_no_thread_to_wait();
  test_waits();
  test_quiet();
  if (argument_count > 1) /* sanitizers do not follow forks of threads */
    test_forks();
  puts("done");
  return 0;
}
