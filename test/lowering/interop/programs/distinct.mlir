"foo.x"() {a = distinct[0]<1 : i32>, b = distinct[1]<1 : i32>, c = [distinct[0]<1 : i32>]} : () -> ()
