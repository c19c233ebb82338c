/* The threads that all programs of a process share.
 *
 * A job is a number of tasks. Its tasks are taken one after the other, by the thread that has the job and by workers;
 * that thread waits only for tasks that somebody has begun, never for a worker to wake up. One job runs at a time: a
 * job of another thread meanwhile, or of a task, is done by its own thread alone.
 *
 * Every program has a copy of this code, as of all of the runtime. The loader has one more copy, never unloaded, and
 * all programs use its threads (Context.run_tasks). Idle ones sleep. */
#include "runtime.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long a worker that has nothing to do looks out for the next job before it sleeps: longer than the code between
 * two loops of a program usually takes, and so short that nobody notices. */
enum { LOOK_OUT_NS = 20000, WORKER_STACK = 1 << 20 };

static struct {
  /* The number of the job, in the upper half, and of its next task: a thread that comes too late takes nothing. */
  _Alignas(64) _Atomic uint64_t next;
  /* Of the job: written before `next` is. */
  _Atomic(Task *) task;
  _Atomic(void *) environment;
  _Atomic int64_t count;
  _Alignas(64) _Atomic int64_t done;
  /* What workers wait for: the number of the job. */
  _Alignas(64) _Atomic uint32_t job;
  _Atomic uint32_t sleeping;
  /* How many workers may take part in the job. */
  _Atomic int32_t wanted;
  _Alignas(64) atomic_flag busy;
  _Atomic pid_t process;
  int32_t workers;
  pthread_key_t in_task;
} pool = {.busy = ATOMIC_FLAG_INIT};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void) { pthread_key_create(&pool.in_task, NULL); }

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
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

/* Takes tasks of a job until there are none. `leave`, asked between tasks, is whether the rest is to be left out. */
static bool take_tasks(uint32_t job, Leave *leave) {
  bool left = false;
  uint64_t next = atomic_load_explicit(&pool.next, memory_order_acquire);
  while (next >> 32 == job) {
    const int64_t number = (int64_t)(next & UINT32_MAX), count = pool.count;
    Task *task = pool.task;
    void *environment = pool.environment;
    if (number >= count)
      break;
    /* Whoever takes the last task changes nothing of the job: it is complete only when that is done. */
    const bool rest = left || (leave && leave());
    const uint64_t taken = rest ? (next & ~(uint64_t)UINT32_MAX) | (uint64_t)count : next + 1;
    if (!atomic_compare_exchange_weak(&pool.next, &next, taken))
      continue;
    left = rest;
    if (rest) {
      atomic_fetch_add(&pool.done, count - number);
      break;
    }
    task(environment, number);
    atomic_fetch_add(&pool.done, 1);
    next = atomic_load_explicit(&pool.next, memory_order_acquire);
  }
  return left;
}

static void *work(void *argument) {
  const int32_t me = (int32_t)(intptr_t)argument;
  uint32_t seen = 0;
  pthread_setspecific(pool.in_task, &pool);
  for (;;) {
    uint32_t job = atomic_load_explicit(&pool.job, memory_order_acquire);
    if (job == seen) {
      const int64_t until = exact_time() + LOOK_OUT_NS;
      while ((job = atomic_load_explicit(&pool.job, memory_order_acquire)) == seen && exact_time() < until)
        for (int turn = 0; turn < 16; turn++)
          relax();
    }
    while (job == seen) {
      atomic_fetch_add(&pool.sleeping, 1);
      futex(&pool.job, FUTEX_WAIT_PRIVATE, seen);
      atomic_fetch_sub(&pool.sleeping, 1);
      job = atomic_load_explicit(&pool.job, memory_order_acquire);
    }
    seen = job;
    if (me < atomic_load(&pool.wanted))
      take_tasks(job, NULL);
  }
  return NULL;
}

/* Threads do not survive a fork: neither workers nor whoever had a job. */
static void notice_fork(void) {
  const pid_t here = getpid();
  if (atomic_exchange(&pool.process, here) != here) {
    pool.workers = 0;
    atomic_store(&pool.sleeping, 0);
    atomic_flag_clear(&pool.busy);
  }
}

/* A machine that gives no more threads has fewer workers. */
static void make_workers(int32_t wanted) {
  pthread_attr_t attributes;
  if (pool.workers >= wanted || pthread_attr_init(&attributes))
    return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, WORKER_STACK);
  pthread_t thread;
  while (pool.workers < wanted &&
         pthread_create(&thread, &attributes, work, (void *)(intptr_t)pool.workers) == 0)
    pool.workers++;
  pthread_attr_destroy(&attributes);
}

static void run_alone(Task *task, void *environment, int64_t count) {
  for (int64_t number = 0; number < count; number++)
    task(environment, number);
}

EXPORT int32_t devscope_pool_run(Task *task, void *environment, int64_t count, int64_t threads, Leave *leave) {
  pthread_once(&once, make_key);
  if (count <= 1 || count >= UINT32_MAX || pthread_getspecific(pool.in_task)) {
    run_alone(task, environment, count);
    return false;
  }
  notice_fork();
  if (threads <= 1 || atomic_flag_test_and_set(&pool.busy)) {
    for (int64_t number = 0; number < count; number++) {
      if (leave())
        return true;
      task(environment, number);
    }
    return false;
  }
  const int32_t wanted = (int32_t)(min(threads, count) - 1);
  make_workers(wanted);
  pthread_setspecific(pool.in_task, &pool);
  atomic_store(&pool.task, task);
  atomic_store(&pool.environment, environment);
  atomic_store(&pool.count, count);
  atomic_store(&pool.done, 0);
  atomic_store(&pool.wanted, wanted);
  const uint32_t job = atomic_load(&pool.job) + 1;
  atomic_store(&pool.next, (uint64_t)job << 32);
  atomic_store(&pool.job, job);
  if (atomic_load(&pool.sleeping))
    futex(&pool.job, FUTEX_WAKE_PRIVATE, INT32_MAX);
  const bool left = take_tasks(job, leave);
  for (int turn = 0; atomic_load_explicit(&pool.done, memory_order_acquire) < count; turn++) {
    if (turn < 1000)
      relax();
    else
      syscall(SYS_sched_yield);
  }
  pthread_setspecific(pool.in_task, NULL);
  atomic_flag_clear(&pool.busy);
  return left;
}

static int32_t asked_to_leave(void) { return interrupted(); }

/* Tasks neither allocate nor fail: only the thread of a call may leave it. */
void devscope_run_tasks(Task *task, void *environment, int64_t count) {
  if (devscope_context->run_tasks(task, environment, count, devscope_context->threads, asked_to_leave))
    leave_if_interrupted();
}
