/* The interface of the native runtime: what compiled code calls, what the loader reads and writes, what a driver
 * implements.
 *
 * The runtime is linked into every loaded program, so that each has globals of its own. It calls device drivers
 * through addresses that the loader puts into the structs below: nothing here names a driver library, and nothing
 * calls back into Python but for signals, in interrupts.c. One loaded program runs one call at a time (the loader
 * makes another copy for a call beside it), hence plain loads and stores.
 *
 * Rules that hold everywhere:
 *   - slot 0 is host memory; the other slots are the program's virtual devices;
 *   - the first failure is recorded in the context. After one of a device, host code runs on and the devices are
 *     left alone: launches and copies do nothing, allocations give null. Frees still free, host memory still
 *     works, and a copy to the host that cannot be made gives zeros, so that host code which branches on the
 *     result is at least deterministic. After one of the host (no memory, an assertion) nothing can run on: stop
 *     leaves the call, and what the call had made is freed.
 *
 * abi.py has the structs and enumerations once more, for the loader; a test compares them. Whatever compiled code
 * depends on is numbered by ABI_VERSION, which saved programs carry. */
#ifndef DEVSCOPE_ABI_H
#define DEVSCOPE_ABI_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  /* Changes whenever compiled code or a loader of another version would misunderstand this one. */
  ABI_VERSION = 10,
};

/* 0 for success, else the driver's own error code. */
typedef int32_t Status;

/* A buffer of a device: a Buffer. In copies and constants of the host, the memory itself. */
typedef void *Handle;

typedef struct Arena Arena;
typedef struct Context Context;
typedef struct Device Device;
typedef struct Returned Returned; /* see python.c */
typedef struct Object Object;     /* of Python */

/* ------------------------------------------------------------------------------------------------- errors */

/* Who refused a request. */
enum Origin { ORIGIN_NONE, ORIGIN_RUNTIME, ORIGIN_DRIVER };

/* What failed. */
enum Operation {
  OPERATION_ALLOC = 1,
  OPERATION_FREE,
  OPERATION_COPY,
  OPERATION_CONSTANT,
  OPERATION_LAUNCH,
  OPERATION_ASSERT,
  OPERATION_LEND,
};

/* The codes of ORIGIN_RUNTIME. */
enum Code {
  CODE_BAD_SLOT = 1,
  CODE_BAD_KERNEL,
  CODE_BAD_ARGUMENT_COUNT,
  CODE_BAD_CONSTANT,
  CODE_NEGATIVE_SIZE,
  CODE_OUT_OF_HOST_MEMORY,
  CODE_ASSERTION_FAILED,
  CODE_TOO_MUCH_LOCAL_MEMORY,
  CODE_TOO_MANY_WORK_ITEMS,
  CODE_BAD_LAUNCH_SIZE,
  CODE_INTERRUPTED, /* a handler of a signal raised an exception */
  CODE_ENDED,       /* the process ends */
  CODE_FORKED,      /* in the middle of the call, which other threads had a part in */
  CODE_BAD_STATE,
};

typedef struct {
  int64_t origin;
  int64_t code;
  int64_t operation;
  int64_t slot;
  int64_t detail; /* a number of bytes (or the negative size of a dimension), an index, or the address of a text */
  int64_t size;   /* what a launch asked for that is more than its device has, or that cannot be */
  int64_t numbers[2]; /* what an assertion compared */
} Error;

/* ------------------------------------------------------------------------------------------------- memory */

/* Stands before the memory of every host allocation, and as the head of the (circular) list. Memory that is
 * returned to the loader keeps it, unused: what the loader gives back stands sizeof(Block) bytes before what it
 * was given. */
typedef struct Block {
  struct Block *next;
  struct Block *previous;
  int64_t size;    /* of all that malloc gave */
  int64_t padding; /* keeps what follows aligned as malloc aligns */
} Block;

/* What drivers' buffers have in common; compiled code has a pointer to it. */
typedef struct Buffer {
  struct Buffer *next; /* among the live buffers of a device, which host code has and must free */
  struct Buffer *previous;
  int64_t call; /* number of the call that made it */
  void *memory; /* the driver's handle */
  void *host;   /* the same memory for the host, null if it cannot reach it */
  int64_t size; /* bytes of the memory */
  int64_t used; /* bytes that the program asked for */
  Arena *arena; /* where it is a part of, whose other buffers may use the same bytes; else null */
  int64_t offset;
} Buffer;

/* A place of a buffer in an arena. */
typedef struct {
  int64_t offset; /* -1 is a buffer of its own */
  int64_t bytes;
  void *memory; /* on the host the address, on a device the Buffer, null until it is made */
} Place;

struct Arena {
  int64_t bytes;    /* what the entry needs that is called */
  int64_t separate; /* 1 if the device cannot have parts of buffers at these offsets: each place is a buffer */
  Buffer *whole;
  Place *places;
  int64_t place_count;
};

/* Freed buffers kept for reuse, oldest first. */
typedef struct {
  Handle handle;
  int64_t bytes;
} FreeBuffer;

typedef struct {
  int64_t count;
  int64_t capacity;
  int64_t bytes;       /* held now */
  int64_t limit;       /* most that may be held */
  FreeBuffer *entries; /* room for `capacity`, at least one */
} FreeList;

typedef struct {
  const void *data;
  int64_t bytes;
} Constant;

/* What calls leave on a device for later ones. */
typedef struct {
  int64_t slot;
  Handle kept; /* null: nothing yet */
  Handle next; /* what the last call left, until the loader keeps it or another call begins */
} State;

/* Memory of the caller for a result; of 0 bytes where there is none. */
typedef struct {
  void *memory;
  int64_t bytes;
} Out;

/* ------------------------------------------------------------------------------------------------- devices */

/* Stands for the size of workgroup-local memory whose amount the launch says. */
#define DYNAMIC_LOCAL_SIZE INT64_MIN

typedef struct {
  void *handle; /* the driver's */
  int64_t argument_count;
  /* Of argument i. > 0: bytes; 0: a buffer; < 0: -bytes of workgroup-local memory, the cell is not read;
   * DYNAMIC_LOCAL_SIZE: workgroup-local memory of as many bytes as the cell says. */
  const int64_t *sizes;
  int64_t local_count; /* how many sizes are below 0 */
} Kernel;

typedef struct {
  int64_t grid[3];  /* workgroups */
  int64_t block[3]; /* work items of a workgroup */
} LaunchSize;

/* What the host does with memory of a device that it reaches. */
enum Access { ACCESS_READ, ACCESS_WRITE, ACCESS_NEW_CONTENTS };

/* What one kind of device can do. A driver is a C file with one of these, called devscope_driver_<device type>.
 * That of the host can free blocks of memory, and no more. */
typedef struct {
  Status (*alloc)(Device *, int64_t bytes, Handle *out);
  Status (*free)(Device *, Handle);
  Status (*copy_in)(Device *, Handle, int64_t offset, const void *host, int64_t bytes);
  Status (*copy_out)(Device *, Handle, int64_t offset, void *host, int64_t bytes);
  /* Between devices of one driver and one domain. */
  Status (*copy_on)(Device *, Handle, int64_t offset, Device *target, Handle to, int64_t to_offset, int64_t bytes);
  Status (*launch)(Device *, const Kernel *, const LaunchSize *, const int64_t *cells);
  /* Starts what was enqueued. */
  Status (*flush)(Device *);
  /* Waits for all work. */
  void (*finish)(Device *);
  /* Where the host reaches a buffer, when it may use that as it says. */
  Status (*map)(Device *, Handle, enum Access, void **out);
  /* The buffer for another device, which reads it, until view_done. */
  Status (*view)(Device *, Handle, Device *user, Handle *out);
  Status (*view_done)(Device *, Handle, Device *user, Handle view);
  /* A part of the arena's whole as a buffer. */
  Status (*part)(Device *, Arena *, int64_t offset, int64_t bytes, Handle *out);
  /* What the buffer held does not matter any more: makes sure that writing to it waits for no other device. */
  void (*renew)(Device *, Handle);
  /* Releases what the driver keeps for the device besides buffers, which are gone. Its queue is the loader's. */
  void (*close)(Device *);
  /* Before a library enqueues work of its own that uses these buffers: the driver's handles of their memory take
   * the buffers' place, and the queue's is given. `lend_done` follows when the work is enqueued. */
  Status (*lend)(Device *, void **buffers, int64_t count, void **queue);
  Status (*lend_done)(Device *);
} Driver;

typedef struct {
  int64_t launches;
  int64_t allocations;
  int64_t driver_allocations;
} Counters;

/* One virtual device of a program. */
struct Device {
  const Driver *driver;
  void *state;     /* the driver's own */
  void *domain;    /* devices of one driver and one domain copy to each other directly */
  int64_t pending; /* commands that were enqueued since the driver was last told to start */
  int64_t kernel_count;
  const Kernel *kernels;
  Handle *constants; /* the device's copies, null until they are made; on the host none */
  FreeList free_list;
  Buffer *live; /* the last one made */
  int64_t live_count;
  Counters counters;
  int64_t most_work_items; /* of a workgroup */
  int64_t most_local;      /* bytes of local memory that a workgroup can have */
  Handle status;           /* where kernels note the number of the first assertion that does not hold, or null */
  const char *reports;     /* the texts for these numbers, from 1, one after the other */
  int64_t unread;          /* whether the status may have changed since it was read */
};

/* Copies from one slot to another. */
typedef struct {
  int64_t copies;
  int64_t bytes;
} Traffic;

/* What the runtime uses of the interpreter and of numpy: nothing here needs their headers, or is linked with them.
 */
typedef struct {
  /* CPython's PyGILState_Ensure, PyGILState_Release, PyErr_CheckSignals and PyErr_Fetch: a call that takes long
   * lets the interpreter handle signals. */
  int32_t (*lock)(void);
  void (*unlock)(int32_t state);
  int32_t (*handle_signals)(void);
  void (*take_exception)(void **type, void **value, void **traceback);
  /* PyEval_SaveThread, PyEval_RestoreThread and PyThread_get_thread_ident. */
  void *(*release)(void);
  void (*acquire)(void *thread);
  uint64_t (*thread)(void);
  /* Py_IncRef, Py_DecRef, PyTuple_New, PyTuple_SetItem, PyCapsule_New and PyCapsule_GetPointer. */
  void (*keep)(Object *);
  void (*drop)(Object *);
  Object *(*new_tuple)(intptr_t count);
  int (*set_item)(Object *tuple, intptr_t index, Object *item);
  Object *(*new_capsule)(void *memory, const char *name, void (*finalize)(Object *));
  void *(*memory)(Object *capsule, const char *name);
  /* PyList_Size, PyList_GetItem, PyList_SetSlice, PyList_Append and PyObject_SetAttr. */
  intptr_t (*list_size)(Object *list);
  Object *(*list_item)(Object *list, intptr_t index);
  int (*list_cut)(Object *list, intptr_t begin, intptr_t end, Object *replacement);
  int (*list_append)(Object *list, Object *item);
  int (*set_attribute)(Object *object, Object *name, Object *value);
  /* PyLong_AsVoidPtr, PyLong_AsLongLongAndOverflow and PyFloat_AsDouble. */
  void *(*address)(Object *number);
  long long (*integer)(Object *number, int *overflow);
  double (*real)(Object *number);
  /* numpy's PyArray_NewFromDescr, PyArray_SetBaseObject, PyArray_NewCopy, PyArray_CopyInto, PyArray_Return,
   * PyArray_EquivTypes and PyArray_ScalarAsCtype. */
  Object *(*new_array)(Object *type, Object *dtype, int rank, const intptr_t *sizes, const intptr_t *strides,
                       void *data, int flags, Object *like);
  int (*set_base)(Object *array, Object *base);
  Object *(*copy)(Object *array, int order);
  int (*copy_to)(Object *target, Object *source);
  Object *(*number_of)(Object *array);
  unsigned char (*same_dtype)(Object *one, Object *other);
  void (*value_of)(Object *number, void *out);
  Object *none;
  Object *not_implemented;
  Object *array_type;
  Object *integer_type;
  Object *real_type;
  int64_t header;       /* bytes of an object before what its type adds */
  uint64_t main_thread; /* which handles signals */
} Interpreter;

/* A part of the work of a loop whose iterations are independent. */
typedef void Task(void *environment, int64_t number);

/* Whether the call is to be left; asked in its own thread, outside of tasks. */
typedef int32_t Leave(void);

/* What became of tasks: LEFT out, since `leave` asked for it; LOST in a process that was forked meanwhile. */
enum { TASKS_DONE, TASKS_LEFT, TASKS_LOST };

/* Runs the tasks 0 to count - 1 on at most `threads` threads, this one among them. */
typedef int32_t RunTasks(Task *task, void *environment, int64_t count, int64_t threads, Leave *leave);

/* clWaitForEvents and clReleaseEvent. */
typedef int32_t WaitForEvent(uint32_t count, void *const *events);
typedef int32_t DropEvent(void *event);

/* What became of a wait: LEFT, since `leave` asked for it, or REFUSED, since there is no thread for it. */
enum { WAIT_DONE, WAIT_LEFT, WAIT_REFUSED };

/* Has a thread of its own wait for an event, and drop it then, also after the call was left; the event is the
 * caller's only if that is refused. */
typedef int32_t WaitApart(WaitForEvent *wait, DropEvent *drop, void *event, Leave *leave, int32_t *status);

struct Context {
  Error error;
  int64_t device_count;
  Device *devices;
  int64_t constant_count;
  const Constant *constants;
  Traffic *traffic;               /* [source * device_count + target] */
  Arena *arenas;                  /* one for each slot */
  int64_t calls;                  /* how many were begun */
  Block blocks;                   /* the host memory that the current call made */
  Returned *returned;             /* what became of the blocks of results */
  jmp_buf *stop;                  /* where a call goes that is left */
  int64_t ended;                  /* another thread sets it: the call is to be left */
  const Interpreter *interpreter; /* null in threads that handle no signals */
  void *raised[3];                /* what a handler raised, for the loader to raise */
  RunTasks *run_tasks;            /* devscope_pool_run of the copy of the runtime that has the threads */
  WaitApart *wait_apart;          /* devscope_wait_apart of that copy; null: waits are not done apart */
  int64_t threads;                /* how many a call may use */
  int64_t out_count;
  const Out *outs; /* of the first results of the entry that is called */
  int64_t state_count;
  State *states;
};

/* ------------------------------------------------------------------------------------- calls from Python */

/* A function of the program; it takes the arguments of an entry as an array. */
typedef void Entry(void **pointers);

/* devscope_call of a program. */
typedef int32_t Call(Context *context, Entry *entry, void **pointers);

/* An argument or a result of an entry. */
typedef struct {
  Object *dtype;
  int64_t rank;
  int64_t item_bytes;
  int64_t is_scalar;
  const int64_t *shape; /* -1: known at run time */
  int64_t *descriptor;  /* allocated, aligned, offset, sizes[rank], strides[rank] */
  intptr_t *strides;    /* room for those of an array */
  Object *owner;        /* of a result's memory while its array is made */
  int64_t bytes;        /* of an argument */
  /* Of a scalar argument: numpy's letter for what it is, numpy's type of such a number, and room for one. */
  int64_t kind;
  Object *number_type;
  Object *other_dtype; /* of other arrays that are taken: of numbers where dtype is that of bits, and vice versa */
  double number[2];
} Value;

/* Why a call has no results: the context has an error; result `position` cannot be an array, which is an exception
 * of numpy's; or the array for it has another shape. */
enum Problem { PROBLEM_NONE, PROBLEM_FAILED, PROBLEM_NO_ARRAY, PROBLEM_OUT_SHAPE };

/* An entry of a program as Python calls it, one call at a time. */
typedef struct {
  Context *context;
  Call *call;
  Entry *entry;
  void **pointers;
  int64_t argument_count;
  Value *arguments;
  int64_t result_count;
  Value *results;
  Out *outs;
  int64_t problem;
  int64_t position;
} PythonEntry;

/* ------------------------------------------------------------------------------ what the loader calls */

/* Calls an entry. 0: its results belong to the loader. 1: it failed; the error is in the context, there are no
 * results, and what the call had made is freed. */
EXPORT Call devscope_call;

/* Keeps what the last call left as state. Else the state stays what it was, and the next call frees that. */
EXPORT void devscope_keep_states(Context *context);

/* Gives the arena of a slot, which nothing uses, another size. memory: of that size, on the host. */
EXPORT void devscope_set_arena(Context *context, int64_t slot, int64_t bytes, void *memory);

/* Waits for the devices and releases all that the runtime made. */
EXPORT void devscope_close(Context *context);

/* Of one copy of the runtime, which is never unloaded: the threads of the process, and what outlives programs. */

EXPORT RunTasks devscope_pool_run;
EXPORT WaitApart devscope_wait_apart;

EXPORT void devscope_set_interpreter(const Interpreter *interpreter);

/* Functions for the interpreter (METH_FASTCALL), whose `self` is the address of a PythonEntry as a number. They
 * give a tuple of results, None where there is a problem, and NotImplemented for what Python has to check or to
 * convert first. The last two take arrays or None for the results, too; the last one what was checked. */
typedef Object *Method(Object *self, Object *const *given, intptr_t count);
EXPORT Method devscope_python_call;
EXPORT Method devscope_python_call_out;
EXPORT Method devscope_python_call_checked;

/* Another one: (list, other, name, value) moves the last item of a list to the other one's end, with `value` as
 * its attribute `name`, in one step: no handler of a signal runs meanwhile. Gives the item, or None if there is
 * none. */
EXPORT Method devscope_python_move;

EXPORT Returned *devscope_open_returned(void);
EXPORT void devscope_close_returned(Returned *returned);

/* Identifies the sources, see compile_native.py. */
EXPORT extern const char devscope_sources[];

/* -------------------------------------------------------------------------- what compiled code calls
 * lowering/runtime_calls.mlir declares these once more, with what LLVM may assume. */

EXPORT void *devscope_host_alloc(int64_t bytes);
EXPORT void *devscope_result_alloc(int64_t position, int64_t bytes);
EXPORT void *devscope_result_data(void *memory);
EXPORT void *_mlir_memref_to_llvm_alloc(int64_t bytes);
EXPORT void _mlir_memref_to_llvm_free(void *memory);
EXPORT void *devscope_host_place(int64_t number);
EXPORT void devscope_host_done(void *memory);
EXPORT Handle devscope_arena_buffer(int64_t slot, int64_t number);

EXPORT Handle devscope_alloc(int64_t slot, int64_t bytes);
EXPORT void devscope_free(int64_t slot, Handle handle);
EXPORT Handle devscope_constant(int64_t slot, int64_t index);

/* The buffer that an earlier call left as a state; null with the error recorded. */
EXPORT Handle devscope_state(int64_t number);
/* Takes a buffer that the call has allocated. It may be given as several states. */
EXPORT void devscope_keep(int64_t slot, int64_t number, Handle handle);

EXPORT void devscope_copy(int64_t source_slot, Handle from, int64_t from_offset, int64_t target_slot, Handle to,
                          int64_t to_offset, int64_t bytes);
EXPORT void *devscope_map(int64_t slot, Handle handle, int64_t access);
EXPORT void *devscope_map_new(int64_t slot, Handle handle);
EXPORT Handle devscope_view(int64_t slot, Handle handle, int64_t user_slot);
EXPORT void devscope_view_done(int64_t slot, Handle handle, int64_t user_slot, Handle view);

/* reports: the same for all kernels of the program. */
EXPORT Handle devscope_status(int64_t slot, const char *reports);

EXPORT void devscope_launch(int64_t slot, int64_t kernel, int64_t grid_x, int64_t grid_y, int64_t grid_z,
                            int64_t block_x, int64_t block_y, int64_t block_z, const int64_t *cells,
                            int64_t cell_count);
EXPORT void devscope_start(int64_t slot);

/* For libraries that enqueue work: handles of the driver take the place of those of buffers. Gives the queue's, or
 * null where there is nothing to do; only else devscope_lend_done follows. */
EXPORT void *devscope_lend(int64_t slot, void **buffers, int64_t count);
EXPORT void devscope_lend_done(int64_t slot);

/* How often loops of compiled code may go on before they call devscope_poll, which leaves a call that is
 * interrupted and sets the number anew. */
EXPORT extern int64_t devscope_budget;
EXPORT void devscope_poll(void);

EXPORT void devscope_run_tasks(Task *task, void *environment, int64_t count);

/* How many threads a call may use: for libraries that have threads of their own. */
EXPORT int64_t devscope_threads(void);

_Noreturn EXPORT void devscope_fail_assertion(const char *message, int64_t one, int64_t other);

/* MLIR's descriptor of a memref: allocated, aligned, offset, sizes[rank], strides[rank]. */
typedef struct {
  int64_t rank;
  int64_t *descriptor;
} UnrankedMemref;

EXPORT void memrefCopy(int64_t element_bytes, UnrankedMemref *from, UnrankedMemref *to);

#endif
