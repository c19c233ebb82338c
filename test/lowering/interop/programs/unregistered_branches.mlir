"foo.func"() ({
^entry(%c: i1, %v: f32):
  "foo.branch"(%c, %v)[^left, ^right] {weights = [1, 2]} : (i1, f32) -> ()
^left:
  "foo.jump"(%v)[^right] : (f32) -> ()
^right:
  "foo.done"() : () -> ()
}) {sym_name = "graph"} : () -> ()
