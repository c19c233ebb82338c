// Loop orders for targets that run loops one after another. Numbers are iterator positions of the named operation.
!op = !transform.any_op

module attributes {transform.with_named_sequence} {
  transform.named_sequence @interchange(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "$mark"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = $order : (!op) -> !op
    transform.yield
  }
}
