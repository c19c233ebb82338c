// RUN: devscope lower %s --stage host-llvm | filecheck %s

// A loop of which it is not known that it ends must hear of signals: it is no task.
// CHECK-LABEL: define {{.*}} @devscope_function_unknown(
// CHECK-NOT:     @devscope_run_tasks
// CHECK:         ret
func.func @unknown(%x: tensor<100000xindex>, %most: index) -> tensor<100000xindex> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<100000xindex>
  %r = scf.forall (%i) in (100000) shared_outs(%o = %e) -> tensor<100000xindex> {
    %v = tensor.extract %x[%i] : tensor<100000xindex>
    %n = scf.while (%a = %v) : (index) -> index {
      %go = arith.cmpi ult, %a, %most : index
      scf.condition(%go) %a : index
    } do {
    ^bb0(%a: index):
      %more = arith.shli %a, %c1 : index
      scf.yield %more : index
    }
    %one = tensor.from_elements %n : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %one into %o[%i] [1] [1] : tensor<1xindex> into tensor<100000xindex>
    }
  }
  return %r : tensor<100000xindex>
}

// Those of a merge do.
// CHECK-LABEL: define {{.*}} @devscope_function_sorted(
// CHECK-COUNT-4: call void @devscope_run_tasks(
// CHECK:         ret
func.func @sorted(%x: tensor<1000x300xi64>) -> tensor<1000x300xi64> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %less = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<1000x300xi64>) -> tensor<1000x300xi64>
  return %0 : tensor<1000x300xi64>
}
