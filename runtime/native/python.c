/* Calls of entries from Python: arrays become descriptors, and descriptors arrays.
 *
 * What is common is done here: arguments that are numbers, or numpy's arrays that need no conversion. The rest is
 * Python's, which then calls with arrays that it has checked. numpy's arrays are what its C interface says they
 * are, of which the loader checks the version. */
#include "runtime.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A numpy array, behind the header of an object. */
typedef struct {
  char *data;
  int rank;
  intptr_t *sizes;
  intptr_t *strides;
  Object *base;
  Object *dtype;
  int flags;
} Array;

/* Flags of arrays, and numpy's name for the order of C. */
enum { ARRAY_CONTIGUOUS = 0x1, ARRAY_ALIGNED = 0x100, ARRAY_WRITABLE = 0x400, ARRAY_C_ORDER = 0 };

static const Interpreter *python;

void devscope_set_interpreter(const Interpreter *interpreter) { python = interpreter; }

/* ---------------------------------------------------------------------------------- memory of results */

/* Blocks of results whose arrays are gone, for the next call; arrays go away in any thread and at any time, also
 * while a call runs and after the program was closed. */
struct Returned {
  _Atomic(Block *) blocks;
  _Atomic int64_t users; /* blocks that arrays have, and the program */
  _Atomic bool closed;
};

static Block *take_returned(Returned *returned) {
  return returned && atomic_load(&returned->blocks) ? atomic_exchange(&returned->blocks, NULL) : NULL;
}

static void free_returned(Returned *returned) {
  for (Block *block = take_returned(returned), *next; block; block = next) {
    next = block->next;
    free(block);
  }
}

static void leave_returned(Returned *returned) {
  if (atomic_fetch_sub(&returned->users, 1) == 1)
    free(returned);
}

Returned *devscope_open_returned(void) {
  Returned *returned = calloc(1, sizeof *returned);
  if (returned)
    atomic_init(&returned->users, 1);
  return returned;
}

void devscope_close_returned(Returned *returned) {
  atomic_store(&returned->closed, true);
  free_returned(returned);
  leave_returned(returned);
}

static void give_back(Block *block) {
  Returned *returned = (Returned *)block->previous;
  Block *first = atomic_load(&returned->blocks);
  do
    block->next = first;
  while (!atomic_compare_exchange_weak(&returned->blocks, &first, block));
  if (atomic_load(&returned->closed))
    free_returned(returned);
  leave_returned(returned);
}

static void finalize(Object *capsule) { give_back(python->memory(capsule, NULL)); }

/* What keeps a block from now on; null, with an exception, if that cannot be made. */
static Object *own(Block *block, Returned *returned) {
  block->previous = (Block *)returned;
  atomic_fetch_add(&returned->users, 1);
  Object *owner = python->new_capsule(block, NULL, finalize);
  if (!owner)
    give_back(block);
  return owner;
}

/* ------------------------------------------------------------------------------------------ arguments */

static Array *array_of(Object *object) { return (Array *)((char *)object + python->header); }

static Object *type_of(Object *object) { return *(Object **)((char *)object + python->header - sizeof(Object *)); }

/* Neither a subclass of numpy's array nor anything else. */
static bool is_array(Object *object) { return type_of(object) == python->array_type; }

/* Whether an array can be used as it is. */
static bool fits(const Value *value, const Array *array, int flags) {
  if (array->rank != value->rank || (array->flags & flags) != flags)
    return false;
  for (int64_t index = 0; index < value->rank; index++)
    if (value->shape[index] != array->sizes[index] && value->shape[index] >= 0)
      return false;
  return array->dtype == value->dtype || array->dtype == value->other_dtype ||
         python->same_dtype(array->dtype, value->dtype);
}

/* An integer of Python's, if it is in range. */
static bool take_integer(Value *value, Object *object) {
  int overflow;
  const int64_t number = python->integer(object, &overflow);
  const int unused = 64 - 8 * (int)value->item_bytes;
  if (overflow || (int64_t)((uint64_t)number << unused) >> unused != number)
    return false;
  memcpy(value->number, &number, sizeof number);
  return true;
}

static bool take_real(Value *value, Object *object) {
  const double number = python->real(object);
  const float rounded = (float)number;
  if (value->item_bytes == sizeof number)
    memcpy(value->number, &number, sizeof number);
  else if (value->item_bytes == sizeof rounded && (fabs(number) <= FLT_MAX || !isfinite(number)))
    memcpy(value->number, &rounded, sizeof rounded);
  else
    return false;
  return true;
}

static bool take_number(Value *value, Object *object) {
  Object *const type = type_of(object);
  if (!value->is_scalar)
    return false;
  if (type == value->number_type)
    python->value_of(object, value->number);
  else if (!(type == python->real_type && value->kind == 'f' && take_real(value, object)) &&
           !(type == python->integer_type && value->kind == 'i' && take_integer(value, object)))
    return false;
  value->descriptor[ALLOCATED] = value->descriptor[ALIGNED] = (intptr_t)value->number;
  value->bytes = value->item_bytes;
  return true;
}

static bool take_argument(Value *value, Object *object, bool checked) {
  if (!checked && !is_array(object))
    return take_number(value, object);
  if (!checked && !fits(value, array_of(object), ARRAY_CONTIGUOUS | ARRAY_ALIGNED))
    return false;
  const Array *array = array_of(object);
  int64_t *sizes = value->descriptor + SIZES, *strides = sizes + value->rank;
  value->descriptor[ALLOCATED] = value->descriptor[ALIGNED] = (intptr_t)array->data;
  uint64_t stride = 1;
  for (int64_t index = value->rank - 1; index >= 0; index--) {
    sizes[index] = array->sizes[index];
    strides[index] = (int64_t)stride;
    stride *= (uint64_t)array->sizes[index];
  }
  value->bytes = (int64_t)stride * value->item_bytes;
  return true;
}

static int64_t bytes_of(const Value *value, const Array *array) {
  int64_t bytes = value->item_bytes;
  for (int index = 0; index < array->rank; index++)
    bytes *= array->sizes[index];
  return bytes;
}

static bool overlap(intptr_t one, int64_t bytes, intptr_t other, int64_t other_bytes) {
  return one < other + other_bytes && other < one + bytes;
}

/* The caller's memory for a result, which the program writes itself unless it is an argument's. */
static bool take_out(PythonEntry *entry, int64_t position, Object *const *given, bool checked) {
  const Value *value = &entry->results[position];
  Object *const object = given[entry->argument_count + position];
  Out *out = &entry->outs[position];
  *out = (Out){0};
  if (object == python->none)
    return true;
  const Array *array = array_of(object);
  if (!checked && (value->is_scalar || !is_array(object) ||
                   !fits(value, array, ARRAY_CONTIGUOUS | ARRAY_ALIGNED | ARRAY_WRITABLE)))
    return false;
  const int64_t bytes = bytes_of(value, array);
  for (int64_t index = 0; index < position && !checked; index++) {
    Object *const other = given[entry->argument_count + index];
    if (other != python->none && overlap((intptr_t)array->data, bytes, (intptr_t)array_of(other)->data,
                                         bytes_of(&entry->results[index], array_of(other))))
      return false;
  }
  for (int64_t index = 0; index < entry->argument_count; index++) {
    const Value *argument = &entry->arguments[index];
    if (overlap((intptr_t)array->data, bytes, argument->descriptor[ALLOCATED], argument->bytes))
      return true;
  }
  *out = (Out){.memory = array->data, .bytes = bytes};
  return true;
}

/* -------------------------------------------------------------------------------------------- results */

static bool is_argument(const PythonEntry *entry, int64_t memory) {
  for (int64_t index = 0; index < entry->argument_count; index++)
    if (entry->arguments[index].descriptor[ALLOCATED] == memory)
      return true;
  return false;
}

static bool is_out(const PythonEntry *entry, int64_t memory) {
  for (int64_t index = 0; index < entry->context->out_count; index++)
    if ((intptr_t)entry->outs[index].memory == memory)
      return true;
  return false;
}

/* An owner for each block. Memory that belongs to an argument or that was returned twice must not be freed twice,
 * whatever the compiled code says about ownership. All of them first: if a result cannot be made, the others are
 * freed nevertheless. */
static bool own_results(PythonEntry *entry) {
  bool owned = true;
  for (int64_t position = 0; position < entry->result_count; position++) {
    Value *value = &entry->results[position];
    const int64_t memory = value->descriptor[ALLOCATED];
    bool known = is_argument(entry, memory) || is_out(entry, memory);
    for (int64_t index = 0; index < position && !known; index++)
      known = entry->results[index].descriptor[ALLOCATED] == memory;
    value->owner = NULL;
    if (!known && !(value->owner = own((Block *)(intptr_t)memory - 1, entry->context->returned)))
      owned = false;
  }
  return owned;
}

static Object *owner_of(const PythonEntry *entry, int64_t memory) {
  const Value *value = entry->results;
  while (value->descriptor[ALLOCATED] != memory)
    value++;
  return value->owner;
}

/* Over the memory of the result; null, with an exception, for a shape that no array can have. */
static Object *make_array(const PythonEntry *entry, const Value *value, Object *dtype) {
  const int64_t *sizes = value->descriptor + SIZES, *strides = sizes + value->rank;
  bool empty = false;
  for (int64_t index = 0; index < value->rank; index++) {
    empty = empty || sizes[index] == 0;
    value->strides[index] = (intptr_t)((uint64_t)strides[index] * (uint64_t)value->item_bytes);
  }
  char *data = (char *)(intptr_t)value->descriptor[ALIGNED] + value->descriptor[OFFSET] * value->item_bytes;
  python->keep(dtype);
  Object *array =
      python->new_array(python->array_type, dtype, (int)value->rank, (const intptr_t *)sizes,
                        empty ? NULL : value->strides, empty ? NULL : data, ARRAY_ALIGNED | ARRAY_WRITABLE, NULL);
  Object *owner = owner_of(entry, value->descriptor[ALLOCATED]);
  if (!array || empty || !owner)
    return array;
  python->keep(owner);
  if (python->set_base(array, owner) == 0)
    return array;
  python->drop(array);
  return NULL;
}

/* Puts a result where the caller wants it. */
static Object *put(PythonEntry *entry, int64_t position, Object *object) {
  const Value *value = &entry->results[position];
  const Array *out = array_of(object);
  const int64_t *sizes = value->descriptor + SIZES;
  for (int64_t index = 0; index < value->rank; index++)
    if (sizes[index] != out->sizes[index]) {
      entry->problem = PROBLEM_OUT_SHAPE;
      return NULL;
    }
  if (value->descriptor[ALIGNED] + value->descriptor[OFFSET] * value->item_bytes != (intptr_t)out->data) {
    Object *array = make_array(entry, value, out->dtype);
    const bool copied = array && python->copy_to(object, array) == 0;
    if (array)
      python->drop(array);
    if (!copied)
      return NULL;
  }
  python->keep(object);
  return object;
}

static Object *make_result(PythonEntry *entry, int64_t position, Object *out) {
  const Value *value = &entry->results[position];
  if (out && out != python->none)
    return put(entry, position, out);
  Object *array = make_array(entry, value, value->dtype);
  if (array && is_argument(entry, value->descriptor[ALLOCATED])) {
    Object *const copied = python->copy(array, ARRAY_C_ORDER);
    python->drop(array);
    array = copied;
  }
  return array && value->is_scalar ? python->number_of(array) : array;
}

/* outs: null if there are none. */
static Object *take_results(PythonEntry *entry, Object *const *outs) {
  entry->problem = PROBLEM_NO_ARRAY;
  Object *results = own_results(entry) ? python->new_tuple(entry->result_count) : NULL;
  for (entry->position = 0; results && entry->position < entry->result_count; entry->position++) {
    Object *const result = make_result(entry, entry->position, outs ? outs[entry->position] : NULL);
    if (!result) {
      python->drop(results);
      results = NULL;
      break;
    }
    python->set_item(results, entry->position, result);
  }
  for (int64_t position = 0; position < entry->result_count; position++)
    if (entry->results[position].owner)
      python->drop(entry->results[position].owner);
  if (results)
    entry->problem = PROBLEM_NONE;
  if (entry->problem != PROBLEM_OUT_SHAPE)
    return results;
  python->keep(python->none);
  return python->none;
}

/* ---------------------------------------------------------------------------------------------- calls */

static Object *call_entry(Object *self, Object *const *given, int64_t count, bool has_outs, bool checked) {
  PythonEntry *entry = python->address(self);
  Context *context = entry->context;
  entry->problem = PROBLEM_NONE;
  bool usable = count == entry->argument_count + (has_outs ? entry->result_count : 0);
  for (int64_t index = 0; index < entry->argument_count && usable; index++)
    usable = take_argument(&entry->arguments[index], given[index], checked);
  for (int64_t position = 0; has_outs && position < entry->result_count && usable; position++)
    usable = take_out(entry, position, given, checked);
  if (!usable) {
    python->keep(python->not_implemented);
    return python->not_implemented;
  }
  context->out_count = has_outs ? entry->result_count : 0;
  context->outs = entry->outs;
  context->interpreter = python->thread() == python->main_thread ? python : NULL;
  /* Other threads of Python run while the program does. */
  void *const thread = python->release();
  const int32_t failed = entry->call(context, entry->entry, entry->pointers);
  python->acquire(thread);
  if (!failed)
    return take_results(entry, has_outs ? given + entry->argument_count : NULL);
  entry->problem = PROBLEM_FAILED;
  python->keep(python->none);
  return python->none;
}

Object *devscope_python_call(Object *self, Object *const *given, intptr_t count) {
  return call_entry(self, given, count, false, false);
}

Object *devscope_python_call_out(Object *self, Object *const *given, intptr_t count) {
  return call_entry(self, given, count, true, false);
}

Object *devscope_python_call_checked(Object *self, Object *const *given, intptr_t count) {
  return call_entry(self, given, count, true, true);
}

Object *devscope_python_move(Object *self, Object *const *given, intptr_t count) {
  (void)self, (void)count;
  Object *const list = given[0], *const other = given[1];
  const intptr_t size = python->list_size(list);
  Object *const item = size > 0 ? python->list_item(list, size - 1) : python->none;
  if (size < 0 || !item)
    return NULL;
  python->keep(item);
  if (size > 0 && (python->set_attribute(item, given[2], given[3]) || python->list_append(other, item) ||
                   python->list_cut(list, size - 1, size, NULL))) {
    python->drop(item);
    return NULL;
  }
  return item;
}
