// RUN: devscope-opt %s --split-input-file -p 'device-move-copies,device-verify' | filecheck %s

// Merged: one copy dominates the other, in the same block or a nested one.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @merged
// CHECK-NEXT:    [[COPY:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    "ml.use"([[COPY]])
// CHECK-NEXT:    "ml.use"([[COPY]])
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        "ml.use"([[COPY]])
// CHECK-NOT:     device_copy
func.func @merged(%x: tensor<4xf32> {device.scope = #host}, %p: i1, %n: index) {
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  %1 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
  scf.for %i = %n to %n step %n {
    scf.if %p {
      %2 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      "ml.use"(%2) {device.scope = #dev} : (tensor<4xf32>) -> ()
    }
  }
  return
}

// Neither branch serves what follows, where the first copy serves the second.
// CHECK-LABEL: func.func @merged_behind_branches
// CHECK:         scf.if
// CHECK-NEXT:      device_copy
// CHECK:         scf.if
// CHECK-NEXT:      device_copy
// CHECK:         [[COPY:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    "ml.use"([[COPY]])
// CHECK-NEXT:    "ml.use"([[COPY]])
func.func @merged_behind_branches(%x: tensor<4xf32> {device.scope = #host}, %p: i1) {
  scf.if %p {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  scf.if %p {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  %1 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
  %2 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%2) {device.scope = #dev} : (tensor<4xf32>) -> ()
  return
}

// -----

// Blocks: a copy serves the blocks that its block dominates, and no others.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @blocks
// CHECK:         cf.cond_br %arg1, ^bb1, ^bb2
// CHECK-NEXT:  ^bb1:
// CHECK-NEXT:    [[LEFT:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    "ml.use"([[LEFT]])
// CHECK-NEXT:    cf.cond_br %arg1, ^bb3, ^bb4
// CHECK-NEXT:  ^bb2:
// CHECK-NEXT:    [[RIGHT:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    "ml.use"([[RIGHT]])
// CHECK-NEXT:    cf.br ^bb4
// CHECK-NEXT:  ^bb3:
// CHECK-NEXT:    "ml.use"([[LEFT]])
// CHECK-NEXT:    cf.br ^bb4
// CHECK-NEXT:  ^bb4:
// CHECK-NEXT:    [[LAST:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    "ml.use"([[LAST]])
func.func @blocks(%x: tensor<4xf32> {device.scope = #host}, %p: i1) {
  cf.cond_br %p, ^a, ^b
^a:
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  cf.cond_br %p, ^c, ^d
^b:
  %1 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
  cf.br ^d
^c:
  %2 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%2) {device.scope = #dev} : (tensor<4xf32>) -> ()
  cf.br ^d
^d:
  %3 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%3) {device.scope = #dev} : (tensor<4xf32>) -> ()
  return
}

// -----

// There and back, over a scope that nobody uses, for nobody.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @folded
// CHECK-NEXT:    [[COPY:%.*]] = device.device_copy %arg0 from #opencl0 to #opencl1
// CHECK-NEXT:    "ml.use"([[COPY]])
// CHECK-NEXT:    "ml.use"(%arg0)
// CHECK-NEXT:    return
func.func @folded(%x: tensor<4xf32> {device.scope = #dev}, %y: tensor<8xf32> {device.scope = #dev}) {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #host, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%1) {device.scope = #dev1} : (tensor<4xf32>) -> ()
  %2 = "device.device_copy"(%0) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%2) {device.scope = #dev} : (tensor<4xf32>) -> ()
  %3 = "device.device_copy"(%y) {src = #dev, dst = #host} : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "device.device_copy"(%3) {src = #host, dst = #dev1} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// Joined: both regions copy the same value, which is copied once in front of the branch.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @joined
// CHECK-NEXT:    [[COPY:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "ml.use"([[COPY]])
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "ml.other"([[COPY]])
// CHECK-NEXT:    }
func.func @joined(%x: tensor<4xf32> {device.scope = #host}, %p: i1) {
  scf.if %p {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  } else {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.other"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  return
}

// Two of three regions do not make all.
// CHECK-LABEL: func.func @not_all
// CHECK-NEXT:    scf.index_switch
// CHECK-NEXT:    case 0 {
// CHECK-NEXT:      device_copy
// CHECK:         case 1 {
// CHECK-NEXT:      scf.yield
// CHECK:         default {
// CHECK-NEXT:      device_copy
func.func @not_all(%x: tensor<4xf32> {device.scope = #host}, %n: index) {
  scf.index_switch %n
  case 0 {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
    scf.yield
  }
  case 1 {
    scf.yield
  }
  default {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
    scf.yield
  }
  return
}

// Joined behind the branch: all regions yield a copy that nothing else uses.
// CHECK-LABEL: func.func @results
// CHECK-NEXT:    [[R:%.*]] = scf.if
// CHECK-NEXT:      [[A:%.*]] = math.tanh %arg0
// CHECK-NEXT:      scf.yield [[A]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      [[B:%.*]] = math.sin %arg0
// CHECK-NEXT:      scf.yield [[B]]
// CHECK-NEXT:    }
// CHECK-NEXT:    [[COPY:%.*]] = device.device_copy [[R]] from #opencl0 to #cpu0
// CHECK-NEXT:    return [[COPY]]
func.func @results(%x: tensor<4xf32> {device.scope = #dev}, %p: i1) -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.if %p -> tensor<4xf32> {
    %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
    %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %0 = math.sin %x {device.scope = #dev} : tensor<4xf32>
    %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// One of them is used in its region, too: a copy behind the branch would be one more.
// CHECK-LABEL: func.func @results_used_inside
// CHECK-COUNT-2: device_copy
// CHECK:           scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @results_used_inside(%x: tensor<4xf32> {device.scope = #dev}, %p: i1)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.if %p -> tensor<4xf32> {
    %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
    %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%1) : (tensor<4xf32>) -> ()
    scf.yield %1 : tensor<4xf32>
  } else {
    %0 = math.sin %x {device.scope = #dev} : tensor<4xf32>
    %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// One region yields what came from where the result goes: the copy back moves into the other one.
// CHECK-LABEL: func.func @results_there_and_back
// CHECK-NEXT:    [[R:%.*]] = scf.if
// CHECK-NEXT:      [[A:%.*]] = device.device_copy %arg0 from #cpu0 to #opencl0
// CHECK-NEXT:      [[B:%.*]] = math.tanh [[A]]
// CHECK-NEXT:      [[C:%.*]] = device.device_copy [[B]] from #opencl0 to #cpu0
// CHECK-NEXT:      scf.yield [[C]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %arg0
// CHECK-NEXT:    }
// CHECK-NEXT:    return [[R]]
func.func @results_there_and_back(%x: tensor<4xf32> {device.scope = #host}, %p: i1)
    -> (tensor<4xf32> {device.scope = #host}) {
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.if %p -> tensor<4xf32> {
    %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  %2 = "device.device_copy"(%r) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The result is copied back on some paths only, which would become all.
// CHECK-LABEL: func.func @results_perhaps_back
// CHECK-NEXT:    [[X:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    [[R:%.*]] = scf.if
// CHECK-NOT:     device_copy
// CHECK:         scf.if
// CHECK-NEXT:      [[C:%.*]] = device.device_copy [[R]] from #opencl0 to #cpu0
func.func @results_perhaps_back(%x: tensor<4xf32> {device.scope = #host}, %p: i1, %q: i1) {
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.if %p -> tensor<4xf32> {
    %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  scf.if %q {
    %2 = "device.device_copy"(%r) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%2) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

// Sunk: into each region that has uses, and on into branches inside, but not into loops.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @sunk
// CHECK-NEXT:    scf.index_switch
// CHECK-NEXT:    case 0 {
// CHECK-NEXT:      [[A:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:      "ml.use"([[A]])
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    case 1 {
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    default {
// CHECK-NEXT:      scf.if %arg1 {
// CHECK-NEXT:        [[B:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          "ml.use"([[B]])
func.func @sunk(%x: tensor<4xf32> {device.scope = #host}, %p: i1, %n: index) {
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  scf.index_switch %n
  case 0 {
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
    scf.yield
  }
  case 1 {
    scf.yield
  }
  default {
    scf.if %p {
      scf.for %i = %n to %n step %n {
        "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
      }
    }
    scf.yield
  }
  return
}

// It stays: every path needs it; there is a use behind the branch; the branch is in a loop; two branches use it.
// CHECK-LABEL: func.func @not_sunk
// CHECK-NEXT:    device_copy
// CHECK-NEXT:    device_copy
// CHECK-NEXT:    device_copy
// CHECK-NEXT:    device_copy
// CHECK-NOT:     device_copy
func.func @not_sunk(%a: tensor<4xf32> {device.scope = #host}, %b: tensor<4xf32> {device.scope = #host},
    %c: tensor<4xf32> {device.scope = #host}, %d: tensor<4xf32> {device.scope = #host}, %p: i1, %n: index) {
  %0 = "device.device_copy"(%a) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%b) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "device.device_copy"(%c) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "device.device_copy"(%d) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  scf.if %p {
    "ml.use"(%0, %1) {device.scope = #dev} : (tensor<4xf32>, tensor<4xf32>) -> ()
    "ml.use"(%3) {device.scope = #dev} : (tensor<4xf32>) -> ()
  } else {
    "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  "ml.use"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
  scf.for %i = %n to %n step %n {
    scf.if %p {
      "ml.use"(%2) {device.scope = #dev} : (tensor<4xf32>) -> ()
    }
  }
  scf.if %p {
    "ml.use"(%3) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  return
}

// -----

// Hoisted: out of all loops that the value is outside of, if every iteration copies it, in both branches, too.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @hoisted
// CHECK-NEXT:    [[COPY:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.while
// CHECK-NEXT:        "ml.use"([[COPY]])
// CHECK:           } do {
// CHECK-NEXT:        "ml.use"([[COPY]])
// CHECK-NEXT:        scf.if
// CHECK-NEXT:          "ml.use"([[COPY]])
// CHECK-NEXT:        } else {
// CHECK-NEXT:          "ml.other"([[COPY]])
func.func @hoisted(%x: tensor<4xf32> {device.scope = #host}, %p: i1, %n: index) {
  scf.for %i = %n to %n step %n {
    scf.while : () -> () {
      %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
      scf.condition(%p)
    } do {
      %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
      scf.if %p {
        %1 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
        "ml.use"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
      } else {
        %1 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
        "ml.other"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
      }
      scf.yield
    }
  }
  return
}

// Under a branch it may never run; a value of the loop is another one in each iteration.
// CHECK-LABEL: func.func @not_hoisted
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        device_copy
// CHECK:           tensor.splat
// CHECK-NEXT:      device_copy
func.func @not_hoisted(%x: tensor<4xf32> {device.scope = #host}, %f: f32, %p: i1, %n: index) {
  scf.for %i = %n to %n step %n {
    scf.if %p {
      %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      "ml.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
    }
    %1 = tensor.splat %f : tensor<4xf32>
    %2 = "device.device_copy"(%1) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%2) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  return
}

// -----

// A region that never yields has nothing that could be joined.
// CHECK-LABEL: func.func @never_yields
// CHECK:         scf.execute_region
// CHECK-NEXT:      ub.unreachable
// CHECK:         device_copy
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @never_yields(%x: tensor<4xf32> {device.scope = #dev})
    -> (tensor<4xf32> {device.scope = #host}, tensor<4xf32> {device.scope = #host}) {
  %0 = scf.execute_region -> tensor<4xf32> {
    ub.unreachable
  }
  %1 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}
