func.func @f(%a: f32) {
  %0:2 = "foo.bar"(%a) <{p = 1 : i32, "odd }> key" = "text }> {", u, z = dense<[(1.0,2.0), (0.0,0.5)]> : tensor<2xcomplex<f32>>}> ({
  ^bb0(%b: !foo.ty<x, [1, 2]>):
    "foo.yield"(%b) : (!foo.ty<x, [1, 2]>) -> ()
  }, {
  }) {a = #foo.attr<"hi", {x = 3}>, b = #foo<raw 1 2>, c = !foo<raw>} : (f32) -> (f32, !foo.ty)
  "foo.none"() : () -> ()
  return
}
