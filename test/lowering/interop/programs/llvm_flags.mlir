// Flags that are properties but not attributes; the bindings do not show them.
module attributes {llvm.data_layout = "e", llvm.target_triple = "x86_64"} {
  llvm.mlir.global internal constant @text("abc\00\FF") {addr_space = 0 : i32}
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @f(%a: i64, %p: !llvm.ptr) -> i64 attributes {llvm.emit_c_interface} {
    %0 = llvm.getelementptr inbounds %p[%a] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %1 = llvm.getelementptr %p[%a, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x f32>
    %2 = llvm.load %0 {alignment = 4 : i64} : !llvm.ptr -> i64
    %3 = llvm.add %2, %a overflow<nsw, nuw> : i64
    %4 = llvm.mul %3, %a : i64
    %5 = llvm.trunc %4 overflow<nuw> : i64 to i32
    %6 = llvm.zext nneg %5 : i32 to i64
    %7 = llvm.call @malloc(%6) : (i64) -> !llvm.ptr
    %8 = llvm.mlir.undef : !llvm.struct<(ptr, i64, array<1 x i64>)>
    %9 = llvm.insertvalue %7, %8[0] : !llvm.struct<(ptr, i64, array<1 x i64>)>
    llvm.br ^bb1(%6 : i64)
  ^bb1(%x: i64):
    llvm.return %x : i64
  }
}
