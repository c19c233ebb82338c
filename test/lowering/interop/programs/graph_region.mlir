// Uses before definitions, in one block and from an inner region.
"foo.graph"() ({
  %0 = "foo.first"(%1, %1) ({
    "foo.inner"(%1, %2) : (f32, i8) -> ()
  }) : (f32, f32) -> i32
  %1 = "foo.second"(%0) : (i32) -> f32
  %2 = "foo.third"(%2) : (i8) -> i8
}) : () -> ()
