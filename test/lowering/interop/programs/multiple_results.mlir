func.func @f(%x: f64) -> (i1, f64, tensor<0xf32>) {
  %0:3 = "foo.three"(%x) : (f64) -> (i1, f64, tensor<0xf32>)
  "foo.zero"(%0#1, %0#0) : (f64, i1) -> ()
  return %0#0, %0#1, %0#2 : i1, f64, tensor<0xf32>
}
