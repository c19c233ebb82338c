func.func @f(%a: f32, %b: vector<4xf16>, %i: i64, %c: i1) -> f32 {
  %0 = arith.addf %a, %a fastmath<nnan,contract> : f32
  %1 = arith.mulf %0, %a fastmath<fast> : f32
  %2 = arith.addi %i, %i overflow<nsw, nuw> : i64
  %3 = arith.extf %b fastmath<ninf> : vector<4xf16> to vector<4xf32>
  %4 = arith.cmpf ueq, %a, %1 fastmath<nnan> : f32
  %5 = math.exp %1 fastmath<afn> : f32
  %6 = arith.truncf %5 to_nearest_even : f32 to bf16
  %7 = arith.select %4, %0, %1 : f32
  %8 = arith.extui %c {nonNeg} : i1 to i8
  %9 = arith.cmpi sge, %i, %2 : i64
  return %7 : f32
}
