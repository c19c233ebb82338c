func.func @collatz(%n: i64) -> i64 {
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %r:2 = scf.while (%i = %n, %k = %c1) : (i64, i64) -> (i64, i64) {
    %more = arith.cmpi ugt, %i, %c1 : i64
    scf.condition(%more) %k, %i : i64, i64
  } do {
  ^bb0(%k: i64, %i: i64):
    %bit = arith.remui %i, %c2 : i64
    %odd = arith.trunci %bit : i64 to i1
    %next = scf.if %odd -> i64 {
      %t = arith.muli %i, %c3 overflow<nuw> : i64
      %u = arith.addi %t, %c1 : i64
      scf.yield %u : i64
    } else {
      %h = arith.shrui %i, %c1 : i64
      scf.yield %h : i64
    }
    %l = arith.addi %k, %c1 : i64
    scf.yield %next, %l : i64, i64
  }
  return %r#0 : i64
}
