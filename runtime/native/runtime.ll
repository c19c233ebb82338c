; The native runtime of compiled programs: what host code calls to allocate, copy and launch.
;
; This module is linked into the host module of every program, so it has neither a triple nor a data
; layout; it assumes 64-bit pointers. It calls device drivers through addresses that the loader puts
; into the context: nothing here calls back into Python, takes a lock or names a driver library.
;
; One program runs its calls one at a time (the loader holds a lock), hence plain loads and stores.
;
; Rules that hold everywhere:
;   * slot 0 is host memory; the other slots are the program's virtual devices;
;   * the first failure is recorded in the context. After one of a device, host code runs on and the devices
;     are left alone: launches and copies do nothing, allocations give null. Frees still free, host memory
;     still works, and a copy to the host that cannot be made gives zeros, so that host code which
;     branches on the result is at least deterministic. After one of the host (no memory, an assertion)
;     nothing can run on: devscope_stop leaves the call, and devscope_end frees what the call had made;
;   * a "status" is an i32, 0 for success, else the driver's own error code.
;
; Most functions carry #0, which keeps LLVM from optimising them: their time is the driver's, and this
; module is compiled with every program (it took 70 ms before, 25 ms now). Launching, which has a target to
; meet, and copying element by element are left to the optimiser.
;
; The structs below are mirrored by layout.py: change both, and ABI_VERSION there.

; origin: 0 no error, 1 the checks in this file, 2 the driver of the slot
; (origin, code, operation, slot, detail: a number of bytes, an index or the address of a text)
%devscope.Error = type { i64, i64, i64, i64, i64 }

; calls: how many were begun. blocks: the host memory that the current call made. stop: the jmp_buf of the
; current call; the largest one of a supported C library has 312 bytes (glibc on aarch64). free_live: frees
; the device buffers that the current call made. It is null until the first is made, so that programs without
; devices do not contain what device buffers need.
; (error, number of devices, devices, number of constants, constants, traffic[source * devices + destination],
;  calls, blocks, free_live, stop)
%devscope.Context = type { %devscope.Error, i64, ptr, i64, ptr, ptr, i64, %devscope.Block, ptr, [64 x i64] }

; Stands before the memory of every host allocation, and as the head of the (circular) list. Memory that is
; returned to the loader keeps it, unused: the loader frees what stands 16 bytes before what it was given.
; (next, previous)
%devscope.Block = type { ptr, ptr }

; kind: 0 host, 1 OpenCL. domain: devices of one kind and one domain copy to each other directly (the
; cl_context). pending: work was enqueued that the driver may not have been told to start.
; (kind, pending, domain, queue, driver functions, number of kernels, kernels, constants, free list, counters,
;  live buffers)
%devscope.Device = type { i32, i32, ptr, ptr, ptr, i64, ptr, ptr, %devscope.FreeList, %devscope.Counters,
                          %devscope.LiveList }

; The buffers that host code has and must free. (entries in use, capacity, entries from malloc)
%devscope.LiveList = type { i64, i64, ptr }
; (handle, number of the call that made it)
%devscope.LiveBuffer = type { ptr, i64 }

; Freed buffers kept for reuse, oldest first. (entries in use, capacity, bytes held, byte limit, entries)
%devscope.FreeList = type { i64, i64, i64, i64, ptr }
%devscope.FreeBuffer = type { ptr, i64 }

; (launches, allocations, allocations made by the driver)
%devscope.Counters = type { i64, i64, i64 }

; sizes[i] > 0: bytes of argument i; < 0: -bytes of workgroup-local memory, the argument cell is not read.
; (driver's kernel, number of arguments, sizes)
%devscope.Kernel = type { ptr, i64, ptr }

%devscope.Constant = type { ptr, i64 }
%devscope.Traffic = type { i64, i64 }

; What one kind of device can do; every function returns a status.
;   alloc(device, bytes, out handle)                      size(device, handle, out bytes)
;   free(device, handle)                                  flush(device)
;   copy_in(device, handle, offset, host, bytes)          copy_out(device, handle, offset, host, bytes)
;   copy_on(source device, handle, offset, destination device, handle, offset, bytes)
;   launch(device, kernel record, gx, gy, gz, bx, by, bz, argument cells)
; (alloc, free, size, copy_in, copy_out, copy_on, launch, flush)
%devscope.Ops = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }

; The OpenCL entry points in use, in the order of opencl_api.NATIVE_FUNCTIONS:
; (clCreateBuffer, clReleaseMemObject, clGetMemObjectInfo, clEnqueueWriteBuffer, clEnqueueReadBuffer,
;  clEnqueueCopyBuffer, clSetKernelArg, clEnqueueNDRangeKernel, clFinish, clFlush, clCreateSubBuffer)
%devscope.OpenCL = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }

@devscope_context = global ptr null

@devscope.ops = internal unnamed_addr constant [2 x %devscope.Ops] [
  %devscope.Ops { ptr @devscope.host.alloc, ptr @devscope.host.free, ptr @devscope.host.size,
                  ptr @devscope.host.copy_in, ptr @devscope.host.copy_out, ptr @devscope.host.copy_on,
                  ptr @devscope.host.launch, ptr @devscope.host.flush },
  %devscope.Ops { ptr @devscope.opencl.alloc, ptr @devscope.opencl.free, ptr @devscope.opencl.size,
                  ptr @devscope.opencl.copy_in, ptr @devscope.opencl.copy_out, ptr @devscope.opencl.copy_on,
                  ptr @devscope.opencl.launch, ptr @devscope.opencl.flush }
]

declare ptr @malloc(i64)
declare ptr @aligned_alloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare void @_longjmp(ptr, i32) noreturn
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)

; ---------------------------------------------------------------------------------------------- errors
; Operations: 1 alloc, 2 free, 3 copy, 4 constant, 5 launch, 6 assert.
; Codes of origin 1: 1 slot out of range, 2 kernel out of range, 3 wrong number of arguments,
; 4 constant out of range, 5 negative size, 6 out of host memory, 7 assertion failed.

define internal void @devscope.fail(i64 %origin, i64 %code, i64 %operation, i64 %slot, i64 %detail) cold #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %seen = load i64, ptr %context
  %first = icmp eq i64 %seen, 0
  br i1 %first, label %record, label %done

record:
  %code.p = getelementptr %devscope.Error, ptr %context, i32 0, i32 1
  %operation.p = getelementptr %devscope.Error, ptr %context, i32 0, i32 2
  %slot.p = getelementptr %devscope.Error, ptr %context, i32 0, i32 3
  %detail.p = getelementptr %devscope.Error, ptr %context, i32 0, i32 4
  store i64 %origin, ptr %context
  store i64 %code, ptr %code.p
  store i64 %operation, ptr %operation.p
  store i64 %slot, ptr %slot.p
  store i64 %detail, ptr %detail.p
  br label %done

done:
  ret void
}

define internal i1 @devscope.failed() alwaysinline {
  %context = load ptr, ptr @devscope_context
  %origin = load i64, ptr %context
  %failed = icmp ne i64 %origin, 0
  ret i1 %failed
}

; ----------------------------------------------------------------------------------------------- calls
; The loader calls a function of the program through code that is generated for it (see __init__.py): it
; asks devscope_begin for a jmp_buf, sets it, calls the function, and returns what devscope_end says.
; All of this, and host memory, is #0 for another reason too: compiled code is told that allocations touch no
; memory that it knows of, which holds as long as LLVM cannot look into the functions that share the list.

define ptr @devscope_begin() #0 {
  %context = load ptr, ptr @devscope_context
  %calls.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 6
  %calls = load i64, ptr %calls.p
  %calls.new = add i64 %calls, 1
  store i64 %calls.new, ptr %calls.p
  %blocks = getelementptr %devscope.Context, ptr %context, i32 0, i32 7
  %last.p = getelementptr %devscope.Block, ptr %blocks, i32 0, i32 1
  store ptr %blocks, ptr %blocks
  store ptr %blocks, ptr %last.p
  %stop = getelementptr %devscope.Context, ptr %context, i32 0, i32 9
  ret ptr %stop
}

; 0: the results of the call belong to the loader. 1: an error was recorded, there are no results, and all
; memory that the call made is freed.
define i32 @devscope_end() #0 {
entry:
  %failed = call i1 @devscope.failed()
  br i1 %failed, label %clean, label %good

good:
  ret i32 0

clean:
  call void @devscope.host.free_all()
  %context = load ptr, ptr @devscope_context
  %free_live.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 8
  %free_live = load ptr, ptr %free_live.p
  %none = icmp eq ptr %free_live, null
  br i1 %none, label %bad, label %clean_devices

clean_devices:
  call void %free_live()
  br label %bad

bad:
  ret i32 1
}

; Leaves the call. Everything that runs on the host's behalf is compiled code: no frame in between needs
; to be unwound.
define void @devscope_stop(i64 %code, i64 %operation, i64 %detail) noreturn cold #0 {
  call void @devscope.fail(i64 1, i64 %code, i64 %operation, i64 0, i64 %detail)
  %context = load ptr, ptr @devscope_context
  %stop = getelementptr %devscope.Context, ptr %context, i32 0, i32 9
  call void @_longjmp(ptr %stop, i32 1)
  unreachable
}

; message: a C string that outlives the call.
define void @devscope_assert(i1 %holds, ptr %message) alwaysinline {
entry:
  br i1 %holds, label %done, label %stop

stop:
  %address = ptrtoint ptr %message to i64
  call void @devscope_stop(i64 7, i64 6, i64 %address)
  unreachable

done:
  ret void
}

; ----------------------------------------------------------------------------------------- host memory

; Memory for compiled code, aligned as malloc does it; the caller may move on to the next multiple of 64. A
; negative number of bytes is the size of a dimension that made no sense; it and a lack of memory stop the call.
;
; It has no allockind: LLVM may erase what has one, and would erase the stop with it.
define noalias nonnull ptr @devscope_host_alloc(i64 %bytes) memory(inaccessiblemem: readwrite) #0 {
entry:
  ; Also keeps what is added to the size from wrapping around.
  %sensible = icmp ult i64 %bytes, 9223372036854774784
  br i1 %sensible, label %request, label %refuse

request:
  %size = add i64 %bytes, 79
  %block = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %refuse, label %link

link:
  %context = load ptr, ptr @devscope_context
  %head = getelementptr %devscope.Context, ptr %context, i32 0, i32 7
  %next = load ptr, ptr %head
  %previous.p = getelementptr %devscope.Block, ptr %block, i32 0, i32 1
  %next.previous.p = getelementptr %devscope.Block, ptr %next, i32 0, i32 1
  store ptr %next, ptr %block
  store ptr %head, ptr %previous.p
  store ptr %block, ptr %head
  store ptr %block, ptr %next.previous.p
  %memory = getelementptr %devscope.Block, ptr %block, i64 1
  ret ptr %memory

refuse:
  %negative = icmp slt i64 %bytes, 0
  %code = select i1 %negative, i64 5, i64 6
  call void @devscope_stop(i64 %code, i64 1, i64 %bytes)
  unreachable
}

; The names by which MLIR calls allocation and release.

define noalias nonnull ptr @_mlir_memref_to_llvm_alloc(i64 %bytes) alwaysinline {
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  ret ptr %memory
}

define void @_mlir_memref_to_llvm_free(ptr captures(none) %memory)
    memory(argmem: readwrite, inaccessiblemem: readwrite) #0 {
entry:
  %null = icmp eq ptr %memory, null
  br i1 %null, label %done, label %unlink

unlink:
  %block = getelementptr %devscope.Block, ptr %memory, i64 -1
  %previous.p = getelementptr %devscope.Block, ptr %block, i32 0, i32 1
  %next = load ptr, ptr %block
  %previous = load ptr, ptr %previous.p
  %next.previous.p = getelementptr %devscope.Block, ptr %next, i32 0, i32 1
  store ptr %next, ptr %previous
  store ptr %previous, ptr %next.previous.p
  call void @free(ptr %block)
  br label %done

done:
  ret void
}

define internal void @devscope.host.free_all() #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %head = getelementptr %devscope.Context, ptr %context, i32 0, i32 7
  %first = load ptr, ptr %head
  br label %loop

loop:
  %block = phi ptr [ %first, %entry ], [ %next, %release ]
  %end = icmp eq ptr %block, %head
  br i1 %end, label %done, label %release

release:
  %next = load ptr, ptr %block
  call void @free(ptr %block)
  br label %loop

done:
  ret void
}

; ------------------------------------------------------------------------------------- devices and ops

; The device of a slot; null, with the error recorded, when the program has no such slot.
define internal ptr @devscope.device(i64 %slot, i64 %operation) alwaysinline {
entry:
  %context = load ptr, ptr @devscope_context
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 1
  %count = load i64, ptr %count.p
  %legal = icmp ult i64 %slot, %count
  br i1 %legal, label %found, label %bad

found:
  %devices.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 2
  %devices = load ptr, ptr %devices.p
  %device = getelementptr %devscope.Device, ptr %devices, i64 %slot
  ret ptr %device

bad:
  call void @devscope.fail(i64 1, i64 1, i64 %operation, i64 %slot, i64 %count)
  ret ptr null
}

define internal ptr @devscope.op(ptr %device, i32 %which) alwaysinline {
  %kind = load i32, ptr %device
  %op.p = getelementptr [2 x %devscope.Ops], ptr @devscope.ops, i64 0, i32 %kind
  %field.p = getelementptr ptr, ptr %op.p, i32 %which
  %op = load ptr, ptr %field.p
  ret ptr %op
}

define internal i1 @devscope.is_host(ptr %device) alwaysinline {
  %kind = load i32, ptr %device
  %host = icmp eq i32 %kind, 0
  ret i1 %host
}

define internal void @devscope.count(ptr %device, i32 %which) alwaysinline {
  %counters = getelementptr %devscope.Device, ptr %device, i32 0, i32 9
  %counter = getelementptr i64, ptr %counters, i32 %which
  %old = load i64, ptr %counter
  %new = add i64 %old, 1
  store i64 %new, ptr %counter
  ret void
}

define internal void @devscope.set_pending(ptr %device, i32 %pending) alwaysinline {
  %pending.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 1
  store i32 %pending, ptr %pending.p
  ret void
}

; Tells every driver to start what was enqueued. Called before the host blocks on one queue, so that the
; other devices work meanwhile. A failing flush is not recorded here: the wait that needs the work reports it.
define internal void @devscope.flush_pending() #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 1
  %count = load i64, ptr %count.p
  %devices.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 2
  %devices = load ptr, ptr %devices.p
  br label %loop

loop:
  %slot = phi i64 [ 0, %entry ], [ %next, %continue ]
  %more = icmp ult i64 %slot, %count
  br i1 %more, label %check, label %done

check:
  %device = getelementptr %devscope.Device, ptr %devices, i64 %slot
  %pending.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 1
  %pending = load i32, ptr %pending.p
  %idle = icmp eq i32 %pending, 0
  br i1 %idle, label %continue, label %flush

flush:
  %op = call ptr @devscope.op(ptr %device, i32 7)
  %status = call i32 %op(ptr %device)
  store i32 0, ptr %pending.p
  br label %continue

continue:
  %next = add i64 %slot, 1
  br label %loop

done:
  ret void
}

; ------------------------------------------------------------------------------------------- free list
; Buffers are reused when their size is equal: a program in a steady state asks for the same sizes again
; and again. A linear search is enough for the bounded list. Reuse needs no wait: the queue of a virtual
; device is in order, so new work on the buffer comes after the old.

; Takes the most recently freed buffer of this size, or gives null.
define internal ptr @devscope.freelist.take(ptr %list, i64 %bytes) #0 {
entry:
  %count = load i64, ptr %list
  %entries.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 4
  %entries = load ptr, ptr %entries.p
  br label %loop

loop:
  %left = phi i64 [ %count, %entry ], [ %index, %look ]
  %empty = icmp eq i64 %left, 0
  br i1 %empty, label %none, label %look

look:
  %index = sub i64 %left, 1
  %item = getelementptr %devscope.FreeBuffer, ptr %entries, i64 %index
  %size.p = getelementptr %devscope.FreeBuffer, ptr %item, i32 0, i32 1
  %size = load i64, ptr %size.p
  %match = icmp eq i64 %size, %bytes
  br i1 %match, label %hit, label %loop

hit:
  %handle = load ptr, ptr %item
  call void @devscope.freelist.remove(ptr %list, i64 %index)
  ret ptr %handle

none:
  ret ptr null
}

; Removes one entry and keeps the order (by age) of the others.
define internal void @devscope.freelist.remove(ptr %list, i64 %index) #0 {
  %count = load i64, ptr %list
  %bytes.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 2
  %entries.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 4
  %entries = load ptr, ptr %entries.p
  %item = getelementptr %devscope.FreeBuffer, ptr %entries, i64 %index
  %size.p = getelementptr %devscope.FreeBuffer, ptr %item, i32 0, i32 1
  %size = load i64, ptr %size.p
  %bytes = load i64, ptr %bytes.p
  %bytes.new = sub i64 %bytes, %size
  store i64 %bytes.new, ptr %bytes.p
  %count.new = sub i64 %count, 1
  store i64 %count.new, ptr %list
  %after = getelementptr %devscope.FreeBuffer, ptr %item, i64 1
  %tail = sub i64 %count.new, %index
  %tail.bytes = mul i64 %tail, 16
  call void @llvm.memmove.p0.p0.i64(ptr %item, ptr %after, i64 %tail.bytes, i1 false)
  ret void
}

; Gives the oldest buffers back to the driver until at most %count of them and %bytes bytes are held.
define internal void @devscope.freelist.trim(ptr %device, i64 %count, i64 %bytes) #0 {
entry:
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 8
  %bytes.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 2
  %entries.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 4
  %entries = load ptr, ptr %entries.p
  br label %loop

loop:
  %held = load i64, ptr %list
  %held.bytes = load i64, ptr %bytes.p
  %many = icmp ugt i64 %held, %count
  %much = icmp ugt i64 %held.bytes, %bytes
  %over = or i1 %many, %much
  br i1 %over, label %evict, label %done

evict:
  %handle = load ptr, ptr %entries
  call void @devscope.freelist.remove(ptr %list, i64 0)
  %op = call ptr @devscope.op(ptr %device, i32 1)
  %status = call i32 %op(ptr %device, ptr %handle)
  br label %loop

done:
  ret void
}

; Keeps a freed buffer if the list may hold it; false when the caller has to free it.
define internal i1 @devscope.freelist.keep(ptr %device, ptr %handle) #0 {
entry:
  %size.p = alloca i64
  store i64 0, ptr %size.p
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 8
  %capacity.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 1
  %capacity = load i64, ptr %capacity.p
  %off = icmp eq i64 %capacity, 0
  br i1 %off, label %refuse, label %ask

ask:
  %op = call ptr @devscope.op(ptr %device, i32 2)
  %status = call i32 %op(ptr %device, ptr %handle, ptr %size.p)
  %size = load i64, ptr %size.p
  %limit.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 3
  %limit = load i64, ptr %limit.p
  %large = icmp ugt i64 %size, %limit
  %unknown = icmp ne i32 %status, 0
  %no = or i1 %large, %unknown
  br i1 %no, label %refuse, label %keep

keep:
  %room.count = sub i64 %capacity, 1
  %room.bytes = sub i64 %limit, %size
  call void @devscope.freelist.trim(ptr %device, i64 %room.count, i64 %room.bytes)
  %count = load i64, ptr %list
  %entries.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 4
  %entries = load ptr, ptr %entries.p
  %item = getelementptr %devscope.FreeBuffer, ptr %entries, i64 %count
  %item.size.p = getelementptr %devscope.FreeBuffer, ptr %item, i32 0, i32 1
  store ptr %handle, ptr %item
  store i64 %size, ptr %item.size.p
  %count.new = add i64 %count, 1
  store i64 %count.new, ptr %list
  %bytes.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 2
  %bytes = load i64, ptr %bytes.p
  %bytes.new = add i64 %bytes, %size
  store i64 %bytes.new, ptr %bytes.p
  ret i1 true

refuse:
  ret i1 false
}

; --------------------------------------------------------------------------------------- live buffers
; Constants are not among them: they stay until the executable is closed.

; False when there is no memory for the entry.
define internal i1 @devscope.live.add(ptr %list, ptr %handle) #0 {
entry:
  %count = load i64, ptr %list
  %capacity.p = getelementptr %devscope.LiveList, ptr %list, i32 0, i32 1
  %capacity = load i64, ptr %capacity.p
  %entries.p = getelementptr %devscope.LiveList, ptr %list, i32 0, i32 2
  %room = icmp ult i64 %count, %capacity
  br i1 %room, label %append, label %grow

grow:
  %old = load ptr, ptr %entries.p
  %twice = mul i64 %capacity, 2
  %larger = add i64 %twice, 64
  %size = mul i64 %larger, 16
  %new = call ptr @realloc(ptr %old, i64 %size)
  %none = icmp eq ptr %new, null
  br i1 %none, label %full, label %grown

grown:
  store ptr %new, ptr %entries.p
  store i64 %larger, ptr %capacity.p
  br label %append

append:
  %entries = load ptr, ptr %entries.p
  %item = getelementptr %devscope.LiveBuffer, ptr %entries, i64 %count
  %call.p = getelementptr %devscope.LiveBuffer, ptr %item, i32 0, i32 1
  %context = load ptr, ptr @devscope_context
  %calls.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 6
  %call = load i64, ptr %calls.p
  %free_live.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 8
  store ptr @devscope.live.free_all, ptr %free_live.p
  store ptr %handle, ptr %item
  store i64 %call, ptr %call.p
  %count.new = add i64 %count, 1
  store i64 %count.new, ptr %list
  ret i1 true

full:
  ret i1 false
}

; The last buffer made is mostly the first to be freed, so the search begins at the end. The last entry
; takes the place of the one that goes.
define internal void @devscope.live.remove(ptr %list, ptr %handle) #0 {
entry:
  %count = load i64, ptr %list
  %entries.p = getelementptr %devscope.LiveList, ptr %list, i32 0, i32 2
  %entries = load ptr, ptr %entries.p
  br label %loop

loop:
  %left = phi i64 [ %count, %entry ], [ %index, %look ]
  %empty = icmp eq i64 %left, 0
  br i1 %empty, label %done, label %look

look:
  %index = sub i64 %left, 1
  %item = getelementptr %devscope.LiveBuffer, ptr %entries, i64 %index
  %here = load ptr, ptr %item
  %match = icmp eq ptr %here, %handle
  br i1 %match, label %hit, label %loop

hit:
  %count.new = sub i64 %count, 1
  %last = getelementptr %devscope.LiveBuffer, ptr %entries, i64 %count.new
  call void @llvm.memmove.p0.p0.i64(ptr %item, ptr %last, i64 16, i1 false)
  store i64 %count.new, ptr %list
  br label %done

done:
  ret void
}

; Frees the buffers that the current call made, on all devices.
define internal void @devscope.live.free_all() #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 1
  %count = load i64, ptr %count.p
  %devices.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 2
  %devices = load ptr, ptr %devices.p
  %calls.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 6
  %call = load i64, ptr %calls.p
  br label %next_device

next_device:
  %slot = phi i64 [ 0, %entry ], [ %slot.next, %device_done ]
  %more = icmp ult i64 %slot, %count
  br i1 %more, label %device, label %done

device:
  %device.p = getelementptr %devscope.Device, ptr %devices, i64 %slot
  %list = getelementptr %devscope.Device, ptr %device.p, i32 0, i32 10
  %entries.p = getelementptr %devscope.LiveList, ptr %list, i32 0, i32 2
  %live = load i64, ptr %list
  br label %loop

loop:
  %left = phi i64 [ %live, %device ], [ %index, %look ], [ %index, %release ]
  %empty = icmp eq i64 %left, 0
  br i1 %empty, label %device_done, label %look

look:
  %index = sub i64 %left, 1
  %entries = load ptr, ptr %entries.p
  %item = getelementptr %devscope.LiveBuffer, ptr %entries, i64 %index
  %made.p = getelementptr %devscope.LiveBuffer, ptr %item, i32 0, i32 1
  %made = load i64, ptr %made.p
  %ours = icmp eq i64 %made, %call
  br i1 %ours, label %release, label %loop

release:
  ; Entries above this one that stay were looked at before: the one that takes its place is one of them.
  %handle = load ptr, ptr %item
  call void @devscope_free(i64 %slot, ptr %handle)
  br label %loop

device_done:
  %slot.next = add i64 %slot, 1
  br label %next_device

done:
  ret void
}

; ------------------------------------------------------------------------------- alloc, free, constant

; A negative number of bytes is the size of a dimension that made no sense.
define ptr @devscope_alloc(i64 %slot, i64 %bytes) #0 {
entry:
  %handle = call ptr @devscope.obtain(i64 %slot, i64 %bytes)
  %none = icmp eq ptr %handle, null
  br i1 %none, label %done, label %enter

enter:
  %device = call ptr @devscope.device(i64 %slot, i64 1)
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 10
  %entered = call i1 @devscope.live.add(ptr %list, ptr %handle)
  br i1 %entered, label %done, label %drop

drop:
  call void @devscope.release(i64 %slot, ptr %handle)
  call void @devscope.fail(i64 1, i64 6, i64 1, i64 %slot, i64 %bytes)
  ret ptr null

done:
  ret ptr %handle
}

define void @devscope_free(i64 %slot, ptr %handle) #0 {
entry:
  %null = icmp eq ptr %handle, null
  br i1 %null, label %done, label %find

find:
  %device = call ptr @devscope.device(i64 %slot, i64 2)
  %unknown = icmp eq ptr %device, null
  br i1 %unknown, label %done, label %remove

remove:
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 10
  call void @devscope.live.remove(ptr %list, ptr %handle)
  call void @devscope.release(i64 %slot, ptr %handle)
  br label %done

done:
  ret void
}

; A buffer of the free list, else of the driver; null with the error recorded.
define internal ptr @devscope.obtain(i64 %slot, i64 %bytes) #0 {
entry:
  %handle.p = alloca ptr
  store ptr null, ptr %handle.p
  %device = call ptr @devscope.device(i64 %slot, i64 1)
  %unknown = icmp eq ptr %device, null
  br i1 %unknown, label %none, label %check

check:
  %negative = icmp slt i64 %bytes, 0
  br i1 %negative, label %bad_size, label %alive

bad_size:
  call void @devscope.fail(i64 1, i64 5, i64 1, i64 %slot, i64 %bytes)
  br label %none

alive:
  %failed = call i1 @devscope.failed()
  %host = call i1 @devscope.is_host(ptr %device)
  %not_host = xor i1 %host, true
  %skip = and i1 %failed, %not_host
  br i1 %skip, label %none, label %request

request:
  ; Drivers refuse empty buffers, and equal sizes are what the free list can use: round up to 64 bytes.
  %empty = icmp eq i64 %bytes, 0
  %some = select i1 %empty, i64 1, i64 %bytes
  %up = add i64 %some, 63
  %size = and i64 %up, -64
  call void @devscope.count(ptr %device, i32 1)
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 8
  %kept = call ptr @devscope.freelist.take(ptr %list, i64 %size)
  %hit = icmp ne ptr %kept, null
  br i1 %hit, label %reuse, label %create

reuse:
  ret ptr %kept

create:
  %op = call ptr @devscope.op(ptr %device, i32 0)
  %status = call i32 %op(ptr %device, i64 %size, ptr %handle.p)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %created, label %retry

retry:
  ; Memory may be tied up in the free list: give it all back and ask once more.
  call void @devscope.freelist.trim(ptr %device, i64 0, i64 0)
  %status2 = call i32 %op(ptr %device, i64 %size, ptr %handle.p)
  %ok2 = icmp eq i32 %status2, 0
  br i1 %ok2, label %created, label %refused

created:
  call void @devscope.count(ptr %device, i32 2)
  %handle = load ptr, ptr %handle.p
  ret ptr %handle

refused:
  %code = sext i32 %status2 to i64
  call void @devscope.fail(i64 2, i64 %code, i64 1, i64 %slot, i64 %bytes)
  br label %none

none:
  ret ptr null
}

; To the free list, else to the driver.
define internal void @devscope.release(i64 %slot, ptr %handle) #0 {
entry:
  %null = icmp eq ptr %handle, null
  br i1 %null, label %done, label %find

find:
  %device = call ptr @devscope.device(i64 %slot, i64 2)
  %unknown = icmp eq ptr %device, null
  br i1 %unknown, label %done, label %keep

keep:
  %kept = call i1 @devscope.freelist.keep(ptr %device, ptr %handle)
  br i1 %kept, label %done, label %release

release:
  %op = call ptr @devscope.op(ptr %device, i32 1)
  %status = call i32 %op(ptr %device, ptr %handle)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %done, label %refused

refused:
  %code = sext i32 %status to i64
  call void @devscope.fail(i64 2, i64 %code, i64 2, i64 %slot, i64 0)
  br label %done

done:
  ret void
}

; On the host a constant is the loader's memory; a device gets its copy at the first use.
define ptr @devscope_constant(i64 %slot, i64 %index) #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %device = call ptr @devscope.device(i64 %slot, i64 4)
  %unknown = icmp eq ptr %device, null
  br i1 %unknown, label %none, label %check

check:
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 3
  %count = load i64, ptr %count.p
  %legal = icmp ult i64 %index, %count
  br i1 %legal, label %find, label %bad

bad:
  call void @devscope.fail(i64 1, i64 4, i64 4, i64 %slot, i64 %index)
  br label %none

find:
  %constants.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 4
  %constants = load ptr, ptr %constants.p
  %constant = getelementptr %devscope.Constant, ptr %constants, i64 %index
  %data = load ptr, ptr %constant
  %host = call i1 @devscope.is_host(ptr %device)
  br i1 %host, label %on_host, label %on_device

on_host:
  ret ptr %data

on_device:
  %uploads.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 7
  %uploads = load ptr, ptr %uploads.p
  %upload.p = getelementptr ptr, ptr %uploads, i64 %index
  %upload = load ptr, ptr %upload.p
  %there = icmp ne ptr %upload, null
  br i1 %there, label %uploaded, label %first

uploaded:
  ret ptr %upload

first:
  %bytes.p = getelementptr %devscope.Constant, ptr %constant, i32 0, i32 1
  %bytes = load i64, ptr %bytes.p
  %handle = call ptr @devscope.obtain(i64 %slot, i64 %bytes)
  call void @devscope_copy(i64 0, ptr %data, i64 0, i64 %slot, ptr %handle, i64 0, i64 %bytes)
  %failed = call i1 @devscope.failed()
  br i1 %failed, label %drop, label %store

store:
  store ptr %handle, ptr %upload.p
  ret ptr %handle

drop:
  call void @devscope.release(i64 %slot, ptr %handle)
  br label %none

none:
  ret ptr null
}

; ------------------------------------------------------------------------------------------------ copy

define void @devscope_copy(i64 %src_slot, ptr %src, i64 %src_offset,
                           i64 %dst_slot, ptr %dst, i64 %dst_offset, i64 %bytes) #0 {
entry:
  %source = call ptr @devscope.device(i64 %src_slot, i64 3)
  %target = call ptr @devscope.device(i64 %dst_slot, i64 3)
  %no_source = icmp eq ptr %source, null
  %no_target = icmp eq ptr %target, null
  %unknown = or i1 %no_source, %no_target
  br i1 %unknown, label %done, label %check_size

check_size:
  %nothing = icmp eq i64 %bytes, 0
  br i1 %nothing, label %done, label %check_negative

check_negative:
  %negative = icmp slt i64 %bytes, 0
  br i1 %negative, label %bad_size, label %check_alive

bad_size:
  call void @devscope.fail(i64 1, i64 5, i64 3, i64 %dst_slot, i64 %bytes)
  br label %done

check_alive:
  %from_host = call i1 @devscope.is_host(ptr %source)
  %to_host = call i1 @devscope.is_host(ptr %target)
  %on_host = and i1 %from_host, %to_host
  %failed = call i1 @devscope.failed()
  %not_on_host = xor i1 %on_host, true
  %skip = and i1 %failed, %not_on_host
  br i1 %skip, label %zero, label %start

start:
  ; Only a copy inside one queue (or inside host memory) does not block.
  %same_slot = icmp eq i64 %src_slot, %dst_slot
  %stays = or i1 %same_slot, %on_host
  br i1 %stays, label %route, label %flush

flush:
  call void @devscope.flush_pending()
  br label %route

route:
  br i1 %on_host, label %direct, label %route_in

route_in:
  br i1 %from_host, label %in, label %route_out

route_out:
  br i1 %to_host, label %out, label %route_on

route_on:
  %source.kind = load i32, ptr %source
  %target.kind = load i32, ptr %target
  %same_kind = icmp eq i32 %source.kind, %target.kind
  %source.domain.p = getelementptr %devscope.Device, ptr %source, i32 0, i32 2
  %target.domain.p = getelementptr %devscope.Device, ptr %target, i32 0, i32 2
  %source.domain = load ptr, ptr %source.domain.p
  %target.domain = load ptr, ptr %target.domain.p
  %same_domain = icmp eq ptr %source.domain, %target.domain
  %near = and i1 %same_kind, %same_domain
  br i1 %near, label %direct, label %staged

in:
  %in.host = getelementptr i8, ptr %src, i64 %src_offset
  %in.op = call ptr @devscope.op(ptr %target, i32 3)
  %in.status = call i32 %in.op(ptr %target, ptr %dst, i64 %dst_offset, ptr %in.host, i64 %bytes)
  br label %report

out:
  %out.host = getelementptr i8, ptr %dst, i64 %dst_offset
  %out.op = call ptr @devscope.op(ptr %source, i32 4)
  %out.status = call i32 %out.op(ptr %source, ptr %src, i64 %src_offset, ptr %out.host, i64 %bytes)
  br label %report

direct:
  %on.op = call ptr @devscope.op(ptr %source, i32 5)
  %on.status = call i32 %on.op(ptr %source, ptr %src, i64 %src_offset, ptr %target, ptr %dst, i64 %dst_offset,
                               i64 %bytes)
  br label %report

staged:
  call void @devscope.copy_staged(i64 %src_slot, ptr %source, ptr %src, i64 %src_offset,
                                  i64 %dst_slot, ptr %target, ptr %dst, i64 %dst_offset, i64 %bytes)
  %staged.failed = call i1 @devscope.failed()
  br i1 %staged.failed, label %done, label %traffic

report:
  %status = phi i32 [ %in.status, %in ], [ %out.status, %out ], [ %on.status, %direct ]
  %culprit = phi i64 [ %dst_slot, %in ], [ %src_slot, %out ], [ %dst_slot, %direct ]
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %traffic, label %refused

traffic:
  %context = load ptr, ptr @devscope_context
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 1
  %count = load i64, ptr %count.p
  %row = mul i64 %src_slot, %count
  %cell = add i64 %row, %dst_slot
  %traffic.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 5
  %table = load ptr, ptr %traffic.p
  %copies.p = getelementptr %devscope.Traffic, ptr %table, i64 %cell
  %moved.p = getelementptr %devscope.Traffic, ptr %copies.p, i32 0, i32 1
  %copies = load i64, ptr %copies.p
  %moved = load i64, ptr %moved.p
  %copies.new = add i64 %copies, 1
  %moved.new = add i64 %moved, %bytes
  store i64 %copies.new, ptr %copies.p
  store i64 %moved.new, ptr %moved.p
  br label %done

refused:
  %code = sext i32 %status to i64
  call void @devscope.fail(i64 2, i64 %code, i64 3, i64 %culprit, i64 %bytes)
  br label %zero

zero:
  %has_memory = icmp ne ptr %dst, null
  %fill = and i1 %to_host, %has_memory
  br i1 %fill, label %clear, label %done

clear:
  %clear.p = getelementptr i8, ptr %dst, i64 %dst_offset
  call void @llvm.memset.p0.i64(ptr %clear.p, i8 0, i64 %bytes, i1 false)
  br label %done

done:
  ret void
}

; Devices that cannot reach each other copy through a host buffer of at most 4 MiB.
define internal void @devscope.copy_staged(i64 %src_slot, ptr %source, ptr %src, i64 %src_offset,
                                           i64 %dst_slot, ptr %target, ptr %dst, i64 %dst_offset,
                                           i64 %bytes) #0 {
entry:
  %small = icmp ult i64 %bytes, 4194304
  %chunk = select i1 %small, i64 %bytes, i64 4194304
  %bounce = call ptr @malloc(i64 %chunk)
  %none = icmp eq ptr %bounce, null
  br i1 %none, label %no_memory, label %prepare

no_memory:
  call void @devscope.fail(i64 1, i64 6, i64 3, i64 %src_slot, i64 %chunk)
  ret void

prepare:
  %out = call ptr @devscope.op(ptr %source, i32 4)
  %in = call ptr @devscope.op(ptr %target, i32 3)
  br label %loop

loop:
  %at = phi i64 [ 0, %prepare ], [ %next, %written ]
  %more = icmp ult i64 %at, %bytes
  br i1 %more, label %read, label %done

read:
  %left = sub i64 %bytes, %at
  %short = icmp ult i64 %left, %chunk
  %part = select i1 %short, i64 %left, i64 %chunk
  %from = add i64 %src_offset, %at
  %read.status = call i32 %out(ptr %source, ptr %src, i64 %from, ptr %bounce, i64 %part)
  %read.ok = icmp eq i32 %read.status, 0
  br i1 %read.ok, label %write, label %failed

write:
  %to = add i64 %dst_offset, %at
  %write.status = call i32 %in(ptr %target, ptr %dst, i64 %to, ptr %bounce, i64 %part)
  %write.ok = icmp eq i32 %write.status, 0
  br i1 %write.ok, label %written, label %failed

written:
  %next = add i64 %at, %part
  br label %loop

failed:
  %status = phi i32 [ %read.status, %read ], [ %write.status, %write ]
  %culprit = phi i64 [ %src_slot, %read ], [ %dst_slot, %write ]
  %code = sext i32 %status to i64
  call void @devscope.fail(i64 2, i64 %code, i64 3, i64 %culprit, i64 %bytes)
  br label %done

done:
  call void @free(ptr %bounce)
  ret void
}

; ---------------------------------------------------------------------------------------------- launch

define void @devscope_launch(i64 %slot, i64 %index, i64 %gx, i64 %gy, i64 %gz, i64 %bx, i64 %by, i64 %bz,
                             ptr %cells, i64 %count) noinline {
entry:
  %device = call ptr @devscope.device(i64 %slot, i64 5)
  %unknown = icmp eq ptr %device, null
  br i1 %unknown, label %done, label %check_empty

check_empty:
  %empty.x = icmp eq i64 %gx, 0
  %empty.y = icmp eq i64 %gy, 0
  %empty.z = icmp eq i64 %gz, 0
  %empty.xy = or i1 %empty.x, %empty.y
  %empty = or i1 %empty.xy, %empty.z
  %failed = call i1 @devscope.failed()
  %skip = or i1 %empty, %failed
  br i1 %skip, label %done, label %check_kernel

check_kernel:
  %kernels.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 5
  %kernels = load i64, ptr %kernels.p
  %legal = icmp ult i64 %index, %kernels
  br i1 %legal, label %check_arguments, label %bad_kernel

bad_kernel:
  call void @devscope.fail(i64 1, i64 2, i64 5, i64 %slot, i64 %index)
  br label %done

check_arguments:
  %records.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 6
  %records = load ptr, ptr %records.p
  %kernel = getelementptr %devscope.Kernel, ptr %records, i64 %index
  %expected.p = getelementptr %devscope.Kernel, ptr %kernel, i32 0, i32 1
  %expected = load i64, ptr %expected.p
  %fits = icmp eq i64 %expected, %count
  br i1 %fits, label %launch, label %bad_count

bad_count:
  call void @devscope.fail(i64 1, i64 3, i64 5, i64 %slot, i64 %index)
  br label %done

launch:
  %op = call ptr @devscope.op(ptr %device, i32 6)
  %status = call i32 %op(ptr %device, ptr %kernel, i64 %gx, i64 %gy, i64 %gz, i64 %bx, i64 %by, i64 %bz, ptr %cells)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %launched, label %refused

launched:
  call void @devscope.set_pending(ptr %device, i32 1)
  call void @devscope.count(ptr %device, i32 0)
  br label %done

refused:
  %code = sext i32 %status to i64
  call void @devscope.fail(i64 2, i64 %code, i64 5, i64 %slot, i64 %index)
  br label %done

done:
  ret void
}

; ---------------------------------------------------------------------------------------- kind 0: host
; Status codes of this kind: 1 out of memory, 2 not possible on the host.

define internal i32 @devscope.host.alloc(ptr %device, i64 %bytes, ptr %out) #0 {
  %memory = call ptr @aligned_alloc(i64 64, i64 %bytes)
  store ptr %memory, ptr %out
  %none = icmp eq ptr %memory, null
  %status = zext i1 %none to i32
  ret i32 %status
}

define internal i32 @devscope.host.free(ptr %device, ptr %memory) #0 {
  call void @free(ptr %memory)
  ret i32 0
}

define internal i32 @devscope.host.size(ptr %device, ptr %memory, ptr %out) #0 {
  ret i32 2
}

define internal i32 @devscope.host.copy_in(ptr %device, ptr %to, i64 %offset, ptr %from, i64 %bytes) #0 {
  %to.p = getelementptr i8, ptr %to, i64 %offset
  call void @llvm.memmove.p0.p0.i64(ptr %to.p, ptr %from, i64 %bytes, i1 false)
  ret i32 0
}

define internal i32 @devscope.host.copy_out(ptr %device, ptr %from, i64 %offset, ptr %to, i64 %bytes) #0 {
  %from.p = getelementptr i8, ptr %from, i64 %offset
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from.p, i64 %bytes, i1 false)
  ret i32 0
}

define internal i32 @devscope.host.copy_on(ptr %source, ptr %from, i64 %from_offset,
                                           ptr %target, ptr %to, i64 %to_offset, i64 %bytes) #0 {
  %from.p = getelementptr i8, ptr %from, i64 %from_offset
  %to.p = getelementptr i8, ptr %to, i64 %to_offset
  call void @llvm.memmove.p0.p0.i64(ptr %to.p, ptr %from.p, i64 %bytes, i1 false)
  ret i32 0
}

; Compiled code calls host functions itself: there is nothing to launch.
define internal i32 @devscope.host.launch(ptr %device, ptr %kernel, i64 %gx, i64 %gy, i64 %gz,
                                          i64 %bx, i64 %by, i64 %bz, ptr %cells) #0 {
  ret i32 2
}

define internal i32 @devscope.host.flush(ptr %device) #0 {
  ret i32 0
}

; -------------------------------------------------------------------------------------- kind 1: OpenCL
; Handles are cl_mem, which every OpenCL driver has. One in-order queue per virtual device.

define internal ptr @devscope.opencl.function(ptr %device, i32 %which) alwaysinline {
  %driver.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 4
  %driver = load ptr, ptr %driver.p
  %function.p = getelementptr ptr, ptr %driver, i32 %which
  %function = load ptr, ptr %function.p
  ret ptr %function
}

define internal ptr @devscope.opencl.queue(ptr %device) alwaysinline {
  %queue.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 3
  %queue = load ptr, ptr %queue.p
  ret ptr %queue
}

define internal i32 @devscope.opencl.alloc(ptr %device, i64 %bytes, ptr %out) #0 {
  %status.p = alloca i32
  store i32 0, ptr %status.p
  %context.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 2
  %context = load ptr, ptr %context.p
  %create = call ptr @devscope.opencl.function(ptr %device, i32 0)
  ; 1 = CL_MEM_READ_WRITE
  %buffer = call ptr %create(ptr %context, i64 1, i64 %bytes, ptr null, ptr %status.p)
  store ptr %buffer, ptr %out
  %status = load i32, ptr %status.p
  ret i32 %status
}

define internal i32 @devscope.opencl.free(ptr %device, ptr %buffer) #0 {
  %release = call ptr @devscope.opencl.function(ptr %device, i32 1)
  %status = call i32 %release(ptr %buffer)
  ret i32 %status
}

define internal i32 @devscope.opencl.size(ptr %device, ptr %buffer, ptr %out) #0 {
  %info = call ptr @devscope.opencl.function(ptr %device, i32 2)
  ; 0x1102 = CL_MEM_SIZE
  %status = call i32 %info(ptr %buffer, i32 4354, i64 8, ptr %out, ptr null)
  ret i32 %status
}

define internal i32 @devscope.opencl.copy_in(ptr %device, ptr %buffer, i64 %offset, ptr %host, i64 %bytes) #0 {
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %write = call ptr @devscope.opencl.function(ptr %device, i32 3)
  ; Blocking: host code may change the memory as soon as this returns.
  %status = call i32 %write(ptr %queue, ptr %buffer, i32 1, i64 %offset, i64 %bytes, ptr %host, i32 0, ptr null, ptr null)
  ret i32 %status
}

define internal i32 @devscope.opencl.copy_out(ptr %device, ptr %buffer, i64 %offset, ptr %host, i64 %bytes) #0 {
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %read = call ptr @devscope.opencl.function(ptr %device, i32 4)
  %status = call i32 %read(ptr %queue, ptr %buffer, i32 1, i64 %offset, i64 %bytes, ptr %host, i32 0, ptr null, ptr null)
  ret i32 %status
}

; Both buffers are in one cl_context. Between two queues the copy waits for the source's queue before and
; for itself after, so that either side may reuse its buffer at once.
define internal i32 @devscope.opencl.copy_on(ptr %source, ptr %from, i64 %from_offset,
                                             ptr %target, ptr %to, i64 %to_offset, i64 %bytes) #0 {
entry:
  %queue = call ptr @devscope.opencl.queue(ptr %target)
  %copy = call ptr @devscope.opencl.function(ptr %target, i32 5)
  %finish = call ptr @devscope.opencl.function(ptr %target, i32 8)
  %same = icmp eq ptr %source, %target
  br i1 %same, label %inside, label %across

inside:
  %inside.status = call i32 %copy(ptr %queue, ptr %from, ptr %to, i64 %from_offset, i64 %to_offset, i64 %bytes,
                                  i32 0, ptr null, ptr null)
  call void @devscope.set_pending(ptr %target, i32 1)
  ret i32 %inside.status

across:
  %source.queue = call ptr @devscope.opencl.queue(ptr %source)
  %source.status = call i32 %finish(ptr %source.queue)
  %source.ok = icmp eq i32 %source.status, 0
  br i1 %source.ok, label %start, label %failed

start:
  %copy.status = call i32 %copy(ptr %queue, ptr %from, ptr %to, i64 %from_offset, i64 %to_offset, i64 %bytes,
                                i32 0, ptr null, ptr null)
  %copy.ok = icmp eq i32 %copy.status, 0
  br i1 %copy.ok, label %wait, label %failed

wait:
  %wait.status = call i32 %finish(ptr %queue)
  ret i32 %wait.status

failed:
  %status = phi i32 [ %source.status, %across ], [ %copy.status, %start ]
  ret i32 %status
}

define internal i32 @devscope.opencl.launch(ptr %device, ptr %record, i64 %gx, i64 %gy, i64 %gz,
                                            i64 %bx, i64 %by, i64 %bz, ptr %cells) {
entry:
  %global = alloca [3 x i64]
  %local = alloca [3 x i64]
  %kernel = load ptr, ptr %record
  %count.p = getelementptr %devscope.Kernel, ptr %record, i32 0, i32 1
  %count = load i64, ptr %count.p
  %sizes.p = getelementptr %devscope.Kernel, ptr %record, i32 0, i32 2
  %sizes = load ptr, ptr %sizes.p
  %set = call ptr @devscope.opencl.function(ptr %device, i32 6)
  br label %arguments

arguments:
  %index = phi i64 [ 0, %entry ], [ %next, %argument_set ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %argument, label %enqueue

argument:
  %size.p = getelementptr i64, ptr %sizes, i64 %index
  %size = load i64, ptr %size.p
  %cell = getelementptr i64, ptr %cells, i64 %index
  ; A negative size is an amount of workgroup-local memory: OpenCL wants the amount and no value.
  %is_local = icmp slt i64 %size, 0
  %amount = sub i64 0, %size
  %bytes = select i1 %is_local, i64 %amount, i64 %size
  %value = select i1 %is_local, ptr null, ptr %cell
  %position = trunc i64 %index to i32
  %set.status = call i32 %set(ptr %kernel, i32 %position, i64 %bytes, ptr %value)
  %set.ok = icmp eq i32 %set.status, 0
  br i1 %set.ok, label %argument_set, label %failed

argument_set:
  %next = add i64 %index, 1
  br label %arguments

enqueue:
  ; OpenCL counts work items where devscope counts workgroups.
  %x = mul i64 %gx, %bx
  %y = mul i64 %gy, %by
  %z = mul i64 %gz, %bz
  %global.y = getelementptr i64, ptr %global, i64 1
  %global.z = getelementptr i64, ptr %global, i64 2
  %local.y = getelementptr i64, ptr %local, i64 1
  %local.z = getelementptr i64, ptr %local, i64 2
  store i64 %x, ptr %global
  store i64 %y, ptr %global.y
  store i64 %z, ptr %global.z
  store i64 %bx, ptr %local
  store i64 %by, ptr %local.y
  store i64 %bz, ptr %local.z
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %run = call ptr @devscope.opencl.function(ptr %device, i32 7)
  %status = call i32 %run(ptr %queue, ptr %kernel, i32 3, ptr null, ptr %global, ptr %local, i32 0, ptr null, ptr null)
  ret i32 %status

failed:
  ret i32 %set.status
}

define internal i32 @devscope.opencl.flush(ptr %device) #0 {
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %flush = call ptr @devscope.opencl.function(ptr %device, i32 9)
  %status = call i32 %flush(ptr %queue)
  ret i32 %status
}

; ------------------------------------------------------------------------------------ strided host copy
; MLIR lowers memref.copy of strided buffers to a call of this function of its C runtime library.
; %src and %dst point to {i64 rank, ptr descriptor}; a descriptor is {allocated, aligned, offset,
; sizes[rank], strides[rank]} in cells of 8 bytes; %element is the size of an element in bytes.

define void @memrefCopy(i64 %element, ptr %src, ptr %dst) #0 {
  %rank = load i64, ptr %src
  %src.descriptor.p = getelementptr i64, ptr %src, i64 1
  %dst.descriptor.p = getelementptr i64, ptr %dst, i64 1
  %src.descriptor = load ptr, ptr %src.descriptor.p
  %dst.descriptor = load ptr, ptr %dst.descriptor.p
  %from = call ptr @devscope.memref.start(ptr %src.descriptor, i64 %element)
  %to = call ptr @devscope.memref.start(ptr %dst.descriptor, i64 %element)
  %sizes = getelementptr i64, ptr %src.descriptor, i64 3
  %src.strides = getelementptr i64, ptr %sizes, i64 %rank
  %dst.sizes = getelementptr i64, ptr %dst.descriptor, i64 3
  %dst.strides = getelementptr i64, ptr %dst.sizes, i64 %rank
  call void @devscope.memref.copy(i64 %rank, i64 %element, ptr %sizes, ptr %src.strides, ptr %dst.strides, ptr %from, ptr %to)
  ret void
}

define internal ptr @devscope.memref.start(ptr %descriptor, i64 %element) alwaysinline {
  %aligned.p = getelementptr i64, ptr %descriptor, i64 1
  %offset.p = getelementptr i64, ptr %descriptor, i64 2
  %aligned = load ptr, ptr %aligned.p
  %offset = load i64, ptr %offset.p
  %bytes = mul i64 %offset, %element
  %start = getelementptr i8, ptr %aligned, i64 %bytes
  ret ptr %start
}

; Copies the outermost of %rank dimensions slice by slice; as deep as the rank. A last dimension that is
; dense on both sides is one run of bytes.
define internal void @devscope.memref.copy(i64 %rank, i64 %element, ptr %sizes, ptr %src_strides, ptr %dst_strides, ptr %from, ptr %to) {
entry:
  %scalar = icmp eq i64 %rank, 0
  br i1 %scalar, label %one, label %look

one:
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %element, i1 false)
  ret void

look:
  %size = load i64, ptr %sizes
  %src.stride = load i64, ptr %src_strides
  %dst.stride = load i64, ptr %dst_strides
  %last = icmp eq i64 %rank, 1
  %src.dense = icmp eq i64 %src.stride, 1
  %dst.dense = icmp eq i64 %dst.stride, 1
  %dense = and i1 %src.dense, %dst.dense
  %run = and i1 %last, %dense
  br i1 %run, label %whole, label %prepare

whole:
  %bytes = mul i64 %size, %element
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void

prepare:
  %inner.rank = sub i64 %rank, 1
  %inner.sizes = getelementptr i64, ptr %sizes, i64 1
  %inner.src = getelementptr i64, ptr %src_strides, i64 1
  %inner.dst = getelementptr i64, ptr %dst_strides, i64 1
  %src.step = mul i64 %src.stride, %element
  %dst.step = mul i64 %dst.stride, %element
  br label %loop

loop:
  %index = phi i64 [ 0, %prepare ], [ %next, %slice ]
  %more = icmp slt i64 %index, %size
  br i1 %more, label %slice, label %done

slice:
  %src.at = mul i64 %index, %src.step
  %dst.at = mul i64 %index, %dst.step
  %slice.from = getelementptr i8, ptr %from, i64 %src.at
  %slice.to = getelementptr i8, ptr %to, i64 %dst.at
  call void @devscope.memref.copy(i64 %inner.rank, i64 %element, ptr %inner.sizes, ptr %inner.src, ptr %inner.dst, ptr %slice.from, ptr %slice.to)
  %next = add i64 %index, 1
  br label %loop

done:
  ret void
}

; --------------------------------------------------------------------------------------------- arenas
; Buffers whose lifetime the compiler knows have places in the arena of their memory: one piece of storage per
; slot, which stays. Places overlap where buffers are not needed at the same time; as for buffers from the free
; list, the order of a device's queue is all that keeps them apart. The host's arena is made by the loader, that
; of a device here, at its first use.

; offset, bytes: where in the arena; an offset of -1 is a buffer of its own. memory: on the host the address, on a device the handle of a sub-buffer, null
; until it is made.
; (offset, bytes, memory)
%devscope.Place = type { i64, i64, ptr }

; bytes: what the entry needs that is called. separate: 1 if the device cannot have sub-buffers at these offsets;
; then each place is a buffer of its own. memory: the handle of the whole.
; (bytes, separate, memory, places)
%devscope.Arena = type { i64, i64, ptr, ptr }

; One for each slot.
@devscope_arenas = global ptr null

; A place in host memory. As an allocation, it touches no memory that LLVM knows of, and nothing else points there
; until devscope_host_done.
define noalias nonnull align 64 ptr @devscope_host_place(i64 %number) memory(inaccessiblemem: readwrite) #0 {
  %arenas = load ptr, ptr @devscope_arenas
  %places.p = getelementptr %devscope.Arena, ptr %arenas, i32 0, i32 3
  %places = load ptr, ptr %places.p
  %memory.p = getelementptr %devscope.Place, ptr %places, i64 %number, i32 2
  %memory = load ptr, ptr %memory.p
  ret ptr %memory
}

; Says to LLVM what a release would: the place may hold something else from now on.
define void @devscope_host_done(ptr captures(none) %memory)
    memory(argmem: readwrite, inaccessiblemem: readwrite) #0 {
  ret void
}

; A place in the memory of a device; null with the error recorded.
define ptr @devscope_arena_buffer(i64 %slot, i64 %number) #0 {
entry:
  %arenas = load ptr, ptr @devscope_arenas
  %arena = getelementptr %devscope.Arena, ptr %arenas, i64 %slot
  %places.p = getelementptr %devscope.Arena, ptr %arena, i32 0, i32 3
  %places = load ptr, ptr %places.p
  %place = getelementptr %devscope.Place, ptr %places, i64 %number
  %memory.p = getelementptr %devscope.Place, ptr %place, i32 0, i32 2
  %memory = load ptr, ptr %memory.p
  %there = icmp ne ptr %memory, null
  br i1 %there, label %done, label %make

make:
  %made = call ptr @devscope.arena.make(i64 %slot, ptr %arena, ptr %place)
  store ptr %made, ptr %memory.p
  br label %done

done:
  %result = phi ptr [ %memory, %entry ], [ %made, %make ]
  ret ptr %result
}

define internal ptr @devscope.arena.make(i64 %slot, ptr %arena, ptr %place) #0 {
entry:
  %out = alloca ptr
  store ptr null, ptr %out
  %bytes.p = getelementptr %devscope.Place, ptr %place, i32 0, i32 1
  %bytes = load i64, ptr %bytes.p
  %separate.p = getelementptr %devscope.Arena, ptr %arena, i32 0, i32 1
  %separate = load i64, ptr %separate.p
  %offset = load i64, ptr %place
  %all = icmp ne i64 %separate, 0
  %one = icmp slt i64 %offset, 0
  %alone = or i1 %all, %one
  br i1 %alone, label %own, label %whole

own:
  %buffer = call ptr @devscope.obtain(i64 %slot, i64 %bytes)
  ret ptr %buffer

whole:
  %memory.p = getelementptr %devscope.Arena, ptr %arena, i32 0, i32 2
  %memory = load ptr, ptr %memory.p
  %there = icmp ne ptr %memory, null
  br i1 %there, label %part, label %obtain

obtain:
  %size = load i64, ptr %arena
  %obtained = call ptr @devscope.obtain(i64 %slot, i64 %size)
  store ptr %obtained, ptr %memory.p
  %none = icmp eq ptr %obtained, null
  br i1 %none, label %failed, label %part

part:
  %parent = phi ptr [ %memory, %whole ], [ %obtained, %obtain ]
  %device = call ptr @devscope.device(i64 %slot, i64 1)
  %status = call i32 @devscope.opencl.part(ptr %device, ptr %parent, i64 %offset, i64 %bytes, ptr %out)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %made, label %refused

made:
  %handle = load ptr, ptr %out
  ret ptr %handle

refused:
  %code = sext i32 %status to i64
  call void @devscope.fail(i64 2, i64 %code, i64 1, i64 %slot, i64 %bytes)
  br label %failed

failed:
  ret ptr null
}

; A part of a buffer, as a handle of its own.
define internal i32 @devscope.opencl.part(ptr %device, ptr %buffer, i64 %offset, i64 %bytes, ptr %out) #0 {
  %status.p = alloca i32
  store i32 0, ptr %status.p
  %region = alloca [2 x i64]
  %size.p = getelementptr i64, ptr %region, i64 1
  %empty = icmp eq i64 %bytes, 0
  %size = select i1 %empty, i64 1, i64 %bytes
  store i64 %offset, ptr %region
  store i64 %size, ptr %size.p
  %create = call ptr @devscope.opencl.function(ptr %device, i32 10)
  ; 0 = as the buffer is, 0x1220 = CL_BUFFER_CREATE_TYPE_REGION
  %part = call ptr %create(ptr %buffer, i64 0, i32 4640, ptr %region, ptr %status.p)
  store ptr %part, ptr %out
  %status = load i32, ptr %status.p
  ret i32 %status
}

attributes #0 = { noinline optnone }
