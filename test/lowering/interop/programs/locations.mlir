#a = loc("a.py":1:2)
#nested = loc(callsite("inner"("b.py":3:4) at callsite("c.py":5:6 at fused<{k = 1}>[#a, "d"])))
module {
  func.func @f(%x: f32 loc("argument"), %y: f32 loc("x.py":7:8 to 9:10)) -> f32 {
    %0 = arith.addf %x, %y : f32 loc(callsite("callee" at "b.py":3:4))
    %1 = arith.addf %0, %x : f32 loc(fused["a", #a])
    %2 = arith.addf %1, %x : f32 loc(fused<"meta">["a", "c.py":1:2])
    %3 = arith.addf %2, %x : f32 loc("named"("d.py":5:6))
    %4 = arith.addf %3, %x : f32 loc("r.py":5:6 to 7:8)
    %5 = arith.addf %4, %x : f32 loc("r.py":5:6 to :9)
    %6 = arith.addf %5, %x : f32 loc(unknown)
    %7 = arith.addf %6, %x : f32 loc(#nested)
    cf.br ^bb1(%7 : f32)
  ^bb1(%z: f32 loc(fused["p", "q"])):
    return %z : f32 loc(#a)
  } loc(#a)
} loc("whole \22module\22")
