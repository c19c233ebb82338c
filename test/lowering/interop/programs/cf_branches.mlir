// Branch weights, and blocks whose order is not that in which values are defined.
func.func @f(%c: i1, %n: i32) -> i32 {
  cf.br ^define
^use:
  %twice = arith.addi %value, %value : i32
  cf.cond_br %c, ^exit(%twice : i32), ^exit(%value : i32) {branch_weights = array<i32: 1, 20>}
^define:
  %value = arith.muli %n, %n : i32
  cf.switch %n : i32, [default: ^use, 5: ^exit(%n : i32)]
^exit(%r: i32):
  cf.assert %c, "expected"
  return %r : i32
}
