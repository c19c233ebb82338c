irdl.dialect @device {
  irdl.attribute @target {
    %0 = irdl.base "#builtin.string"
    %1 = irdl.base "#builtin.dictionary"
    irdl.parameters(kind: %0, options: %1)
  }
  irdl.attribute @scope {
    %0 = irdl.base "#builtin.string"
    %1 = irdl.base "#builtin.integer"
    %2 = irdl.base "#builtin.string"
    %3 = irdl.base @device::@target
    %4 = irdl.any_of(%2, %3)
    %5 = irdl.base "#builtin.string"
    irdl.parameters(device_type: %0, device_id: %1, target: %4, memory: %5)
  }
  irdl.operation @on_device {
    %0 = irdl.any
    irdl.operands(operand: %0)
    irdl.results(result: %0)
    %1 = irdl.base @device::@scope
    irdl.attributes {"scope" = %1}
  }
  irdl.operation @device_copy {
    %0 = irdl.any
    irdl.operands(operand: %0)
    irdl.results(result: %0)
    %1 = irdl.base @device::@scope
    %2 = irdl.base @device::@scope
    irdl.attributes {"src" = %1, "dst" = %2}
  }
  irdl.operation @region {
    %0 = irdl.any
    irdl.results(outputs: variadic %0)
    %1 = irdl.base @device::@scope
    irdl.attributes {"scope" = %1}
    %2 = irdl.region with size 1
    irdl.regions(body: %2)
  }
  irdl.operation @yield {
    %0 = irdl.any
    irdl.operands(arguments: variadic %0)
  }
  irdl.operation @launch {
    %0 = irdl.any
    irdl.operands(sizes: variadic %0)
    %1 = irdl.any
    %2 = irdl.any
    irdl.results(first: %1, others: variadic %2)
    %3 = irdl.base "#builtin.symbol_ref"
    irdl.attributes {"kernel" = %3}
    %4 = irdl.region with size 1
    irdl.regions(body: %4)
  }
  irdl.operation @in {
    %0 = irdl.any
    irdl.operands(operand: %0)
  }
  irdl.operation @out {
    %0 = irdl.any
    irdl.operands(operand: %0)
  }
  irdl.operation @flush {
    %0 = irdl.base "#builtin.integer"
    irdl.attributes {"slot" = %0}
  }
  irdl.operation @publish {
    %0 = irdl.base "!builtin.memref"
    irdl.operands(view: %0)
  }
  irdl.operation @end_view {
    %0 = irdl.base "!builtin.memref"
    %1 = irdl.base "!builtin.memref"
    irdl.operands(buffer: %0, view: %1)
  }
  irdl.operation @kept {
    %0 = irdl.base "!builtin.memref"
    irdl.results(buffer: %0)
    %1 = irdl.base "#builtin.integer"
    irdl.attributes {"number" = %1}
  }
  irdl.operation @keep {
    %0 = irdl.base "!builtin.memref"
    irdl.operands(buffer: %0)
    %1 = irdl.base "#builtin.integer"
    irdl.attributes {"number" = %1}
  }
}
