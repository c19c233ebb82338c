"foo.x"() {a = @a::@b::@c, b = @"odd name", c = array<i64: 1, 2>, d = array<i1: true>, e = [1 : ui8, 2.0 : f64, "s", unit, i32, (i32) -> f32, tuple<i32, f32>],
  f = array<i8>, g = dense<> : tensor<0xf32>, h = vector<[4]xf32>, i = tensor<*xf32>, j = memref<*xf32, 1>, k = complex<f32>, l = none,
  m = 0xFFFFFFFFFFFFFFFF : i64, n = -1 : index, o = 1.0e-300 : f64, p = {}, q = {nested = {a, "b c" = [[]]}}, "weird key" = "tab\09\22q\22 \\ \C3\A9",
  r = loc("a.py":1:2), s = loc(fused["x", unknown]), t = #foo<bar>, u = tensor<4x?xf32, #foo.enc<1>>, v = memref<4xf32, affine_map<(d0) -> (d0 * 2)>, "spc">,
  w = "typed" : i32, x = "not utf-8 \FF\FE", z = strided<[1, ?], offset: 3>,
  aa = array<f32: 1.5, 0x7FC00000>, ab = array<f64>, ac = () -> (), ad = (i1, i2) -> (i3, i4), ae = ((i1) -> i2) -> ((i3) -> i4), af = ""} : () -> ()
