// What every target does to named operations before elementwise code is fused.
!op = !transform.any_op

module attributes {transform.with_named_sequence} {
  transform.named_sequence @decompose(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "$mark"} in %root : (!op) -> !op
    transform.structured.decompose_interface %ops : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @generalize(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "$mark"} in %root : (!op) -> !op
    transform.structured.generalize %ops : (!op) -> !op
    transform.yield
  }
}
