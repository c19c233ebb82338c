/* A program as tables: what `devscope build --shared` writes, and library.c opens and calls. */
#ifndef DEVSCOPE_LIBRARY_H
#define DEVSCOPE_LIBRARY_H

#include "abi.h"

/* Bytes that stand in the library. */
typedef struct {
  const unsigned char *begin;
  const unsigned char *end;
} LibraryData;

typedef struct {
  const char *name;
  int64_t binary;
  int64_t argument_count;
  const int64_t *sizes; /* as in Kernel */
} LibraryKernel;

/* A virtual device. number: of the machine's OpenCL devices that take SPIR-V, GPUs first; unused on the host. */
typedef struct {
  const char *name;
  int64_t number;
  int64_t kernel_count;
  const LibraryKernel *kernels;
  int64_t binary_count;
  const LibraryData *binaries;
} LibraryDevice;

/* The storage of the buffers in the memory of a slot. */
typedef struct {
  int64_t bytes;
  int64_t alignment;
  int64_t place_count;
  const int64_t (*places)[2]; /* offset and bytes */
} LibraryArena;

typedef struct {
  const char *name;
  int64_t rank;
  int64_t item_bytes;
  const int64_t *shape; /* -1: known at run time */
} LibraryTensor;

typedef struct {
  const char *name;
  Entry *function;
  int64_t argument_count;
  const LibraryTensor *arguments;
  int64_t result_count;
  const LibraryTensor *results;
} LibraryEntry;

/* One for each slot, that of the host first. */
typedef struct {
  int64_t slot_count;
  const LibraryDevice *devices;
  const LibraryArena *arenas;
  int64_t constant_count;
  const LibraryData *constants;
} LibraryProgram;

#endif
