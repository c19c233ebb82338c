; Conversions to bfloat16, rounding to nearest even. LLVM calls these functions on CPUs without bf16
; instructions; they are in compiler-rt and in recent libgcc, but not in every process.

define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %result = call bfloat @devscope.round_to_bf16(i32 %bits)
  ret bfloat %result
}

; double -> float -> bfloat would round twice. Rounding the first step to odd (truncate, then set the last
; bit if anything was lost) makes the second step exact, since float has more than two bits to spare.
define bfloat @__truncdfbf2(double %x) {
entry:
  %nan = fcmp uno double %x, %x
  %nearest = fptrunc double %x to float
  %bits = bitcast float %nearest to i32
  %back = fpext float %nearest to double
  %exact = fcmp oeq double %back, %x
  %keep = or i1 %exact, %nan
  br i1 %keep, label %round, label %odd

odd:
  ; If rounding went away from zero, one step back in magnitude is the truncation.
  %magnitude = call double @llvm.fabs.f64(double %x)
  %rounded = call double @llvm.fabs.f64(double %back)
  %away = fcmp ogt double %rounded, %magnitude
  %step = zext i1 %away to i32
  %truncated = sub i32 %bits, %step
  %sticky = or i32 %truncated, 1
  br label %round

round:
  %value = phi i32 [ %bits, %entry ], [ %sticky, %odd ]
  %result = call bfloat @devscope.round_to_bf16(i32 %value)
  ret bfloat %result
}

define internal bfloat @devscope.round_to_bf16(i32 %bits) {
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %bias = add i32 %odd, 32767
  %rounded = add i32 %bits, %bias
  %finite = lshr i32 %rounded, 16
  ; A NaN must stay one: set the quiet bit instead of rounding.
  %magnitude = and i32 %bits, 2147483647
  %nan = icmp ugt i32 %magnitude, 2139095040
  %quiet = or i32 %upper, 64
  %result = select i1 %nan, i32 %quiet, i32 %finite
  %short = trunc i32 %result to i16
  %bf16 = bitcast i16 %short to bfloat
  ret bfloat %bf16
}

declare double @llvm.fabs.f64(double)
