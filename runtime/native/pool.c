/* The threads that all programs of a process share.
 *
 * A job is a number of tasks. Each thread, the one whose job it is and workers, has a share of them, tasks side by
 * side, and takes those of others when its own are done: so parts of arrays stay in the caches of one core from
 * job to job. The thread of the job waits only for tasks that somebody has begun, never for a worker to wake up.
 * One job runs at a time: a job of another thread meanwhile is done by its own thread until the pool is free, and
 * one of a task by the thread of that task. Threads that have jobs at the same time take up cores: there are so
 * many workers less in a job.
 *
 * Every program has a copy of this code, as of all of the runtime. The loader has one more copy, never unloaded,
 * and all programs use its threads (Context.run_tasks). Idle ones sleep. */
#include "runtime.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  /* How long a worker that has nothing to do looks out for the next job before it sleeps: longer than the code
   * between two loops of a program usually takes, and so short that nobody notices. */
  LOOK_OUT_NS = 20000,
  /* How long the thread of a job waits awake for others: waking it takes a tenth of this. */
  AWAKE_NS = 500000,
  /* After the system refused a thread, none is asked for. */
  REFUSED_NS = 1000000000,
  WORKER_STACK = 1 << 20,
  /* What a task may take of its thread's stack: `stack` of rows of schedules, and what else it needs. */
  TASK_STACK = (1 << 19) + (1 << 17),
  /* Of a job, at most; more threads begin in the same ones. */
  SHARES = 64,
};

/* In `users`: a job has the pool. */
#define TAKEN (UINT32_C(1) << 31)

/* The number of the job, in the upper half, and of the share's next task: a thread that comes too late takes
 * nothing. */
typedef struct {
  _Alignas(64) _Atomic uint64_t next;
} Share;

static struct {
  Share shares[SHARES];
  /* Of the job: its tasks are those from `first` on. They change only while shares say that there are no tasks. */
  _Alignas(64) _Atomic(Task *) task;
  _Atomic(void *) environment;
  _Atomic uint32_t first, count, share_count;
  /* How many tasks are done or left out, which the thread of the job may be waiting for. */
  _Alignas(64) _Atomic uint32_t done;
  _Atomic uint32_t awaited;
  /* The number of the job: what workers wait for. */
  _Alignas(64) _Atomic uint32_t job;
  _Atomic uint32_t sleeping;
  /* The number of the job, in the upper half, and how many more workers may take part. */
  _Atomic uint64_t places;
  /* The process, in the upper half, and how many of its threads have jobs. */
  _Alignas(64) _Atomic uint64_t users;
  /* How many workers have begun: each is known by its number, from 1 on. */
  _Atomic uint32_t begun;
  /* Of the thread that has taken the pool: the process whose workers these are, and when a thread was refused. */
  pid_t process;
  int32_t workers;
  int64_t refused;
} pool;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Not null in threads that do tasks. */
static pthread_key_t in_task;
/* Where the stack of a thread ends, once it was asked for. */
static pthread_key_t stack_end;
static bool usable;

static void make_keys(void) {
  usable = pthread_key_create(&in_task, NULL) == 0 && pthread_key_create(&stack_end, NULL) == 0;
}

static void futex_for(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *time) {
  syscall(SYS_futex, word, operation, value, time, NULL, 0);
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
  futex_for(word, operation, value, NULL);
}

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t exact_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline uint64_t of_job(uint32_t job, uint32_t number) { return (uint64_t)job << 32 | number; }

/* So many more are done. The last ones may have been waited for. */
static void add_done(uint32_t number, uint32_t count) {
  if (atomic_fetch_add(&pool.done, number) + number == count && atomic_load(&pool.awaited))
    futex(&pool.done, FUTEX_WAKE_PRIVATE, 1);
}

/* Where the tasks of a share begin, or those of the one before end. */
static uint32_t begin_of_share(uint32_t number, uint32_t first, uint32_t count, uint32_t shares) {
  return first + (uint32_t)((uint64_t)(count - first) * number / shares);
}

/* Takes tasks of a share of a job until there are none. */
static void take_share(uint32_t number, uint32_t job, Leave *leave, bool *left) {
  _Atomic uint64_t *place = &pool.shares[number].next;
  uint64_t next = atomic_load(place);
  while (next >> 32 == job) {
    const uint32_t at = (uint32_t)next, count = atomic_load(&pool.count);
    const uint32_t end =
        begin_of_share(number + 1, atomic_load(&pool.first), count, atomic_load(&pool.share_count));
    Task *task = atomic_load(&pool.task);
    void *environment = atomic_load(&pool.environment);
    if (at >= end)
      break;
    *left = *left || (leave && leave());
    /* Where this succeeds, what was read is the job's: shares change before anything else does. */
    if (!atomic_compare_exchange_weak(place, &next, *left ? of_job(job, end) : next + 1))
      continue;
    if (!*left)
      task(environment, at);
    add_done(*left ? end - at : 1, count);
    next = atomic_load(place);
  }
}

/* Takes tasks of a job, those of the thread's share first, until there are none. `leave`, asked between tasks, is
 * whether the rest is to be left out. */
static bool take_tasks(uint32_t job, uint32_t thread, Leave *leave) {
  bool left = false;
  const uint32_t shares = atomic_load(&pool.share_count);
  for (uint32_t number = 0; number < shares; number++)
    take_share((thread + number) % shares, job, leave, &left);
  return left;
}

/* ------------------------------------------------------------------------------------------------- workers */

static bool take_place(uint32_t job) {
  uint64_t places = atomic_load(&pool.places);
  while (places >> 32 == job && (uint32_t)places)
    if (atomic_compare_exchange_weak(&pool.places, &places, places - 1))
      return true;
  return false;
}

static void *work(void *argument) {
  uint32_t seen = 0;
  const uint32_t thread = atomic_fetch_add(&pool.begun, 1) + 1;
  pthread_setspecific(in_task, argument);
  for (;;) {
    uint32_t job = atomic_load(&pool.job);
    if (job == seen) {
      const int64_t until = exact_time() + LOOK_OUT_NS;
      while ((job = atomic_load(&pool.job)) == seen && exact_time() < until)
        for (int turn = 0; turn < 16; turn++)
          relax();
    }
    while (job == seen) {
      atomic_fetch_add(&pool.sleeping, 1);
      futex(&pool.job, FUTEX_WAIT_PRIVATE, seen);
      atomic_fetch_sub(&pool.sleeping, 1);
      job = atomic_load(&pool.job);
    }
    seen = job;
    if (take_place(job))
      take_tasks(job, thread, NULL);
  }
  return NULL;
}

/* For threads that are made: handlers of signals are for the threads of others; those of faults must find the
 * thread that is at fault. Returns what was blocked before. */
static sigset_t block_signals(void) {
  sigset_t all, before;
  sigfillset(&all);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  for (size_t index = 0; index < sizeof faults / sizeof *faults; index++)
    sigdelset(&all, faults[index]);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

/* Makes threads, of one size of stack (0: the usual one), until so many are there; gives how many are. */
static int32_t make_threads(void *(*function)(void *), size_t stack, int32_t there, int32_t wanted) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes))
    return there;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack)
    pthread_attr_setstacksize(&attributes, stack);
  const sigset_t before = block_signals();
  pthread_t thread;
  while (there < wanted && pthread_create(&thread, &attributes, function, &pool) == 0)
    there++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return there;
}

/* As many workers as are wanted, or as the system gives. */
static void make_workers(pid_t here, int32_t wanted) {
  if (pool.process != here) { /* threads do not survive a fork */
    pool.process = here;
    pool.workers = 0;
    pool.refused = 0;
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.begun, 0);
  }
  if (pool.workers >= wanted || (pool.refused && exact_time() - pool.refused < REFUSED_NS))
    return;
  pool.workers = make_threads(work, WORKER_STACK, pool.workers, wanted);
  pool.refused = pool.workers < wanted ? exact_time() : 0;
}

/* ---------------------------------------------------------------------------------------------------- jobs */

/* Takes the pool if it is free. `more` threads have a job from now on, 1 at the begin. Of the threads of a process
 * from which this one was forked, none is here. */
static bool enter(pid_t here, uint32_t more) {
  uint64_t old = atomic_load(&pool.users);
  uint32_t users;
  do
    users = old >> 32 == (uint32_t)here ? (uint32_t)old : 0;
  while (!atomic_compare_exchange_weak(&pool.users, &old, of_job((uint32_t)here, (users + more) | TAKEN)));
  return !(users & TAKEN);
}

static uint32_t users(void) { return (uint32_t)atomic_load(&pool.users); }

/* False in a process that was forked in the middle of the job: threads that were at tasks are not there any more.
 */
static bool wait_for_others(pid_t here, uint32_t count) {
  uint32_t done = atomic_load(&pool.done);
  const int64_t begin = done < count ? exact_time() : 0;
  for (int64_t waited = 0; done < count; waited = exact_time() - begin) {
    if (waited < LOOK_OUT_NS) {
      relax();
    } else if (getpid() != here) {
      return false;
    } else if (waited < AWAKE_NS) {
      syscall(SYS_sched_yield);
    } else {
      atomic_store(&pool.awaited, 1);
      futex(&pool.done, FUTEX_WAIT_PRIVATE, done);
    }
    done = atomic_load(&pool.done);
  }
  atomic_store(&pool.awaited, 0);
  return true;
}

/* The tasks from `first` on, with at most so many workers. This thread has the pool. */
static int32_t run_job(Task *task, void *environment, uint32_t first, uint32_t count, uint32_t workers,
                       Leave *leave, pid_t here) {
  make_workers(here, (int32_t)workers);
  const uint32_t job = atomic_load(&pool.job) + 1;
  const uint32_t shares = (uint32_t)min(min(workers + 1, count - first), SHARES);
  /* No tasks: a thread that is late in the job before takes none that it has read half of. */
  for (uint32_t number = 0; number < atomic_load(&pool.share_count); number++)
    atomic_store(&pool.shares[number].next, of_job(job, UINT32_MAX));
  atomic_store(&pool.task, task);
  atomic_store(&pool.environment, environment);
  atomic_store(&pool.first, first);
  atomic_store(&pool.count, count);
  atomic_store(&pool.share_count, shares);
  atomic_store(&pool.done, first);
  atomic_store(&pool.places, of_job(job, workers));
  for (uint32_t number = 0; number < shares; number++)
    atomic_store(&pool.shares[number].next, of_job(job, begin_of_share(number, first, count, shares)));
  atomic_store(&pool.job, job);
  if (atomic_load(&pool.sleeping))
    futex(&pool.job, FUTEX_WAKE_PRIVATE, workers);
  const bool left = take_tasks(job, 0, leave);
  if (!wait_for_others(here, count))
    return TASKS_LOST;
  return left ? TASKS_LEFT : TASKS_DONE;
}

/* glibc and musl declare it for _GNU_SOURCE only. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);

/* Whether the stack of this thread has room for a task. */
static bool has_room(void) {
  char *end = pthread_getspecific(stack_end);
  pthread_attr_t attributes;
  if (!end && pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void *lowest = NULL;
    size_t size = 0, guard = 0;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_getguardsize(&attributes, &guard);
    pthread_attr_destroy(&attributes);
    end = (char *)lowest + guard;
    pthread_setspecific(stack_end, end);
  }
  return (uintptr_t)__builtin_frame_address(0) - (uintptr_t)end >= TASK_STACK;
}

typedef struct {
  Task *task;
  void *environment;
  int64_t count, threads;
  int32_t result;
} Job;

static int32_t stay(void) { return false; }

static void *run_elsewhere(void *argument) {
  Job *job = argument;
  pthread_setspecific(stack_end, (void *)1); /* there is no other thread with more room */
  job->result = devscope_pool_run(job->task, job->environment, job->count, job->threads, stay);
  return NULL;
}

/* In a thread with a stack of its own, if there can be one. The thread of the call waits, so that nobody asks
 * whether the call is to be left. */
static bool has_run_elsewhere(Job *job) {
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes))
    return false;
  pthread_attr_setstacksize(&attributes, WORKER_STACK);
  const sigset_t before = block_signals();
  const bool runs = pthread_create(&thread, &attributes, run_elsewhere, job) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return runs && pthread_join(thread, NULL) == 0;
}

EXPORT int32_t devscope_pool_run(Task *task, void *environment, int64_t count, int64_t threads, Leave *leave) {
  pthread_once(&once, make_keys);
  if (usable && count > 0 && !has_room()) {
    Job job = {task, environment, count, threads, TASKS_DONE};
    if (has_run_elsewhere(&job))
      return job.result;
  }
  if (count <= 1 || !usable || pthread_getspecific(in_task)) {
    for (int64_t number = 0; number < count; number++)
      task(environment, number);
    return TASKS_DONE;
  }
  /* In a process that a handler has forked, which `leave` runs, this stays the other one's: no worker comes. */
  const pid_t here = getpid();
  const bool alone = threads <= 1 || count >= UINT32_MAX;
  bool mine = !alone && enter(here, 1);
  int32_t result = TASKS_DONE;
  pthread_setspecific(in_task, &pool);
  for (int64_t number = 0; number < count; number++) {
    if (!alone && !mine && !(users() & TAKEN))
      mine = enter(here, 0);
    const int64_t workers = mine ? min(threads - (users() & ~TAKEN), count - number - 1) : 0;
    if (workers > 0) {
      result = run_job(task, environment, (uint32_t)number, (uint32_t)count, (uint32_t)workers, leave, here);
      break;
    }
    if (leave()) {
      result = TASKS_LEFT;
      break;
    }
    task(environment, number);
  }
  pthread_setspecific(in_task, NULL);
  if (!alone)
    atomic_fetch_sub(&pool.users, mine ? TAKEN + 1 : 1);
  return result;
}

static int32_t asked_to_leave(void) { return interrupted(); }

/* Tasks neither allocate nor fail: only the thread of a call may leave it. */
void devscope_run_tasks(Task *task, void *environment, int64_t count) {
  const Context *context = devscope_context;
  switch (context->run_tasks(task, environment, count, context->threads, asked_to_leave)) {
  case TASKS_LEFT:
    leave_if_interrupted();
    break;
  case TASKS_LOST:
    stop(CODE_FORKED, OPERATION_ASSERT, 0);
  default:
    break;
  }
}

int64_t devscope_threads(void) { return devscope_context->threads; }
