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
  transform.named_sequence @winograd(%root: !op {transform.readonly}) {
    %ops = transform.structured.match ops{["linalg.winograd_filter_transform", "linalg.winograd_input_transform",
        "linalg.winograd_output_transform"]} in %root : (!op) -> !op
    transform.structured.decompose_winograd_op %ops : (!op) -> !op
    transform.yield
  }
  transform.named_sequence @pack(%root: !op {transform.readonly}) {
    %ops = transform.structured.match ops{["linalg.pack"]} attributes {devscope.schedule = "$mark"} in %root
      : (!op) -> !transform.op<"linalg.pack">
    %made:3 = transform.structured.lower_pack %ops : (!transform.op<"linalg.pack">)
        -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
    transform.yield
  }
  transform.named_sequence @unpack(%root: !op {transform.readonly}) {
    %ops = transform.structured.match ops{["linalg.unpack"]} attributes {devscope.schedule = "$mark"} in %root
      : (!op) -> !transform.op<"linalg.unpack">
    %made:5 = transform.structured.lower_unpack %ops : (!transform.op<"linalg.unpack">)
        -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">,
            !transform.op<"tensor.collapse_shape">, !transform.op<"tensor.extract_slice">, !transform.op<"linalg.copy">)
    transform.yield
  }
}
