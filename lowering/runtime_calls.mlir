// What compiled code calls to reach the runtime, in terms of memrefs.
//
// The functions without a body are the native runtime (runtime/native/abi.h): they take slots, handles and byte
// counts. A handle or an address that LLVM need know nothing of is an index, whose 64 bits are passed like a pointer.
// The others make memref descriptors of what the runtime gives; LLVM inlines them.
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
  func.func private @devscope_alloc(i64, index) -> index
  func.func private @devscope_free(i64, index)
  func.func private @devscope_copy(i64, index, index, i64, index, index, index)
  func.func private @devscope_map(i64, index, i64) -> index
  llvm.func @devscope_map_new(i64, i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
  func.func private @devscope_view(i64, index, i64) -> index
  func.func private @devscope_view_done(i64, index, i64, index)
  func.func private @devscope_constant(i64, i64) -> index
  func.func private @devscope_state(i64) -> index
  func.func private @devscope_keep(i64, i64, index)
  func.func private @devscope_status(i64, !llvm.ptr) -> index
  func.func private @devscope_start(i64)
  func.func private @devscope_lend(i64, index, i64) -> index
  func.func private @devscope_lend_done(i64)
  func.func private @devscope_launch(i64, i64, index, index, index, index, index, index, index, i64)

  llvm.func @devscope_fail_assertion(!llvm.ptr, i64, i64) attributes {passthrough = ["noreturn", "cold"]}

  llvm.func @devscope_host_alloc(i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
      attributes {memory_effects = #allocates}
  llvm.func @devscope_result_alloc(i64, i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
      attributes {memory_effects = #allocates}
  llvm.func @devscope_result_data(!llvm.ptr) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
      attributes {memory_effects = #allocates}
  // The names by which MLIR calls allocation and release.
  llvm.func @_mlir_memref_to_llvm_alloc(i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull})
      attributes {memory_effects = #allocates}
  llvm.func @_mlir_memref_to_llvm_free(!llvm.ptr {llvm.nocapture}) attributes {memory_effects = #releases}

  // How often loops may go on before they ask whether the call is to be left. Compiled code sees nothing of what is
  // done then; that the budget changes is what volatile says.
  llvm.mlir.global external @devscope_budget() {addr_space = 0 : i32} : i64
  llvm.func @devscope_poll() attributes {memory_effects = #allocates, passthrough = ["cold"]}
  func.func private @devscope_go_on() {
    %address = llvm.mlir.addressof @devscope_budget : !llvm.ptr
    %one = llvm.mlir.constant(1 : i64) : i64
    %zero = llvm.mlir.constant(0 : i64) : i64
    %old = llvm.load volatile %address : !llvm.ptr -> i64
    %left = llvm.sub %old, %one : i64
    llvm.store volatile %left, %address : i64, !llvm.ptr
    %spent = llvm.icmp "sle" %left, %zero : i64
    cf.cond_br %spent, ^ask, ^done
  ^ask:
    llvm.call @devscope_poll() : () -> ()
    cf.br ^done
  ^done:
    return
  }

  func.func private @devscope_arena_buffer(i64, i64) -> index
  llvm.func @devscope_host_place(i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull, llvm.align = 64 : i64})
      attributes {memory_effects = #allocates}
  llvm.func @devscope_host_done(!llvm.ptr {llvm.nocapture}) attributes {memory_effects = #releases}

  // message: a C string that outlives the call; one and other: the numbers that it may name.
  func.func private @devscope_assert(%holds: i1, %message: !llvm.ptr, %one: i64, %other: i64) {
    cf.cond_br %holds, ^done, ^stop
  ^stop:
    llvm.call @devscope_fail_assertion(%message, %one, %other) : (!llvm.ptr, i64, i64) -> ()
    llvm.unreachable
  ^done:
    return
  }

  // Bytes so far, times the size of one more dimension. What is negative stays so, and is the smallest of these sizes.
  func.func private @devscope_times(%bytes: index, %size: index) -> index {
    %zero = arith.constant 0 : index
    %most = arith.constant 9223372036854775807 : index
    %product, %high = arith.mului_extended %bytes, %size : index
    %0 = arith.cmpi eq, %high, %zero : index
    %1 = arith.cmpi sge, %product, %zero : index
    %fits = arith.andi %0, %1 : i1
    %total = arith.select %fits, %product, %most : index
    %least = arith.minsi %bytes, %size : index
    %negative = arith.cmpi slt, %least, %zero : index
    %result = arith.select %negative, %least, %total : index
    return %result : index
  }

  func.func private @devscope_wrap(%allocated: !llvm.ptr, %aligned: !llvm.ptr, %bytes: index) -> memref<?xi8> {
    %size = arith.index_cast %bytes : index to i64
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %0 = llvm.mlir.poison : !descriptor
    %1 = llvm.insertvalue %allocated, %0[0] : !descriptor
    %2 = llvm.insertvalue %aligned, %1[1] : !descriptor
    %3 = llvm.insertvalue %zero, %2[2] : !descriptor
    %4 = llvm.insertvalue %size, %3[3, 0] : !descriptor
    %5 = llvm.insertvalue %one, %4[4, 0] : !descriptor
    %6 = builtin.unrealized_conversion_cast %5 : !descriptor to memref<?xi8>
    return %6 : memref<?xi8>
  }

  // What the runtime has at an address or, of a device, by a handle.
  func.func private @devscope_buffer_at(%pointer: index, %bytes: index) -> memref<?xi8> {
    %0 = arith.index_cast %pointer : index to i64
    %handle = llvm.inttoptr %0 : i64 to !llvm.ptr
    %buffer = call @devscope_wrap(%handle, %handle, %bytes) : (!llvm.ptr, !llvm.ptr, index) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // Host memory. Found by getelementptr and ptrmask and not by integer arithmetic, the aligned address is one
  // of which LLVM knows that nothing else points there.
  func.func private @devscope_host_buffer(%bytes: index) -> memref<?xi8> {
    %size = arith.index_cast %bytes : index to i64
    %memory = llvm.call @devscope_host_alloc(%size) : (i64) -> !llvm.ptr
    %mask = llvm.mlir.constant(-64 : i64) : i64
    %end = llvm.getelementptr %memory[63] : (!llvm.ptr) -> !llvm.ptr, i8
    %aligned = llvm.intr.ptrmask %end, %mask : (!llvm.ptr, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %aligned, %bytes) : (!llvm.ptr, !llvm.ptr, index) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // Memory for a result of the entry: the caller's, which may not be aligned, or new.
  func.func private @devscope_result_buffer(%position: i64, %bytes: index) -> memref<?xi8> {
    %size = arith.index_cast %bytes : index to i64
    %memory = llvm.call @devscope_result_alloc(%position, %size) : (i64, i64) -> !llvm.ptr
    %data = llvm.call @devscope_result_data(%memory) : (!llvm.ptr) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %data, %bytes) : (!llvm.ptr, !llvm.ptr, index) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // A place in the host's arena, and the end of its use.
  func.func private @devscope_place_on_host(%number: i64, %bytes: index) -> memref<?xi8> {
    %memory = llvm.call @devscope_host_place(%number) : (i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %memory, %bytes) : (!llvm.ptr, !llvm.ptr, index) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  func.func private @devscope_done_on_host(%place: memref<?xi8>) {
    %0 = builtin.unrealized_conversion_cast %place : memref<?xi8> to !descriptor
    %memory = llvm.extractvalue %0[0] : !descriptor
    llvm.call @devscope_host_done(%memory) : (!llvm.ptr) -> ()
    return
  }

  // A device's buffer that has no contents yet, where the host reaches it; and then they are complete.
  func.func private @devscope_map_new_buffer(%slot: i64, %handle: index, %bytes: index) -> memref<?xi8> {
    %0 = arith.index_cast %handle : index to i64
    %memory = llvm.call @devscope_map_new(%slot, %0) : (i64, i64) -> !llvm.ptr
    %buffer = call @devscope_wrap(%memory, %memory, %bytes) : (!llvm.ptr, !llvm.ptr, index) -> memref<?xi8>
    return %buffer : memref<?xi8>
  }

  // Says to LLVM that others look at the memory from now on: what host code has written must be there. No
  // instruction, but LLVM cannot know that; the unused argument of a function it would drop, and then what was written.
  func.func private @devscope_publish_buffer(%pointer: index) {
    %0 = arith.index_cast %pointer : index to i64
    llvm.inline_asm has_side_effects "", "r,~{memory}" %0 : (i64) -> ()
    return
  }
}
