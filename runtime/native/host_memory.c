/* Host memory of compiled code.
 *
 * Compiled code is told that allocations touch no memory that it knows of, which holds since LLVM does not see the
 * functions that share the list of blocks. */
#include "runtime.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Blocks of this size and more are worth larger pages. */
enum { MANY_PAGES = 4 << 20, PAGE = 4096 };

static Status free_block(Device *device, Handle block) {
  (void)device;
  free(block);
  return 0;
}

const Driver devscope_driver_cpu = {.free = free_block};

static Device *host(void) { return &devscope_context->devices[0]; }

/* To the free list of slot 0, else to the C library. */
static void recycle(Block *block) {
  if (!free_list_keep(host(), block, block->size))
    free(block);
}

/* Sizes of blocks: eight from each power of two to the next, so that calls whose shapes differ a little use the
 * same blocks. What is too much is never written, and takes no memory. */
static int64_t size_of_block(int64_t size) {
  if (size < 8 * ALIGNMENT || size >= (int64_t)1 << 48)
    return round_up(size);
  const int64_t step = (int64_t)1 << (60 - __builtin_clzll((uint64_t)size));
  return round_up((size + step - 1) & -step);
}

/* Pages are made when they are touched, which takes longer than most of what is done with them, and the processor
 * finds and reads ahead few of them: large ones are asked for where there are many. */
static void ask_for_large_pages(void *memory, int64_t size) {
#ifdef MADV_HUGEPAGE
  if (memory && size >= MANY_PAGES) {
    const uintptr_t begin = (uintptr_t)memory & -(uintptr_t)PAGE;
    const uintptr_t end = ((uintptr_t)memory + (uintptr_t)size + PAGE - 1) & -(uintptr_t)PAGE;
    madvise((void *)begin, end - begin, MADV_HUGEPAGE);
  }
#else
  (void)memory, (void)size;
#endif
}

/* Memory of the C library. */
static Block *new_block(int64_t size) {
  Block *block = malloc((size_t)size);
  ask_for_large_pages(block, size);
  return block;
}

/* A block from the free list, so that calls like earlier ones take none from the C library; else from there. */
static Block *obtain_block(int64_t size) {
  host()->counters.allocations++;
  Block *block = free_list_take(&host()->free_list, size);
  if (block)
    return block;
  block = new_block(size);
  if (!block) {
    free_list_trim(host(), 0, 0);
    block = new_block(size);
  }
  if (block)
    host()->counters.driver_allocations++;
  return block;
}

/* Memory aligned as malloc does it; the caller may move on to the next multiple of ALIGNMENT. A negative number of
 * bytes is the size of a dimension that made no sense; it and a lack of memory stop the call. */
void *devscope_host_alloc(int64_t bytes) {
  if (bytes < 0)
    stop(CODE_NEGATIVE_SIZE, OPERATION_ALLOC, bytes);
  /* Room to align what follows the header. The bound keeps what is added from wrapping around. */
  const int64_t extra = sizeof(Block) + ALIGNMENT - 1;
  int64_t size = size_of_block(min(bytes, INT64_MAX - 2 * extra) + extra);
  Block *block = obtain_block(size);
  if (!block)
    stop(CODE_OUT_OF_HOST_MEMORY, OPERATION_ALLOC, bytes);
  Block *head = &devscope_context->blocks;
  *block = (Block){.next = head->next, .previous = head, .size = size};
  head->next->previous = block;
  head->next = block;
  return block + 1;
}

/* Memory for a result: the caller's if that has the size, else new. Compiled code asks once per call. */
void *devscope_result_alloc(int64_t position, int64_t bytes) {
  const Context *context = devscope_context;
  if (position < context->out_count && bytes > 0 && context->outs[position].bytes == bytes)
    return context->outs[position].memory;
  return devscope_host_alloc(bytes);
}

static bool is_callers(const void *memory) {
  for (int64_t index = 0; index < devscope_context->out_count; index++)
    if (devscope_context->outs[index].memory == memory)
      return true;
  return false;
}

/* Where the elements of the result begin. The caller's are where they are. */
void *devscope_result_data(void *memory) {
  return is_callers(memory) ? memory : (void *)(((uintptr_t)memory + ALIGNMENT - 1) & -(uintptr_t)ALIGNMENT);
}

/* The names by which MLIR calls allocation and release. */

void *_mlir_memref_to_llvm_alloc(int64_t bytes) { return devscope_host_alloc(bytes); }

void _mlir_memref_to_llvm_free(void *memory) {
  if (!memory || is_callers(memory))
    return;
  Block *block = (Block *)memory - 1;
  block->previous->next = block->next;
  block->next->previous = block->previous;
  recycle(block);
}

/* Results of earlier calls that nobody uses any more. */
static void host_take_back(void) {
  for (Block *block = take_returned(devscope_context->returned), *next; block; block = next) {
    next = block->next;
    recycle(block);
  }
}

/* What the call made that has failed. */
static void host_free_all(void) {
  Block *head = &devscope_context->blocks;
  for (Block *block = head->next, *next; block != head; block = next) {
    next = block->next;
    recycle(block);
  }
  head->next = head->previous = head;
}
