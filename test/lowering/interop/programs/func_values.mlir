func.func private @g(i32) -> i32
func.func private @h(tensor<2xf32> {llvm.noalias, test.note = "in"}, i1) -> (f32 {test.note = "out"}) attributes {no_inline}
func.func @f(%x: i32) -> i32 attributes {test.flags = [1, "two"]} {
  %g = func.constant @g : (i32) -> i32
  %0 = func.call_indirect %g(%x) : (i32) -> i32
  %1 = call @g(%0) {test.tail} : (i32) -> i32
  return %1 : i32
}
func.func @two(%x: i32 {test.first}, %y: i32) -> (i32, i32 {test.second}) {
  return %y, %x : i32, i32
}
