// Loop orders for targets that run loops one after another: the dimension with unit stride in the result goes
// innermost, where LLVM vectorises it. Numbers are iterator positions of the named operation.
!op = !transform.any_op

module attributes {transform.with_named_sequence} {
  transform.named_sequence @matmul(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "matmul"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [0, 2, 1] : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @batch_matmul(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "batch_matmul"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [0, 1, 3, 2] : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @vecmat(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "vecmat"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [1, 0] : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @conv_nchw(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "conv_nchw"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [0, 1, 4, 5, 6, 2, 3] : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @conv_nhwc(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "conv_nhwc"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [0, 1, 2, 4, 5, 6, 3] : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @pooling_nchw(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "pooling_nchw"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [0, 1, 4, 5, 2, 3] : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @pooling_nhwc(%root: !op {transform.readonly}) {
    %ops = transform.structured.match attributes {devscope.schedule = "pooling_nhwc"} in %root : (!op) -> !op
    %loops = transform.structured.generalize %ops : (!op) -> !op
    transform.structured.interchange %loops iterator_interchange = [0, 1, 2, 4, 5, 3] : (!op) -> !op
    transform.yield
  }
}
