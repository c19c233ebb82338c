// What compiled code calls to reach the runtime, in terms of memrefs.
//
// The functions without a body are the native runtime (runtime/native/abi.h): they take slots, handles and byte
// counts. The others translate between memref descriptors and those; LLVM inlines them.
//
// LLVM sees no body of the runtime, but what the attributes say: memory that compiled code gets is nobody else's
// (noalias), and the functions that give and take it touch none that compiled code knows of (inaccessible memory). So
// LLVM forwards stores to loads across them. They are no allocation functions in LLVM's sense (allockind): it may
// erase those, and would erase the stop of a call for which there is no memory.
// A device buffer is a descriptor whose pointers hold the driver's handle: subviews change offset, sizes and
// strides only, so views of device memory cost nothing.
#allocates = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = readwrite, errnoMem = none, targetMem0 = none, targetMem1 = none>
#releases = #llvm.memory_effects<other = none, argMem = readwrite, inaccessibleMem = readwrite, errnoMem = none, targetMem0 = none, targetMem1 = none>
!descriptor = !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
module {
  func.func private @devscope_alloc(i64, i64) -> !llvm.ptr
  func.func private @devscope_free(i64, !llvm.ptr)
  func.func private @devscope_copy(i64, !llvm.ptr, i64, i64, !llvm.ptr, i64, i64)
  func.func private @devscope_map(i64, !llvm.ptr, i64) -> !llvm.ptr
  llvm.func @devscope_map_new(i64, !llvm.ptr) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
  func.func private @devscope_view(i64, !llvm.ptr, i64) -> !llvm.ptr
  func.func private @devscope_view_done(i64, !llvm.ptr, i64, !llvm.ptr)
  func.func private @devscope_constant(i64, i64) -> !llvm.ptr
  func.func private @devscope_start(i64)
  func.func private @devscope_launch(i64, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr, i64)

  llvm.func @devscope_fail_assertion(!llvm.ptr) attributes {passthrough = ["noreturn", "cold"]}

  llvm.func @devscope_host_alloc(i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
      attributes {memory_effects = #allocates}
  // The names by which MLIR calls allocation and release.
  llvm.func @_mlir_memref_to_llvm_alloc(i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
      attributes {memory_effects = #allocates}
  llvm.func @_mlir_memref_to_llvm_free(!llvm.ptr {llvm.nocapture}) attributes {memory_effects = #releases}

  func.func private @devscope_arena_buffer(i64, i64) -> !llvm.ptr
  llvm.func @devscope_host_place(i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull, llvm.align = 64 : i64})
      attributes {memory_effects = #allocates}
  llvm.func @devscope_host_done(!llvm.ptr {llvm.nocapture}) attributes {memory_effects = #releases}

  // message: a C string that outlives the call.
  func.func private @devscope_assert(%holds: i1, %message: !llvm.ptr) {
    cf.cond_br %holds, ^done, ^stop
  ^stop:
    llvm.call @devscope_fail_assertion(%message) : (!llvm.ptr) -> ()
    llvm.unreachable
  ^done:
    return
  }

  func.func private @devscope_wrap(%allocated: !llvm.ptr, %aligned: !llvm.ptr, %bytes: i64) -> memref<?xi8> {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %0 = llvm.mlir.poison : !descriptor
    %1 = llvm.insertvalue %allocated, %0[0] : !descriptor
    %2 = llvm.insertvalue %aligned, %1[1] : !descriptor
    %3 = llvm.insertvalue %zero, %2[2] : !descriptor
    %4 = llvm.insertvalue %bytes, %3[3, 0] : !descriptor
    %5 = llvm.insertvalue %one, %4[4, 0] : !descriptor
    %6 = builtin.unrealized_conversion_cast %5 : !descriptor to memref<?xi8>
    return %6 : memref<?xi8>
  }

  // Host memory. Found by getelementptr and ptrmask and not by integer arithmetic, the aligned address is one
  // of which LLVM knows that nothing else points there.
  func.func private @devscope_host_buffer(%bytes: index) -> memref<?xi8> {
    %size = arith.index_cast %bytes : index to i64
    %memory = llvm.call @devscope_host_alloc(%size) : (i64) -> !llvm.ptr
    %mask = llvm.mlir.constant(-64 : i64) : i64
    %end = llvm.getelementptr %memory[63] : (!llvm.ptr) -> !llvm.ptr, i8
    %aligned = llvm.intr.ptrmask %end, %mask : (!llvm.ptr, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %aligned, %size) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  func.func private @devscope_alloc_buffer(%slot: i64, %bytes: index) -> memref<?xi8> {
    %size = arith.index_cast %bytes : index to i64
    %handle = call @devscope_alloc(%slot, %size) : (i64, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%handle, %handle, %size) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // Places in arenas.
  func.func private @devscope_place_on_device(%slot: i64, %number: i64, %bytes: i64) -> memref<?xi8> {
    %handle = call @devscope_arena_buffer(%slot, %number) : (i64, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%handle, %handle, %bytes) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  func.func private @devscope_place_on_host(%number: i64, %bytes: i64) -> memref<?xi8> {
    %memory = llvm.call @devscope_host_place(%number) : (i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %memory, %bytes) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  func.func private @devscope_done_on_host(%place: memref<?xi8>) {
    %0 = builtin.unrealized_conversion_cast %place : memref<?xi8> to !descriptor
    %memory = llvm.extractvalue %0[0] : !descriptor
    llvm.call @devscope_host_done(%memory) : (!llvm.ptr) -> ()
    return
  }

  func.func private @devscope_constant_buffer(%slot: i64, %number: i64, %bytes: i64) -> memref<?xi8> {
    %handle = call @devscope_constant(%slot, %number) : (i64, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%handle, %handle, %bytes) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // A device's buffer of so many bytes, where the host reaches it.
  func.func private @devscope_map_buffer(%slot: i64, %pointer: index, %bytes: index, %access: i64) -> memref<?xi8> {
    %0 = arith.index_cast %pointer : index to i64
    %handle = llvm.inttoptr %0 : i64 to !llvm.ptr
    %size = arith.index_cast %bytes : index to i64
    %memory = call @devscope_map(%slot, %handle, %access) : (i64, !llvm.ptr, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %memory, %size) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // The same for a buffer that has no contents yet; then they are complete.
  func.func private @devscope_map_new_buffer(%slot: i64, %pointer: index, %bytes: index) -> memref<?xi8> {
    %0 = arith.index_cast %pointer : index to i64
    %handle = llvm.inttoptr %0 : i64 to !llvm.ptr
    %size = arith.index_cast %bytes : index to i64
    %memory = llvm.call @devscope_map_new(%slot, %handle) : (i64, !llvm.ptr) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %memory, %size) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // Says to LLVM that others look at the memory from now on: what host code has written must be there. No
  // instruction, but LLVM cannot know that; the unused argument of a function it would drop, and then what was written.
  func.func private @devscope_publish_buffer(%pointer: index) {
    %0 = arith.index_cast %pointer : index to i64
    %memory = llvm.inttoptr %0 : i64 to !llvm.ptr
    llvm.inline_asm has_side_effects "", "r,~{memory}" %memory : (!llvm.ptr) -> ()
    return
  }

  // A device's buffer of so many bytes, for another device.
  func.func private @devscope_view_buffer(
      %slot: i64, %pointer: index, %bytes: index, %user: i64) -> memref<?xi8> {
    %0 = arith.index_cast %pointer : index to i64
    %handle = llvm.inttoptr %0 : i64 to !llvm.ptr
    %size = arith.index_cast %bytes : index to i64
    %view = call @devscope_view(%slot, %handle, %user) : (i64, !llvm.ptr, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%view, %view, %size) : (!llvm.ptr, !llvm.ptr, i64) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  func.func private @devscope_done_with_view(%slot: i64, %pointer: index, %user: i64, %view_pointer: index) {
    %0 = arith.index_cast %pointer : index to i64
    %handle = llvm.inttoptr %0 : i64 to !llvm.ptr
    %1 = arith.index_cast %view_pointer : index to i64
    %view = llvm.inttoptr %1 : i64 to !llvm.ptr
    call @devscope_view_done(%slot, %handle, %user, %view) : (i64, !llvm.ptr, i64, !llvm.ptr) -> ()
    return
  }

  func.func private @devscope_free_buffer(%slot: i64, %pointer: index) {
    %address = arith.index_cast %pointer : index to i64
    %handle = llvm.inttoptr %address : i64 to !llvm.ptr
    call @devscope_free(%slot, %handle) : (i64, !llvm.ptr) -> ()
    return
  }

  // Offsets and the size are in bytes.
  func.func private @devscope_copy_bytes(
      %source_slot: i64, %source: index, %source_offset: index,
      %target_slot: i64, %target: index, %target_offset: index, %bytes: index) {
    %0 = arith.index_cast %source : index to i64
    %1 = llvm.inttoptr %0 : i64 to !llvm.ptr
    %2 = arith.index_cast %source_offset : index to i64
    %3 = arith.index_cast %target : index to i64
    %4 = llvm.inttoptr %3 : i64 to !llvm.ptr
    %5 = arith.index_cast %target_offset : index to i64
    %6 = arith.index_cast %bytes : index to i64
    call @devscope_copy(%source_slot, %1, %2, %target_slot, %4, %5, %6)
        : (i64, !llvm.ptr, i64, i64, !llvm.ptr, i64, i64) -> ()
    return
  }

  // One cell of 8 bytes per kernel argument.
  func.func private @devscope_launch_kernel(
      %slot: i64, %kernel: i64,
      %gx: index, %gy: index, %gz: index, %bx: index, %by: index, %bz: index,
      %cells: index, %count: i64) {
    %0 = arith.index_cast %gx : index to i64
    %1 = arith.index_cast %gy : index to i64
    %2 = arith.index_cast %gz : index to i64
    %3 = arith.index_cast %bx : index to i64
    %4 = arith.index_cast %by : index to i64
    %5 = arith.index_cast %bz : index to i64
    %6 = arith.index_cast %cells : index to i64
    %7 = llvm.inttoptr %6 : i64 to !llvm.ptr
    call @devscope_launch(%slot, %kernel, %0, %1, %2, %3, %4, %5, %7, %count)
        : (i64, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr, i64) -> ()
    return
  }
}
