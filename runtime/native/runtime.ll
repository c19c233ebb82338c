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
; size: what a launch asked for that is more than its device has.
; (origin, code, operation, slot, detail: a number of bytes, an index or the address of a text, size)
%devscope.Error = type { i64, i64, i64, i64, i64, i64 }

; calls: how many were begun. blocks: the host memory that the current call made. stop: the jmp_buf of the
; current call; the largest one of a supported C library has 312 bytes (glibc on aarch64). free_live: frees
; the device buffers that the current call made. It is null until the first is made, so that programs without
; devices do not contain what device buffers need.
; returned: blocks of results that nobody uses any more, for the next call to use; the loader puts them there.
; (error, number of devices, devices, number of constants, constants, traffic[source * devices + destination],
;  calls, blocks, free_live, stop, number of returned blocks, returned blocks)
%devscope.Context = type { %devscope.Error, i64, ptr, i64, ptr, ptr, i64, %devscope.Block, ptr, [64 x i64],
                           i64, [64 x ptr] }

; Stands before the memory of every host allocation, and as the head of the (circular) list. Memory that is
; returned to the loader keeps it, unused: what the loader gives back stands 32 bytes before what it was given.
; The size, of all that malloc gave, is where it is in a %devscope.Buffer: the free list holds both.
; (next, previous, size, nothing)
%devscope.Block = type { ptr, ptr, i64, i64 }

; kind: 0 host, 1 OpenCL. domain: devices of one kind and one domain copy to each other directly (the
; cl_context). pending: commands that were enqueued since the driver was last told to start. transfers: a second
; queue, for copies between host and device; null when shared is 1: the host reads and writes buffers itself.
; The commands of the (in-order) queue are numbered from 1. issued: the last one enqueued. completed: all up to
; this one are known to be complete. events: of the last 64 commands, that of command n at n mod 64. polled: 1 if
; the host asks again and again whether a command is complete, instead of waiting in the driver.
; most work items: of a workgroup. most local: bytes of local memory that a workgroup can have. asked: the size for
; which a launch was refused.
; (kind, pending, domain, queue, driver functions, number of kernels, kernels, constants, free list, counters,
;  live buffers, transfers, shared, issued, completed, events, polled, most work items, most local, asked)
%devscope.Device = type { i32, i32, ptr, ptr, ptr, i64, ptr, ptr, %devscope.FreeList, %devscope.Counters,
                          %devscope.LiveList, ptr, i64, i64, i64, [64 x ptr], i64, i64, i64, i64 }

; A buffer of an OpenCL device; compiled code has a pointer to it. memory: the cl_mem, which comes first because
; a kernel argument is set from its address. host: the same memory for the host, null if it cannot reach it.
; size: bytes of the cl_mem. last: the last command of the device's queue that uses it. foreign: the event of a
; command of another queue that reads or writes it, or null. used: bytes that the program asked for. arena: where
; it is a part of, at the offset, of which other buffers may use the same bytes; else null. A view is a record by
; which another device uses the memory of a buffer, which keeps it. views: the first view; of a view, the next one.
; user: of a view, the device whose queue "last" is about; else null.
; (memory, host, size, last, foreign, used, arena, offset, views, user)
%devscope.Buffer = type { ptr, ptr, i64, i64, ptr, i64, ptr, i64, ptr, ptr }

; offset, bytes: where in the arena; an offset of -1 is a buffer of its own. memory: on the host the address, on a
; device the record of a sub-buffer, null until it is made.
; (offset, bytes, memory)
%devscope.Place = type { i64, i64, ptr }

; bytes: what the entry needs that is called. separate: 1 if the device cannot have sub-buffers at these offsets;
; then each place is a buffer of its own. memory: the handle of the whole.
; (bytes, separate, memory, places, number of places)
%devscope.Arena = type { i64, i64, ptr, ptr, i64 }

; The buffers that host code has and must free. (entries in use, capacity, entries from malloc)
%devscope.LiveList = type { i64, i64, ptr }
; (handle, number of the call that made it)
%devscope.LiveBuffer = type { ptr, i64 }

; Freed buffers kept for reuse, oldest first. (entries in use, capacity, bytes held, byte limit, entries)
%devscope.FreeList = type { i64, i64, i64, i64, ptr }
%devscope.FreeBuffer = type { ptr, i64 }

; (launches, allocations, allocations made by the driver)
%devscope.Counters = type { i64, i64, i64 }

; sizes[i] > 0: bytes of argument i; 0: a buffer; < 0: -bytes of workgroup-local memory, the cell is not read;
; -2^63: workgroup-local memory of as many bytes as the cell says.
; (driver's kernel, number of arguments, sizes)
%devscope.Kernel = type { ptr, i64, ptr }

%devscope.Constant = type { ptr, i64 }
%devscope.Traffic = type { i64, i64 }

; What one kind of device can do; every function returns a status.
;   alloc(device, bytes, out handle)                      flush(device)
;   free(device, handle)
;   copy_in(device, handle, offset, host, bytes)          copy_out(device, handle, offset, host, bytes)
;   copy_on(source device, handle, offset, destination device, handle, offset, bytes)
;   launch(device, kernel record, gx, gy, gz, bx, by, bz, argument cells)
;   map(device, handle, access, out address)              access as in devscope_map
;   view(device, handle, other device, out handle)        view_done(device, handle, other device, other handle)
; (alloc, free, copy_in, copy_out, copy_on, launch, flush, map, view, view_done)
%devscope.Ops = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }

; The OpenCL entry points in use, in the order of opencl_api.NATIVE_FUNCTIONS:
; (clCreateBuffer, clReleaseMemObject, clEnqueueWriteBuffer, clEnqueueReadBuffer, clEnqueueCopyBuffer,
;  clSetKernelArg, clEnqueueNDRangeKernel, clFlush, clWaitForEvents, clRetainEvent, clReleaseEvent,
;  clEnqueueBarrierWithWaitList, clSVMAlloc, clSVMFree, clCreateSubBuffer, clGetEventInfo)
%devscope.OpenCL = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }

@devscope_context = global ptr null

@devscope.ops = internal unnamed_addr constant [2 x %devscope.Ops] [
  %devscope.Ops { ptr @devscope.host.alloc, ptr @devscope.host.free,
                  ptr @devscope.host.copy_in, ptr @devscope.host.copy_out, ptr @devscope.host.copy_on,
                  ptr @devscope.host.launch, ptr @devscope.host.flush, ptr @devscope.host.map,
                  ptr @devscope.host.view, ptr @devscope.host.view_done },
  %devscope.Ops { ptr @devscope.opencl.alloc, ptr @devscope.opencl.free,
                  ptr @devscope.opencl.copy_in, ptr @devscope.opencl.copy_out, ptr @devscope.opencl.copy_on,
                  ptr @devscope.opencl.launch, ptr @devscope.opencl.flush, ptr @devscope.opencl.map,
                  ptr @devscope.opencl.view, ptr @devscope.opencl.view_done }
]

declare ptr @malloc(i64)
declare ptr @aligned_alloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare i32 @sched_yield()
declare i32 @nanosleep(ptr, ptr)
declare void @_longjmp(ptr, i32) noreturn
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

; ---------------------------------------------------------------------------------------------- errors
; Operations: 1 alloc, 2 free, 3 copy, 4 constant, 5 launch, 6 assert.
; Codes of origin 1: 1 slot out of range, 2 kernel out of range, 3 wrong number of arguments,
; 4 constant out of range, 5 negative size, 6 out of host memory, 7 assertion failed, 8 too much local memory,
; 9 too many work items in a workgroup, 10 a grid or workgroup of that size cannot be.

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
  call void @devscope.host.take_back()
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

; Memory for compiled code, aligned as malloc does it; the caller may move on to the next multiple of 64. Freed
; memory waits in the free list of slot 0, so that calls like earlier ones take none from the C library. A
; negative number of bytes is the size of a dimension that made no sense; it and a lack of memory stop the call.
;
; It has no allockind: LLVM may erase what has one, and would erase the stop with it.
define noalias nonnull ptr @devscope_host_alloc(i64 %bytes) memory(inaccessiblemem: readwrite) #0 {
entry:
  ; Also keeps what is added to the size from wrapping around.
  %sensible = icmp ult i64 %bytes, 9223372036854774784
  br i1 %sensible, label %request, label %refuse

request:
  ; The header, room to align, and up to the next multiple of 64.
  %padded = add i64 %bytes, 158
  %size = and i64 %padded, -64
  %context = load ptr, ptr @devscope_context
  %devices.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 2
  %host = load ptr, ptr %devices.p
  call void @devscope.count(ptr %host, i32 1)
  %list = getelementptr %devscope.Device, ptr %host, i32 0, i32 8
  %kept = call ptr @devscope.freelist.take(ptr %list, i64 %size)
  %miss = icmp eq ptr %kept, null
  br i1 %miss, label %ask, label %link

ask:
  %new = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %new, null
  br i1 %none, label %retry, label %asked

retry:
  call void @devscope.freelist.trim(ptr %host, i64 0, i64 0)
  %again = call ptr @malloc(i64 %size)
  %none.again = icmp eq ptr %again, null
  br i1 %none.again, label %refuse, label %asked

asked:
  %made = phi ptr [ %new, %ask ], [ %again, %retry ]
  call void @devscope.count(ptr %host, i32 2)
  br label %link

link:
  %block = phi ptr [ %kept, %request ], [ %made, %asked ]
  %size.p = getelementptr %devscope.Block, ptr %block, i32 0, i32 2
  store i64 %size, ptr %size.p
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
  call void @devscope.host.recycle(ptr %block)
  br label %done

done:
  ret void
}

; To the free list, else to the C library.
define internal void @devscope.host.recycle(ptr %block) #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %devices.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 2
  %host = load ptr, ptr %devices.p
  %kept = call i1 @devscope.freelist.keep(ptr %host, ptr %block)
  br i1 %kept, label %done, label %release

release:
  call void @free(ptr %block)
  br label %done

done:
  ret void
}

; Results of earlier calls that nobody uses any more.
define internal void @devscope.host.take_back() #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 10
  %count = load i64, ptr %count.p
  store i64 0, ptr %count.p
  br label %loop

loop:
  %index = phi i64 [ 0, %entry ], [ %next, %take ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %take, label %done

take:
  %block.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 11, i64 %index
  %block = load ptr, ptr %block.p
  call void @devscope.host.recycle(ptr %block)
  %next = add i64 %index, 1
  br label %loop

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
  call void @devscope.host.recycle(ptr %block)
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

; Tells the driver of a device to start what was enqueued. A failing flush is not recorded: the wait that needs
; the work reports it.
define internal void @devscope.start(ptr %device) #0 {
entry:
  %pending.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 1
  %pending = load i32, ptr %pending.p
  %idle = icmp eq i32 %pending, 0
  br i1 %idle, label %done, label %flush

flush:
  %op = call ptr @devscope.op(ptr %device, i32 6)
  %status = call i32 %op(ptr %device)
  store i32 0, ptr %pending.p
  br label %done

done:
  ret void
}

; Compiled code calls this when it has enqueued what it has for a device, and goes on to something else: the
; device works meanwhile.
define void @devscope_start(i64 %slot) #0 {
entry:
  %device = call ptr @devscope.device(i64 %slot, i64 5)
  %unknown = icmp eq ptr %device, null
  br i1 %unknown, label %done, label %start

start:
  call void @devscope.start(ptr %device)
  br label %done

done:
  ret void
}

; Called before the host waits for one device, so that the others work meanwhile.
define internal void @devscope.start_all() #0 {
entry:
  %context = load ptr, ptr @devscope_context
  %count.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 1
  %count = load i64, ptr %count.p
  %devices.p = getelementptr %devscope.Context, ptr %context, i32 0, i32 2
  %devices = load ptr, ptr %devices.p
  br label %loop

loop:
  %slot = phi i64 [ 0, %entry ], [ %next, %start ]
  %more = icmp ult i64 %slot, %count
  br i1 %more, label %start, label %done

start:
  %device = getelementptr %devscope.Device, ptr %devices, i64 %slot
  call void @devscope.start(ptr %device)
  %next = add i64 %slot, 1
  br label %loop

done:
  ret void
}

; ------------------------------------------------------------------------------------------- free list
; Buffers are reused when their size is equal: a program in a steady state asks for the same sizes again
; and again. A linear search is enough for the bounded list. Reuse by the device needs no wait: its queue is in
; order, so new work on the buffer comes after the old. The buffer that was freed last is taken first: it
; is the one that caches hold. The host may not write into it yet; see devscope.opencl.copy_in.

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
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 8
  %capacity.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 1
  %capacity = load i64, ptr %capacity.p
  %off = icmp eq i64 %capacity, 0
  br i1 %off, label %refuse, label %look

look:
  %size.p = getelementptr %devscope.Buffer, ptr %handle, i32 0, i32 2
  %size = load i64, ptr %size.p
  %limit.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 3
  %limit = load i64, ptr %limit.p
  %large = icmp ugt i64 %size, %limit
  br i1 %large, label %refuse, label %keep

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
  ; Slot 0 keeps blocks, see devscope_host_alloc.
  br i1 %host, label %create, label %search

search:
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 8
  %kept = call ptr @devscope.freelist.take(ptr %list, i64 %size)
  %hit = icmp ne ptr %kept, null
  br i1 %hit, label %reuse, label %create

reuse:
  %used.p = getelementptr %devscope.Buffer, ptr %kept, i32 0, i32 5
  store i64 %bytes, ptr %used.p
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
  br i1 %host, label %give, label %describe

describe:
  %new.used.p = getelementptr %devscope.Buffer, ptr %handle, i32 0, i32 5
  store i64 %bytes, ptr %new.used.p
  br label %give

give:
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
  %host = call i1 @devscope.is_host(ptr %device)
  br i1 %host, label %release, label %keep_buffer

keep_buffer:
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
  %in.op = call ptr @devscope.op(ptr %target, i32 2)
  %in.status = call i32 %in.op(ptr %target, ptr %dst, i64 %dst_offset, ptr %in.host, i64 %bytes)
  br label %report

out:
  %out.host = getelementptr i8, ptr %dst, i64 %dst_offset
  %out.op = call ptr @devscope.op(ptr %source, i32 3)
  %out.status = call i32 %out.op(ptr %source, ptr %src, i64 %src_offset, ptr %out.host, i64 %bytes)
  br label %report

direct:
  %on.op = call ptr @devscope.op(ptr %source, i32 4)
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
  %out = call ptr @devscope.op(ptr %source, i32 3)
  %in = call ptr @devscope.op(ptr %target, i32 2)
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

; ----------------------------------------------------------------------------------------- shared memory
; Compiled code that calls these is loaded only where devices reach each other's memory as it expects.

; Where the host reaches a buffer of a device, when that may be used. access: 0 the host reads it, 1 it writes, too,
; 2 it makes new contents.
; Host code cannot run on without the memory: a failure leaves the call.
define ptr @devscope_map(i64 %slot, ptr %handle, i64 %access) #0 {
entry:
  %out = alloca ptr
  store ptr null, ptr %out
  %device = call ptr @devscope.device(i64 %slot, i64 3)
  %failed = call i1 @devscope.failed()
  %none = icmp eq ptr %handle, null
  %skip = or i1 %failed, %none
  br i1 %skip, label %leave, label %map

map:
  %op = call ptr @devscope.op(ptr %device, i32 7)
  %status = call i32 %op(ptr %device, ptr %handle, i64 %access, ptr %out)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %mapped, label %refused

mapped:
  %memory = load ptr, ptr %out
  ret ptr %memory

refused:
  call void @devscope.refused_view(i64 %slot, ptr %handle, i32 %status)
  br label %leave

leave:
  ; The error is recorded already.
  call void @devscope_stop(i64 0, i64 3, i64 0)
  unreachable
}

; Access 2. Nothing else points there until devscope_publish: LLVM may take it for memory of its own.
define noalias nonnull ptr @devscope_map_new(i64 %slot, ptr %handle) #0 {
  %memory = call ptr @devscope_map(i64 %slot, ptr %handle, i64 2)
  ret ptr %memory
}

; Says to LLVM that others look at the memory from now on: what host code has written must be there. No instruction,
; but LLVM cannot know that; the unused argument of a function it would drop, and then what was written.
define void @devscope_publish(ptr %memory) alwaysinline {
  call void asm sideeffect "", "r,~{memory}"(ptr %memory)
  ret void
}

; A device's buffer for another device, which only reads it, from what the first one has enqueued so far; null with
; the error recorded. It is the buffer's, and used until devscope_view_done.
define ptr @devscope_view(i64 %slot, ptr %handle, i64 %user_slot) #0 {
entry:
  %out = alloca ptr
  store ptr null, ptr %out
  %device = call ptr @devscope.device(i64 %slot, i64 3)
  %user = call ptr @devscope.device(i64 %user_slot, i64 3)
  %failed = call i1 @devscope.failed()
  %none = icmp eq ptr %handle, null
  %skip = or i1 %failed, %none
  br i1 %skip, label %nothing, label %view

view:
  %op = call ptr @devscope.op(ptr %device, i32 8)
  %status = call i32 %op(ptr %device, ptr %handle, ptr %user, ptr %out)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %viewed, label %refused

viewed:
  %result = load ptr, ptr %out
  ret ptr %result

refused:
  call void @devscope.refused_view(i64 %user_slot, ptr %handle, i32 %status)
  br label %nothing

nothing:
  ret ptr null
}

; What uses the buffer from now on waits for what used the view.
define void @devscope_view_done(i64 %slot, ptr %handle, i64 %user_slot, ptr %view) #0 {
entry:
  %device = call ptr @devscope.device(i64 %slot, i64 3)
  %user = call ptr @devscope.device(i64 %user_slot, i64 3)
  %none = icmp eq ptr %view, null
  br i1 %none, label %done, label %end

end:
  %op = call ptr @devscope.op(ptr %device, i32 9)
  %status = call i32 %op(ptr %device, ptr %handle, ptr %user, ptr %view)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %done, label %refused

refused:
  call void @devscope.refused_view(i64 %user_slot, ptr %handle, i32 %status)
  br label %done

done:
  ret void
}

define internal void @devscope.refused_view(i64 %slot, ptr %handle, i32 %status) #0 {
  %used.p = getelementptr %devscope.Buffer, ptr %handle, i32 0, i32 5
  %used = load i64, ptr %used.p
  %code = sext i32 %status to i64
  call void @devscope.fail(i64 2, i64 %code, i64 3, i64 %slot, i64 %used)
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
  %op = call ptr @devscope.op(ptr %device, i32 5)
  %status = call i32 %op(ptr %device, ptr %kernel, i64 %gx, i64 %gy, i64 %gz, i64 %bx, i64 %by, i64 %bz, ptr %cells)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %launched, label %refused

launched:
  call void @devscope.count(ptr %device, i32 0)
  br label %done

refused:
  %code = sext i32 %status to i64
  %is_limit = icmp sgt i32 %status, 100
  br i1 %is_limit, label %limit, label %driver

limit:
  ; A kind's launch checks these itself: 101 and on are the codes from 8 on.
  %limit.code = sub i64 %code, 93
  call void @devscope.fail(i64 1, i64 %limit.code, i64 5, i64 %slot, i64 %index)
  %asked.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 19
  %asked = load i64, ptr %asked.p
  %context = load ptr, ptr @devscope_context
  %size.p = getelementptr %devscope.Error, ptr %context, i32 0, i32 5
  store i64 %asked, ptr %size.p
  br label %done

driver:
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

define internal i32 @devscope.host.map(ptr %device, ptr %memory, i64 %access, ptr %out) #0 {
  store ptr %memory, ptr %out
  ret i32 0
}

; Nothing but the host itself uses its memory in place.
define internal i32 @devscope.host.view(ptr %device, ptr %memory, ptr %user, ptr %out) #0 {
  ret i32 2
}

define internal i32 @devscope.host.view_done(ptr %device, ptr %memory, ptr %user, ptr %view) #0 {
  ret i32 2
}

define internal i32 @devscope.host.flush(ptr %device) #0 {
  ret i32 0
}

; -------------------------------------------------------------------------------------- kind 1: OpenCL
; One in-order queue per virtual device. The host never waits for more than it needs: buffers know the last
; command that uses them. Between queues, and from the host's side where it cannot reach the memory, events
; order what must be in order; nothing else waits.

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

; Numbers a command that was enqueued and keeps its event, which it owns from now on. Every 16th command the
; driver is told to start: a long row of launches must not wait for its end.
define internal i64 @devscope.opencl.issue(ptr %device, ptr %event) {
entry:
  %issued.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 13
  %issued = load i64, ptr %issued.p
  %number = add i64 %issued, 1
  store i64 %number, ptr %issued.p
  %place = and i64 %number, 63
  %event.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 15, i64 %place
  %old = load ptr, ptr %event.p
  store ptr %event, ptr %event.p
  %pending.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 1
  %pending = load i32, ptr %pending.p
  %pending.new = add i32 %pending, 1
  store i32 %pending.new, ptr %pending.p
  %many = icmp uge i32 %pending.new, 16
  br i1 %many, label %start, label %check_old

start:
  call void @devscope.start(ptr %device)
  br label %check_old

check_old:
  %none = icmp eq ptr %old, null
  br i1 %none, label %done, label %release

release:
  %release.f = call ptr @devscope.opencl.function(ptr %device, i32 10)
  %status = call i32 %release.f(ptr %old)
  br label %done

done:
  ret i64 %number
}

; The event to wait for when command %number must be complete; null when it is known to be. The events of old
; commands are gone: the oldest that is left completes after them.
define internal ptr @devscope.opencl.event(ptr %device, i64 %number) #0 {
entry:
  %issued.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 13
  %issued = load i64, ptr %issued.p
  ; A launch that the driver refused has a number in its buffers that was not issued.
  %real = call i64 @llvm.smin.i64(i64 %number, i64 %issued)
  %completed.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 14
  %completed = load i64, ptr %completed.p
  %over = icmp sle i64 %real, %completed
  br i1 %over, label %none, label %find

find:
  %oldest = sub i64 %issued, 63
  %kept = call i64 @llvm.smax.i64(i64 %real, i64 %oldest)
  %place = and i64 %kept, 63
  %event.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 15, i64 %place
  %event = load ptr, ptr %event.p
  ret ptr %event

none:
  ret ptr null
}

define internal void @devscope.opencl.set_completed(ptr %device, i64 %number) #0 {
  %issued.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 13
  %issued = load i64, ptr %issued.p
  %completed.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 14
  %completed = load i64, ptr %completed.p
  %real = call i64 @llvm.smin.i64(i64 %number, i64 %issued)
  %new = call i64 @llvm.smax.i64(i64 %real, i64 %completed)
  store i64 %new, ptr %completed.p
  ret void
}

; The last command that uses a buffer. Who reads it waits for no other: what used these bytes for another buffer
; came before, on the same queue.
define internal i64 @devscope.opencl.own_last(ptr %buffer) alwaysinline {
  %last.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 3
  %last = load i64, ptr %last.p
  ret i64 %last
}

; The last command that uses the memory of a buffer, for whatever buffer. A linear search is enough: places are
; hundreds at most, and copies take longer.
define internal i64 @devscope.opencl.last(ptr %device, ptr %buffer) #0 {
entry:
  %own = call i64 @devscope.opencl.own_last(ptr %buffer)
  %arena.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 6
  %arena = load ptr, ptr %arena.p
  %alone = icmp eq ptr %arena, null
  br i1 %alone, label %done, label %prepare

prepare:
  %begin.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 7
  %begin = load i64, ptr %begin.p
  %size.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 2
  %size = load i64, ptr %size.p
  %end = add i64 %begin, %size
  %places.p = getelementptr %devscope.Arena, ptr %arena, i32 0, i32 3
  %places = load ptr, ptr %places.p
  %count.p = getelementptr %devscope.Arena, ptr %arena, i32 0, i32 4
  %count = load i64, ptr %count.p
  br label %loop

loop:
  %index = phi i64 [ 0, %prepare ], [ %next, %continue ]
  %latest = phi i64 [ %own, %prepare ], [ %latest.next, %continue ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %look, label %done

look:
  %place = getelementptr %devscope.Place, ptr %places, i64 %index
  %other.begin = load i64, ptr %place
  %other.p = getelementptr %devscope.Place, ptr %place, i32 0, i32 2
  %other = load ptr, ptr %other.p
  %unused = icmp eq ptr %other, null
  %before = icmp sle i64 %end, %other.begin
  %apart = or i1 %unused, %before
  br i1 %apart, label %continue, label %compare

compare:
  ; Places at offset -1 are buffers of their own and end before all others begin.
  %other.size.p = getelementptr %devscope.Place, ptr %place, i32 0, i32 1
  %other.size = load i64, ptr %other.size.p
  %other.end = add i64 %other.begin, %other.size
  %elsewhere = icmp slt i64 %other.begin, 0
  %behind = icmp sle i64 %other.end, %begin
  %separate = or i1 %elsewhere, %behind
  %other.last = call i64 @devscope.opencl.own_last(ptr %other)
  %later = call i64 @llvm.smax.i64(i64 %latest, i64 %other.last)
  %chosen = select i1 %separate, i64 %latest, i64 %later
  br label %continue

continue:
  %latest.next = phi i64 [ %latest, %look ], [ %chosen, %compare ]
  %next = add i64 %index, 1
  br label %loop

done:
  %result = phi i64 [ %own, %entry ], [ %latest, %loop ]
  ret i64 %result
}

; Waits for an event, whose queue was told to start.
define internal i32 @devscope.opencl.wait_for(ptr %device, ptr %event.p) #0 {
entry:
  %polled.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 16
  %polled = load i64, ptr %polled.p
  %polls = icmp ne i64 %polled, 0
  br i1 %polls, label %poll, label %wait

wait:
  %wait.f = call ptr @devscope.opencl.function(ptr %device, i32 8)
  %wait.status = call i32 %wait.f(i32 1, ptr %event.p)
  ret i32 %wait.status

poll:
  %event = load ptr, ptr %event.p
  %poll.status = call i32 @devscope.opencl.poll(ptr %device, ptr %event)
  ret i32 %poll.status
}

; Asks for the state of an event until its command is complete: without a pause at first, which costs no time when
; the command is short, then every 50 us.
define internal i32 @devscope.opencl.poll(ptr %device, ptr %event) #0 {
entry:
  %state.p = alloca i32
  %pause = alloca [2 x i64]
  store [2 x i64] [i64 0, i64 50000], ptr %pause
  %info.f = call ptr @devscope.opencl.function(ptr %device, i32 15)
  br label %ask

ask:
  %asked = phi i64 [ 0, %entry ], [ %again, %yield ], [ %again, %sleep ]
  ; CL_EVENT_COMMAND_EXECUTION_STATUS: above 0 until complete, below 0 if the command failed.
  %status = call i32 %info.f(ptr %event, i32 4563, i64 4, ptr %state.p, ptr null)
  %known = icmp eq i32 %status, 0
  br i1 %known, label %look, label %failed

look:
  %state = load i32, ptr %state.p
  %ended = icmp sle i32 %state, 0
  br i1 %ended, label %done, label %pass

pass:
  %again = add i64 %asked, 1
  %short = icmp slt i64 %again, 4096
  br i1 %short, label %yield, label %sleep

yield:
  %yielded = call i32 @sched_yield()
  br label %ask

sleep:
  %slept = call i32 @nanosleep(ptr %pause, ptr null)
  br label %ask

done:
  ret i32 %state

failed:
  ret i32 %status
}

define internal i32 @devscope.opencl.wait(ptr %device, i64 %number) #0 {
entry:
  %event.p = alloca ptr
  %event = call ptr @devscope.opencl.event(ptr %device, i64 %number)
  %complete = icmp eq ptr %event, null
  br i1 %complete, label %done, label %wait

wait:
  store ptr %event, ptr %event.p
  call void @devscope.start_all()
  %status = call i32 @devscope.opencl.wait_for(ptr %device, ptr %event.p)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %waited, label %failed

waited:
  call void @devscope.opencl.set_completed(ptr %device, i64 %number)
  br label %done

failed:
  ret i32 %status

done:
  ret i32 0
}

; Whether a command may still use the memory of a buffer, as far as waits have shown: drivers are not asked, so
; that equal calls of a program do equal things, and need no new memory from some call on.
define internal i1 @devscope.opencl.busy(ptr %device, ptr %buffer) #0 {
  %last = call i64 @devscope.opencl.last(ptr %device, ptr %buffer)
  %event = call ptr @devscope.opencl.event(ptr %device, i64 %last)
  %used = icmp ne ptr %event, null
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %foreign = load ptr, ptr %foreign.p
  %elsewhere = icmp ne ptr %foreign, null
  %busy = or i1 %used, %elsewhere
  ret i1 %busy
}

; Waits until nothing uses the memory of a buffer.
define internal i32 @devscope.opencl.settle(ptr %device, ptr %buffer) #0 {
entry:
  %last = call i64 @devscope.opencl.last(ptr %device, ptr %buffer)
  %status = call i32 @devscope.opencl.wait(ptr %device, i64 %last)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %check, label %failed

check:
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %foreign = load ptr, ptr %foreign.p
  %none = icmp eq ptr %foreign, null
  br i1 %none, label %done, label %wait

wait:
  call void @devscope.start_all()
  %wait.status = call i32 @devscope.opencl.wait_for(ptr %device, ptr %foreign.p)
  %release = call ptr @devscope.opencl.function(ptr %device, i32 10)
  %release.status = call i32 %release(ptr %foreign)
  store ptr null, ptr %foreign.p
  ret i32 %wait.status

failed:
  ret i32 %status

done:
  ret i32 0
}

; Makes what is enqueued next on the device wait for the other queue's command that reads the buffer.
define internal i32 @devscope.opencl.claim(ptr %device, ptr %buffer) #0 {
entry:
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %foreign = load ptr, ptr %foreign.p
  %none = icmp eq ptr %foreign, null
  br i1 %none, label %done, label %bar

bar:
  ; The other device must start for this one to go on.
  call void @devscope.start_all()
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %barrier = call ptr @devscope.opencl.function(ptr %device, i32 11)
  %status = call i32 %barrier(ptr %queue, i32 1, ptr %foreign.p, ptr null)
  %release = call ptr @devscope.opencl.function(ptr %device, i32 10)
  %release.status = call i32 %release(ptr %foreign)
  store ptr null, ptr %foreign.p
  ret i32 %status

done:
  ret i32 0
}

; Where host and device share memory (fine-grained SVM, which the host may use while the device works on other
; buffers), a buffer is made of memory that both reach.
define internal i32 @devscope.opencl.alloc(ptr %device, i64 %bytes, ptr %out) #0 {
entry:
  %status.p = alloca i32
  store i32 0, ptr %status.p
  %buffer = call ptr @malloc(i64 80)
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %no_memory, label %prepare

no_memory:
  ; CL_OUT_OF_HOST_MEMORY
  ret i32 -6

prepare:
  %context.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 2
  %context = load ptr, ptr %context.p
  %create = call ptr @devscope.opencl.function(ptr %device, i32 0)
  %shared.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 12
  %shared = load i64, ptr %shared.p
  %shares = icmp ne i64 %shared, 0
  br i1 %shares, label %share, label %make

share:
  ; 1025 = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER
  %svm = call ptr @devscope.opencl.function(ptr %device, i32 12)
  %common = call ptr %svm(ptr %context, i64 1025, i64 %bytes, i32 64)
  br label %make

make:
  ; A refused SVM allocation becomes a plain one: the driver then says what is wrong.
  %host = phi ptr [ null, %prepare ], [ %common, %share ]
  %plain = icmp eq ptr %host, null
  ; 1 = CL_MEM_READ_WRITE, 8 = CL_MEM_USE_HOST_PTR
  %flags = select i1 %plain, i64 1, i64 9
  %memory = call ptr %create(ptr %context, i64 %flags, i64 %bytes, ptr %host, ptr %status.p)
  %status = load i32, ptr %status.p
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %made, label %refused

made:
  call void @llvm.memset.p0.i64(ptr %buffer, i8 0, i64 80, i1 false)
  %host.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 1
  %size.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 2
  store ptr %memory, ptr %buffer
  store ptr %host, ptr %host.p
  store i64 %bytes, ptr %size.p
  store ptr %buffer, ptr %out
  ret i32 0

refused:
  call void @free(ptr %buffer)
  br i1 %plain, label %done, label %unshare

unshare:
  call void @devscope.opencl.svm_free(ptr %device, ptr %host)
  br label %done

done:
  ret i32 %status
}

define internal void @devscope.opencl.svm_free(ptr %device, ptr %memory) #0 {
  %context.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 2
  %context = load ptr, ptr %context.p
  %free = call ptr @devscope.opencl.function(ptr %device, i32 13)
  call void %free(ptr %context, ptr %memory)
  ret void
}

; A cl_mem goes when the commands that use it are complete; SVM would go at once.
define internal i32 @devscope.opencl.free(ptr %device, ptr %buffer) #0 {
entry:
  %settled = call i32 @devscope.opencl.settle(ptr %device, ptr %buffer)
  call void @devscope.opencl.drop_views(ptr %buffer)
  %memory = load ptr, ptr %buffer
  %release = call ptr @devscope.opencl.function(ptr %device, i32 1)
  %status = call i32 %release(ptr %memory)
  %host.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 1
  %host = load ptr, ptr %host.p
  %plain = icmp eq ptr %host, null
  br i1 %plain, label %done, label %unshare

unshare:
  call void @devscope.opencl.svm_free(ptr %device, ptr %host)
  br label %done

done:
  call void @free(ptr %buffer)
  ret i32 %status
}

; The host's memory was read on return: host code may change it then. A buffer that the device still uses and that is
; written as a whole gets other memory instead of waiting, see devscope.opencl.rename.
define internal i32 @devscope.opencl.copy_in(ptr %device, ptr %buffer, i64 %offset, ptr %host, i64 %bytes) #0 {
entry:
  %event.p = alloca ptr
  %busy = call i1 @devscope.opencl.busy(ptr %device, ptr %buffer)
  br i1 %busy, label %check_whole, label %settle

check_whole:
  %used.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 5
  %used = load i64, ptr %used.p
  %arena.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 6
  %arena = load ptr, ptr %arena.p
  %all = icmp uge i64 %bytes, %used
  %alone = icmp eq ptr %arena, null
  %whole = and i1 %all, %alone
  br i1 %whole, label %rename, label %settle

rename:
  call void @devscope.opencl.rename(ptr %device, ptr %buffer)
  br label %settle

settle:
  %settled = call i32 @devscope.opencl.settle(ptr %device, ptr %buffer)
  %ok = icmp eq i32 %settled, 0
  br i1 %ok, label %write, label %failed

write:
  %to.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 1
  %to = load ptr, ptr %to.p
  %apart = icmp eq ptr %to, null
  br i1 %apart, label %transfer, label %store

store:
  %at = getelementptr i8, ptr %to, i64 %offset
  call void @llvm.memmove.p0.p0.i64(ptr %at, ptr %host, i64 %bytes, i1 false)
  ret i32 0

transfer:
  %memory = load ptr, ptr %buffer
  %queue.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 11
  %queue = load ptr, ptr %queue.p
  %enqueue = call ptr @devscope.opencl.function(ptr %device, i32 2)
  ; Blocking means that the host's memory was read, not that the buffer was written (drivers copy small ones).
  %status = call i32 %enqueue(ptr %queue, ptr %memory, i32 1, i64 %offset, i64 %bytes, ptr %host,
                              i32 0, ptr null, ptr %event.p)
  %enqueued = icmp eq i32 %status, 0
  br i1 %enqueued, label %mark, label %refused

mark:
  %event = load ptr, ptr %event.p
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  store ptr %event, ptr %foreign.p
  ; The queue that will wait for it does not start it.
  %flush = call ptr @devscope.opencl.function(ptr %device, i32 7)
  %flushed = call i32 %flush(ptr %queue)
  %arena.now.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 6
  %arena.now = load ptr, ptr %arena.now.p
  %alone.now = icmp eq ptr %arena.now, null
  br i1 %alone.now, label %done, label %finish

finish:
  ; Other buffers are in this memory: what uses them next would not know that it has to wait.
  %finished = call i32 @devscope.opencl.settle(ptr %device, ptr %buffer)
  ret i32 %finished

done:
  ret i32 0

refused:
  ret i32 %status

failed:
  ret i32 %settled
}

; Gives a buffer whose contents do not matter memory that is free sooner: idle memory of a freed buffer of the
; same size, else new memory as long as at most two freed ones are busy, else the freed one that is done
; first. The buffer's own memory takes its place among the freed ones. So copying in overlaps the work on
; what was copied in before, with at most a few times the memory.
define internal void @devscope.opencl.rename(ptr %device, ptr %buffer) #0 {
entry:
  %new.p = alloca ptr
  %list = getelementptr %devscope.Device, ptr %device, i32 0, i32 8
  %count = load i64, ptr %list
  %entries.p = getelementptr %devscope.FreeList, ptr %list, i32 0, i32 4
  %entries = load ptr, ptr %entries.p
  %size.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 2
  %size = load i64, ptr %size.p
  br label %loop

loop:
  %index = phi i64 [ 0, %entry ], [ %next, %continue ]
  %same = phi i64 [ 0, %entry ], [ %same.next, %continue ]
  %best = phi ptr [ %buffer, %entry ], [ %best.next, %continue ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %look, label %choose

look:
  %item = getelementptr %devscope.FreeBuffer, ptr %entries, i64 %index
  %other = load ptr, ptr %item
  %other.size.p = getelementptr %devscope.FreeBuffer, ptr %item, i32 0, i32 1
  %other.size = load i64, ptr %other.size.p
  %match = icmp eq i64 %other.size, %size
  br i1 %match, label %check, label %continue

check:
  %busy = call i1 @devscope.opencl.busy(ptr %device, ptr %other)
  br i1 %busy, label %compare, label %take

take:
  call void @devscope.opencl.swap(ptr %buffer, ptr %other)
  ret void

compare:
  %last = call i64 @devscope.opencl.last(ptr %device, ptr %other)
  %best.last = call i64 @devscope.opencl.last(ptr %device, ptr %best)
  %sooner = icmp slt i64 %last, %best.last
  %better = select i1 %sooner, ptr %other, ptr %best
  %same.more = add i64 %same, 1
  br label %continue

continue:
  %same.next = phi i64 [ %same, %look ], [ %same.more, %compare ]
  %best.next = phi ptr [ %best, %look ], [ %better, %compare ]
  %next = add i64 %index, 1
  br label %loop

choose:
  %few = icmp ult i64 %same, 2
  br i1 %few, label %create, label %trade

create:
  %status = call i32 @devscope.opencl.alloc(ptr %device, i64 %size, ptr %new.p)
  %made = icmp eq i32 %status, 0
  br i1 %made, label %created, label %trade

created:
  call void @devscope.count(ptr %device, i32 2)
  %new = load ptr, ptr %new.p
  call void @devscope.opencl.swap(ptr %buffer, ptr %new)
  %kept = call i1 @devscope.freelist.keep(ptr %device, ptr %new)
  br i1 %kept, label %done, label %drop

drop:
  %dropped = call i32 @devscope.opencl.free(ptr %device, ptr %new)
  br label %done

trade:
  call void @devscope.opencl.swap(ptr %buffer, ptr %best)
  br label %done

done:
  ret void
}

; Exchanges the memory of two buffers of one size, with what is known of its use.
define internal void @devscope.opencl.swap(ptr %one, ptr %two) #0 {
  %rest = alloca [40 x i8]
  ; memory, host, size, last, foreign: what the program asked for stays
  call void @llvm.memmove.p0.p0.i64(ptr %rest, ptr %one, i64 40, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %one, ptr %two, i64 40, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %two, ptr %rest, i64 40, i1 false)
  ret void
}

; Waits for the command that wrote the buffer, not for what was enqueued after it.
define internal i32 @devscope.opencl.copy_out(ptr %device, ptr %buffer, i64 %offset, ptr %host, i64 %bytes) #0 {
entry:
  %event.p = alloca ptr
  %last = call i64 @devscope.opencl.own_last(ptr %buffer)
  %from.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 1
  %from = load ptr, ptr %from.p
  %apart = icmp eq ptr %from, null
  br i1 %apart, label %transfer, label %wait

wait:
  %waited = call i32 @devscope.opencl.wait(ptr %device, i64 %last)
  %ok = icmp eq i32 %waited, 0
  br i1 %ok, label %load, label %failed

load:
  %at = getelementptr i8, ptr %from, i64 %offset
  call void @llvm.memmove.p0.p0.i64(ptr %host, ptr %at, i64 %bytes, i1 false)
  ret i32 0

failed:
  ret i32 %waited

transfer:
  %event = call ptr @devscope.opencl.event(ptr %device, i64 %last)
  store ptr %event, ptr %event.p
  %complete = icmp eq ptr %event, null
  %events = select i1 %complete, i32 0, i32 1
  %list = select i1 %complete, ptr null, ptr %event.p
  call void @devscope.start_all()
  %memory = load ptr, ptr %buffer
  %queue.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 11
  %queue = load ptr, ptr %queue.p
  %enqueue = call ptr @devscope.opencl.function(ptr %device, i32 3)
  %status = call i32 %enqueue(ptr %queue, ptr %memory, i32 1, i64 %offset, i64 %bytes, ptr %host,
                              i32 %events, ptr %list, ptr null)
  %read = icmp eq i32 %status, 0
  br i1 %read, label %done, label %refused

done:
  call void @devscope.opencl.set_completed(ptr %device, i64 %last)
  ret i32 0

refused:
  ret i32 %status
}

; Who only reads waits for the command that wrote the buffer; who writes, for all that use it; who makes new contents
; gets other memory, if it can, as in devscope.opencl.copy_in.
define internal i32 @devscope.opencl.map(ptr %device, ptr %buffer, i64 %access, ptr %out) #0 {
entry:
  %anew = icmp eq i64 %access, 2
  br i1 %anew, label %check, label %find

check:
  %busy = call i1 @devscope.opencl.busy(ptr %device, ptr %buffer)
  %arena.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 6
  %arena = load ptr, ptr %arena.p
  %alone = icmp eq ptr %arena, null
  %trade = and i1 %busy, %alone
  br i1 %trade, label %rename, label %find

rename:
  call void @devscope.opencl.rename(ptr %device, ptr %buffer)
  br label %find

find:
  %host.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 1
  %host = load ptr, ptr %host.p
  %apart = icmp eq ptr %host, null
  br i1 %apart, label %unreachable_memory, label %order

unreachable_memory:
  ; The driver refused to share this allocation: CL_MEM_OBJECT_ALLOCATION_FAILURE
  ret i32 -4

order:
  store ptr %host, ptr %out
  %reads = icmp eq i64 %access, 0
  br i1 %reads, label %wait, label %settle

wait:
  %last = call i64 @devscope.opencl.own_last(ptr %buffer)
  %waited = call i32 @devscope.opencl.wait(ptr %device, i64 %last)
  ret i32 %waited

settle:
  %settled = call i32 @devscope.opencl.settle(ptr %device, ptr %buffer)
  ret i32 %settled
}

; The devices are in one cl_context, where memory is everybody's: a barrier on the other queue waits for what used
; the buffer so far, and is the first command that uses the view.
define internal i32 @devscope.opencl.view(ptr %device, ptr %buffer, ptr %user, ptr %out) #0 {
entry:
  %views.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 8
  %first = load ptr, ptr %views.p
  br label %search

search:
  %candidate = phi ptr [ %first, %entry ], [ %next, %other ]
  %end = icmp eq ptr %candidate, null
  br i1 %end, label %make, label %compare

compare:
  %whose.p = getelementptr %devscope.Buffer, ptr %candidate, i32 0, i32 9
  %whose = load ptr, ptr %whose.p
  %found = icmp eq ptr %whose, %user
  br i1 %found, label %show, label %other

other:
  %next.p = getelementptr %devscope.Buffer, ptr %candidate, i32 0, i32 8
  %next = load ptr, ptr %next.p
  br label %search

make:
  %new = call ptr @malloc(i64 80)
  %none = icmp eq ptr %new, null
  br i1 %none, label %no_memory, label %link

no_memory:
  ; CL_OUT_OF_HOST_MEMORY
  ret i32 -6

link:
  call void @llvm.memset.p0.i64(ptr %new, i8 0, i64 80, i1 false)
  %new.next.p = getelementptr %devscope.Buffer, ptr %new, i32 0, i32 8
  %new.user.p = getelementptr %devscope.Buffer, ptr %new, i32 0, i32 9
  store ptr %first, ptr %new.next.p
  store ptr %user, ptr %new.user.p
  store ptr %new, ptr %views.p
  br label %show

show:
  %view = phi ptr [ %candidate, %compare ], [ %new, %link ]
  store ptr %view, ptr %out
  ; memory, host, size: the buffer may have got other ones since the last view
  call void @llvm.memmove.p0.p0.i64(ptr %view, ptr %buffer, i64 24, i1 false)
  %used.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 5
  %view.used.p = getelementptr %devscope.Buffer, ptr %view, i32 0, i32 5
  ; It is in no arena: only buffers of their own are viewed.
  call void @llvm.memmove.p0.p0.i64(ptr %view.used.p, ptr %used.p, i64 8, i1 false)
  %last = call i64 @devscope.opencl.last(ptr %device, ptr %buffer)
  %event = call ptr @devscope.opencl.event(ptr %device, i64 %last)
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %foreign = load ptr, ptr %foreign.p
  %status = call i32 @devscope.opencl.after(ptr %user, ptr %view, ptr %event, ptr %foreign)
  ret i32 %status
}

; A barrier on a device's queue that waits for up to two events (null: none), as the last command that uses a buffer.
define internal i32 @devscope.opencl.after(ptr %device, ptr %buffer, ptr %one, ptr %two) #0 {
entry:
  %list = alloca [2 x ptr]
  %event.p = alloca ptr
  %no_one = icmp eq ptr %one, null
  %no_two = icmp eq ptr %two, null
  %none = and i1 %no_one, %no_two
  br i1 %none, label %done, label %bar

bar:
  %first = select i1 %no_one, ptr %two, ptr %one
  %second.p = getelementptr [2 x ptr], ptr %list, i64 0, i64 1
  store ptr %first, ptr %list
  store ptr %two, ptr %second.p
  %single = or i1 %no_one, %no_two
  %count = select i1 %single, i32 1, i32 2
  ; The queues of the events must start for this one to go on.
  call void @devscope.start_all()
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %barrier = call ptr @devscope.opencl.function(ptr %device, i32 11)
  %status = call i32 %barrier(ptr %queue, i32 %count, ptr %list, ptr %event.p)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %enqueued, label %failed

enqueued:
  %event = load ptr, ptr %event.p
  %number = call i64 @devscope.opencl.issue(ptr %device, ptr %event)
  %last.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 3
  store i64 %number, ptr %last.p
  br label %done

failed:
  ret i32 %status

done:
  ret i32 0
}

; The buffer's next use waits for the last command that uses the view, which comes after all others that use it.
define internal i32 @devscope.opencl.view_done(ptr %device, ptr %buffer, ptr %user, ptr %view) #0 {
entry:
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %foreign = load ptr, ptr %foreign.p
  ; A copy from the view to a third device.
  %copy.p = getelementptr %devscope.Buffer, ptr %view, i32 0, i32 4
  %copy = load ptr, ptr %copy.p
  %status = call i32 @devscope.opencl.after(ptr %user, ptr %view, ptr %foreign, ptr %copy)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %find, label %failed

find:
  %last = call i64 @devscope.opencl.last(ptr %user, ptr %view)
  %event = call ptr @devscope.opencl.event(ptr %user, i64 %last)
  %complete = icmp eq ptr %event, null
  br i1 %complete, label %done, label %mark

mark:
  %retain = call ptr @devscope.opencl.function(ptr %user, i32 9)
  %retained = call i32 %retain(ptr %event)
  call void @devscope.opencl.set_foreign(ptr %user, ptr %view, ptr null)
  call void @devscope.opencl.set_foreign(ptr %user, ptr %buffer, ptr %event)
  br label %done

failed:
  ret i32 %status

done:
  ret i32 0
}

define internal void @devscope.opencl.set_foreign(ptr %device, ptr %buffer, ptr %event) #0 {
entry:
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %old = load ptr, ptr %foreign.p
  store ptr %event, ptr %foreign.p
  %none = icmp eq ptr %old, null
  br i1 %none, label %done, label %release

release:
  %release.f = call ptr @devscope.opencl.function(ptr %device, i32 10)
  %status = call i32 %release.f(ptr %old)
  br label %done

done:
  ret void
}

; Whether a command of another device may still use a view of a buffer, as far as waits have shown.
define internal i1 @devscope.opencl.viewed(ptr %buffer) #0 {
entry:
  br label %loop

loop:
  %at = phi ptr [ %buffer, %entry ], [ %view, %look ]
  %view.p = getelementptr %devscope.Buffer, ptr %at, i32 0, i32 8
  %view = load ptr, ptr %view.p
  %end = icmp eq ptr %view, null
  br i1 %end, label %idle, label %look

look:
  %user.p = getelementptr %devscope.Buffer, ptr %view, i32 0, i32 9
  %user = load ptr, ptr %user.p
  %last = call i64 @devscope.opencl.last(ptr %user, ptr %view)
  %event = call ptr @devscope.opencl.event(ptr %user, i64 %last)
  %complete = icmp eq ptr %event, null
  br i1 %complete, label %loop, label %busy

busy:
  ret i1 true

idle:
  ret i1 false
}

; Nothing uses the views of a buffer any more.
define internal void @devscope.opencl.drop_views(ptr %buffer) #0 {
entry:
  %views.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 8
  %first = load ptr, ptr %views.p
  store ptr null, ptr %views.p
  br label %loop

loop:
  %view = phi ptr [ %first, %entry ], [ %next, %drop ]
  %end = icmp eq ptr %view, null
  br i1 %end, label %done, label %drop

drop:
  %next.p = getelementptr %devscope.Buffer, ptr %view, i32 0, i32 8
  %next = load ptr, ptr %next.p
  %user.p = getelementptr %devscope.Buffer, ptr %view, i32 0, i32 9
  %user = load ptr, ptr %user.p
  %settled = call i32 @devscope.opencl.settle(ptr %user, ptr %view)
  call void @free(ptr %view)
  br label %loop

done:
  ret void
}

; Both buffers are in one cl_context. Between two queues the copy waits, on the target's queue, for the last
; command that uses the source; what writes to the source next waits for the copy. The host waits for neither.
define internal i32 @devscope.opencl.copy_on(ptr %source, ptr %from, i64 %from_offset,
                                             ptr %target, ptr %to, i64 %to_offset, i64 %bytes) #0 {
entry:
  %event.p = alloca ptr
  %wait.p = alloca ptr
  store ptr null, ptr %event.p
  %claimed.to = call i32 @devscope.opencl.claim(ptr %target, ptr %to)
  ; What other queues do with the source comes before the copy. So the next use on the source's queue, which
  ; waits for the copy, waits for that too.
  %claimed.from = call i32 @devscope.opencl.claim(ptr %target, ptr %from)
  %claimed = or i32 %claimed.to, %claimed.from
  %claim.ok = icmp eq i32 %claimed, 0
  br i1 %claim.ok, label %order, label %failed

order:
  %across = icmp ne ptr %source, %target
  br i1 %across, label %depend, label %enqueue

depend:
  %last = call i64 @devscope.opencl.last(ptr %source, ptr %from)
  %needed = call ptr @devscope.opencl.event(ptr %source, i64 %last)
  ; An event of another queue is worth waiting for only if that queue was told to start.
  call void @devscope.start(ptr %source)
  br label %enqueue

enqueue:
  %event = phi ptr [ null, %order ], [ %needed, %depend ]
  store ptr %event, ptr %wait.p
  %free = icmp eq ptr %event, null
  %waits = select i1 %free, i32 0, i32 1
  %list = select i1 %free, ptr null, ptr %wait.p
  %from.memory = load ptr, ptr %from
  %to.memory = load ptr, ptr %to
  %queue = call ptr @devscope.opencl.queue(ptr %target)
  %copy = call ptr @devscope.opencl.function(ptr %target, i32 4)
  %status = call i32 %copy(ptr %queue, ptr %from.memory, ptr %to.memory, i64 %from_offset, i64 %to_offset,
                           i64 %bytes, i32 %waits, ptr %list, ptr %event.p)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %enqueued, label %failed

enqueued:
  %made = load ptr, ptr %event.p
  %number = call i64 @devscope.opencl.issue(ptr %target, ptr %made)
  %to.last.p = getelementptr %devscope.Buffer, ptr %to, i32 0, i32 3
  store i64 %number, ptr %to.last.p
  br i1 %across, label %mark, label %inside

inside:
  %from.last.p = getelementptr %devscope.Buffer, ptr %from, i32 0, i32 3
  store i64 %number, ptr %from.last.p
  ret i32 0

mark:
  %retain = call ptr @devscope.opencl.function(ptr %target, i32 9)
  %retained = call i32 %retain(ptr %made)
  %foreign.p = getelementptr %devscope.Buffer, ptr %from, i32 0, i32 4
  store ptr %made, ptr %foreign.p
  ret i32 0

failed:
  %bad = phi i32 [ %claimed, %entry ], [ %status, %enqueue ]
  ret i32 %bad
}

define internal i32 @devscope.opencl.launch(ptr %device, ptr %record, i64 %gx, i64 %gy, i64 %gz,
                                            i64 %bx, i64 %by, i64 %bz, ptr %cells) {
entry:
  %event.p = alloca ptr
  %global = alloca [3 x i64]
  %local = alloca [3 x i64]
  %kernel = load ptr, ptr %record
  %count.p = getelementptr %devscope.Kernel, ptr %record, i32 0, i32 1
  %count = load i64, ptr %count.p
  %sizes.p = getelementptr %devscope.Kernel, ptr %record, i32 0, i32 2
  %sizes = load ptr, ptr %sizes.p
  %set = call ptr @devscope.opencl.function(ptr %device, i32 5)
  %issued.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 13
  %issued = load i64, ptr %issued.p
  %number = add i64 %issued, 1
  %asked.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 19
  ; A size below 1 is none; more than all work items of a workgroup, in one direction, is too much already.
  %items.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 17
  %items = load i64, ptr %items.p
  %grid.xy = call i64 @llvm.smin.i64(i64 %gx, i64 %gy)
  %grid = call i64 @llvm.smin.i64(i64 %grid.xy, i64 %gz)
  %block.xy = call i64 @llvm.smin.i64(i64 %bx, i64 %by)
  %block = call i64 @llvm.smin.i64(i64 %block.xy, i64 %bz)
  %least = call i64 @llvm.smin.i64(i64 %grid, i64 %block)
  %sensible = icmp sgt i64 %least, 0
  br i1 %sensible, label %check_workgroup, label %bad_size

bad_size:
  store i64 %least, ptr %asked.p
  ret i32 103

check_workgroup:
  %most.xy = call i64 @llvm.smax.i64(i64 %bx, i64 %by)
  %most = call i64 @llvm.smax.i64(i64 %most.xy, i64 %bz)
  %one_fits = icmp sle i64 %most, %items
  %plane = mul i64 %bx, %by
  %volume = mul i64 %plane, %bz
  %all_fit = icmp sle i64 %volume, %items
  %fits = and i1 %one_fits, %all_fit
  br i1 %fits, label %arguments, label %bad_workgroup

bad_workgroup:
  %workgroup = select i1 %one_fits, i64 %volume, i64 %most
  store i64 %workgroup, ptr %asked.p
  ret i32 102

arguments:
  %index = phi i64 [ 0, %check_workgroup ], [ %next, %argument_set ]
  %local.bytes = phi i64 [ 0, %check_workgroup ], [ %local.sum, %argument_set ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %argument, label %enqueue

argument:
  %size.p = getelementptr i64, ptr %sizes, i64 %index
  %size = load i64, ptr %size.p
  %cell = getelementptr i64, ptr %cells, i64 %index
  %is_buffer = icmp eq i64 %size, 0
  br i1 %is_buffer, label %note, label %plain

note:
  %buffer = load ptr, ptr %cell
  %no_buffer = icmp eq ptr %buffer, null
  br i1 %no_buffer, label %absent, label %present

absent:
  ; There is none after a failed allocation, and then no launch; nor for a descriptor that nobody filled in.
  br label %set_argument

present:
  %last.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 3
  store i64 %number, ptr %last.p
  %foreign.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 4
  %foreign = load ptr, ptr %foreign.p
  %unread = icmp eq ptr %foreign, null
  br i1 %unread, label %set_argument, label %claim

claim:
  %claim.status = call i32 @devscope.opencl.claim(ptr %device, ptr %buffer)
  %claim.ok = icmp eq i32 %claim.status, 0
  br i1 %claim.ok, label %set_argument, label %failed

plain:
  ; A negative size is an amount of workgroup-local memory: OpenCL wants the amount, at least 1, and no value.
  %is_local = icmp slt i64 %size, 0
  br i1 %is_local, label %local_argument, label %set_argument

local_argument:
  %is_dynamic = icmp eq i64 %size, -9223372036854775808
  %dynamic = load i64, ptr %cell
  %static = sub i64 0, %size
  %amount = select i1 %is_dynamic, i64 %dynamic, i64 %static
  %some = call i64 @llvm.smax.i64(i64 %amount, i64 1)
  %total = add i64 %local.bytes, %some
  %limit.p = getelementptr %devscope.Device, ptr %device, i32 0, i32 18
  %limit = load i64, ptr %limit.p
  %below = icmp slt i64 %amount, 0
  %above = icmp sgt i64 %total, %limit
  %bad_local = or i1 %below, %above
  br i1 %bad_local, label %refuse_local, label %set_argument

refuse_local:
  %refused = select i1 %below, i64 %amount, i64 %total
  store i64 %refused, ptr %asked.p
  ret i32 101

set_argument:
  %bytes = phi i64 [ 8, %absent ], [ 8, %present ], [ 8, %claim ], [ %size, %plain ], [ %some, %local_argument ]
  %value = phi ptr [ %cell, %absent ], [ %buffer, %present ], [ %buffer, %claim ], [ %cell, %plain ],
                   [ null, %local_argument ]
  %local.sum = phi i64 [ %local.bytes, %absent ], [ %local.bytes, %present ], [ %local.bytes, %claim ],
                       [ %local.bytes, %plain ], [ %total, %local_argument ]
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
  %run = call ptr @devscope.opencl.function(ptr %device, i32 6)
  %run.status = call i32 %run(ptr %queue, ptr %kernel, i32 3, ptr null, ptr %global, ptr %local,
                              i32 0, ptr null, ptr %event.p)
  %run.ok = icmp eq i32 %run.status, 0
  br i1 %run.ok, label %enqueued, label %failed

enqueued:
  %event = load ptr, ptr %event.p
  %issued.number = call i64 @devscope.opencl.issue(ptr %device, ptr %event)
  ret i32 0

failed:
  %status = phi i32 [ %set.status, %set_argument ], [ %claim.status, %claim ], [ %run.status, %enqueue ]
  ret i32 %status
}

define internal i32 @devscope.opencl.flush(ptr %device) #0 {
  %queue = call ptr @devscope.opencl.queue(ptr %device)
  %flush = call ptr @devscope.opencl.function(ptr %device, i32 7)
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
; slot, which stays. Places overlap where buffers are not needed at the same time; the order of a device's queue keeps
; them apart, and the host waits for the commands on the same bytes before it writes to one. The host's arena is
; made by the loader, that of a device here, at its first use.

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

; A place in the memory of a device; null with the error recorded. What it held does not matter any more: where
; another device may still look at that, the place gets other memory, so that this one need not wait.
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
  br i1 %there, label %look, label %make

look:
  %elsewhere = call i1 @devscope.opencl.viewed(ptr %memory)
  br i1 %elsewhere, label %rename, label %done

rename:
  ; Only buffers of their own are viewed.
  %device = call ptr @devscope.device(i64 %slot, i64 1)
  call void @devscope.opencl.rename(ptr %device, ptr %memory)
  br label %done

make:
  %made = call ptr @devscope.arena.make(i64 %slot, ptr %arena, ptr %place)
  store ptr %made, ptr %memory.p
  br label %done

done:
  %result = phi ptr [ %memory, %look ], [ %memory, %rename ], [ %made, %make ]
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
  %device = call ptr @devscope.device(i64 %slot, i64 1)
  %status = call i32 @devscope.opencl.part(ptr %device, ptr %arena, i64 %offset, i64 %bytes, ptr %out)
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

; A part of an arena as a buffer.
define internal i32 @devscope.opencl.part(ptr %device, ptr %arena, i64 %offset, i64 %bytes, ptr %out) #0 {
entry:
  %whole.p = getelementptr %devscope.Arena, ptr %arena, i32 0, i32 2
  %whole = load ptr, ptr %whole.p
  %status.p = alloca i32
  %region = alloca [2 x i64]
  %buffer = call ptr @malloc(i64 80)
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %no_memory, label %make

no_memory:
  ; CL_OUT_OF_HOST_MEMORY
  ret i32 -6

make:
  store i32 0, ptr %status.p
  %length.p = getelementptr i64, ptr %region, i64 1
  %empty = icmp eq i64 %bytes, 0
  %length = select i1 %empty, i64 1, i64 %bytes
  store i64 %offset, ptr %region
  store i64 %length, ptr %length.p
  %create = call ptr @devscope.opencl.function(ptr %device, i32 14)
  %memory = load ptr, ptr %whole
  ; 0 = as the buffer is, 0x1220 = CL_BUFFER_CREATE_TYPE_REGION
  %part = call ptr %create(ptr %memory, i64 0, i32 4640, ptr %region, ptr %status.p)
  %status = load i32, ptr %status.p
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %made, label %refused

made:
  call void @llvm.memset.p0.i64(ptr %buffer, i8 0, i64 80, i1 false)
  %whole.host.p = getelementptr %devscope.Buffer, ptr %whole, i32 0, i32 1
  %whole.host = load ptr, ptr %whole.host.p
  %apart = icmp eq ptr %whole.host, null
  %at = getelementptr i8, ptr %whole.host, i64 %offset
  %host = select i1 %apart, ptr null, ptr %at
  %host.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 1
  %size.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 2
  %used.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 5
  %arena.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 6
  %offset.p = getelementptr %devscope.Buffer, ptr %buffer, i32 0, i32 7
  store ptr %part, ptr %buffer
  store ptr %host, ptr %host.p
  store i64 %length, ptr %size.p
  store i64 %bytes, ptr %used.p
  store ptr %arena, ptr %arena.p
  store i64 %offset, ptr %offset.p
  store ptr %buffer, ptr %out
  ret i32 0

refused:
  call void @free(ptr %buffer)
  ret i32 %status
}

attributes #0 = { noinline optnone }
