// Operations of `complex` for which upstream's expansion (convert-complex-to-standard) overflows, cancels or loses
// infinities, in operations of `arith` and `math`, or in others of `complex` that are expanded next. One function per
// operation, without control flow. T is the element type, the other parameters are numbers of that type,
// defined in complex_functions.py.

// Of `arith`, on complex numbers.
func.func @select(%0: i1, %1: complex<$T>, %2: complex<$T>) -> complex<$T> {
  %yes_re = complex.re %1 : complex<$T>
  %yes_im = complex.im %1 : complex<$T>
  %no_re = complex.re %2 : complex<$T>
  %no_im = complex.im %2 : complex<$T>
  %re = arith.select %0, %yes_re, %no_re : $T
  %im = arith.select %0, %yes_im, %no_im : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// Larger part times the length of (1, smaller / larger): neither overflows nor underflows before the result does.
func.func @abs(%0: complex<$T>) -> $T {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %inf = arith.constant $inf : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %x_larger = arith.cmpf ogt, %a, %b : $T
  %large = arith.select %x_larger, %a, %b : $T
  %small = arith.select %x_larger, %b, %a : $T
  %ratio = arith.divf %small, %large : $T
  %square = math.fma %ratio, %ratio, %one : $T
  %length = math.sqrt %square : $T
  %scaled = arith.mulf %large, %length : $T
  %is_zero = arith.cmpf oeq, %large, %zero : $T
  %value = arith.select %is_zero, %small, %scaled : $T
  %x_inf = arith.cmpf oeq, %a, %inf : $T
  %y_inf = arith.cmpf oeq, %b, %inf : $T
  %is_inf = arith.ori %x_inf, %y_inf : i1
  %result = arith.select %is_inf, %inf, %value : $T
  return %result : $T
}

// Upstream divides by the larger part first, but adds to it before; very large and very small numbers are scaled.
func.func @div(%0: complex<$T>, %1: complex<$T>) -> complex<$T> {
  %one = arith.constant 1.0 : $T
  %quarter = arith.constant 0.25 : $T
  %four = arith.constant 4.0 : $T
  %huge = arith.constant $huge : $T
  %tiny = arith.constant $tiny : $T
  %up = arith.constant $div_up : $T
  %down = arith.constant $div_down : $T
  %re_n = complex.re %0 : complex<$T>
  %im_n = complex.im %0 : complex<$T>
  %x_n = math.absf %re_n : $T
  %y_n = math.absf %im_n : $T
  %x_larger_n = arith.cmpf ogt, %x_n, %y_n : $T
  %large_n = arith.select %x_larger_n, %x_n, %y_n : $T
  %is_huge_n = arith.cmpf ogt, %large_n, %huge : $T
  %is_tiny_n = arith.cmpf olt, %large_n, %tiny : $T
  %not_huge_n = arith.select %is_tiny_n, %up, %one : $T
  %scale_n = arith.select %is_huge_n, %quarter, %not_huge_n : $T
  %scaled_re_n = arith.mulf %re_n, %scale_n : $T
  %scaled_im_n = arith.mulf %im_n, %scale_n : $T
  %scaled_n = complex.create %scaled_re_n, %scaled_im_n : complex<$T>
  %re_d = complex.re %1 : complex<$T>
  %im_d = complex.im %1 : complex<$T>
  %x_d = math.absf %re_d : $T
  %y_d = math.absf %im_d : $T
  %x_larger_d = arith.cmpf ogt, %x_d, %y_d : $T
  %large_d = arith.select %x_larger_d, %x_d, %y_d : $T
  %is_huge_d = arith.cmpf ogt, %large_d, %huge : $T
  %is_tiny_d = arith.cmpf olt, %large_d, %tiny : $T
  %not_huge_d = arith.select %is_tiny_d, %up, %one : $T
  %scale_d = arith.select %is_huge_d, %quarter, %not_huge_d : $T
  %scaled_re_d = arith.mulf %re_d, %scale_d : $T
  %scaled_im_d = arith.mulf %im_d, %scale_d : $T
  %scaled_d = complex.create %scaled_re_d, %scaled_im_d : complex<$T>
  %quotient = complex.div %scaled_n, %scaled_d {devscope.scaled} : complex<$T>
  %back_tiny = arith.select %is_tiny_n, %down, %one : $T
  %back_n = arith.select %is_huge_n, %four, %back_tiny : $T
  %back = arith.mulf %back_n, %scale_d : $T
  %quotient_re = complex.re %quotient : complex<$T>
  %quotient_im = complex.im %quotient : complex<$T>
  %re = arith.mulf %quotient_re, %back : $T
  %im = arith.mulf %quotient_im, %back : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// Of an infinite number, the part that is infinite counts as 1 and one that is not as 0.
func.func @sign(%0: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %inf = arith.constant $inf : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %x_inf = arith.cmpf oeq, %a, %inf : $T
  %y_inf = arith.cmpf oeq, %b, %inf : $T
  %is_inf = arith.ori %x_inf, %y_inf : i1
  %x_part = arith.select %x_inf, %one, %zero : $T
  %y_part = arith.select %y_inf, %one, %zero : $T
  %x_size = arith.select %is_inf, %x_part, %a : $T
  %y_size = arith.select %is_inf, %y_part, %b : $T
  %x_larger = arith.cmpf ogt, %x_size, %y_size : $T
  %large = arith.select %x_larger, %x_size, %y_size : $T
  %is_zero = arith.cmpf oeq, %large, %zero : $T
  %unit = arith.select %is_zero, %one, %large : $T
  %x_1 = arith.divf %x_size, %unit : $T
  %y_1 = arith.divf %y_size, %unit : $T
  %scaled = complex.create %x_1, %y_1 : complex<$T>
  %length = complex.abs %scaled : complex<$T>
  %length_1 = arith.select %is_zero, %one, %length : $T
  %x_length = arith.divf %x_1, %length_1 : $T
  %y_length = arith.divf %y_1, %length_1 : $T
  %re = math.copysign %x_length, %x : $T
  %im = math.copysign %y_length, %y : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// Beyond $exp_limit the exponential is multiplied in two steps: the product may be finite where it is not.
func.func @exp(%0: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %half = arith.constant 0.5 : $T
  %one = arith.constant 1.0 : $T
  %inf = arith.constant $inf : $T
  %limit = arith.constant $exp_limit : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %cosine = math.cos %y : $T
  %sine = math.sin %y : $T
  %y_large = math.absf %y : $T
  %y_finite = arith.cmpf olt, %y_large, %inf : $T
  %x_large = math.absf %x : $T
  %x_inf = arith.cmpf oeq, %x_large, %inf : $T
  %x_negative = arith.cmpf olt, %x, %zero : $T
  // exp(-inf + i y) is 0, exp(inf + i y) infinite, whatever y is.
  %re_1 = arith.select %x_inf, %one, %cosine : $T
  %re_y = arith.select %y_finite, %cosine, %re_1 : $T
  %vanishes = arith.andi %x_inf, %x_negative : i1
  %im_0 = arith.select %vanishes, %zero, %sine : $T
  %im_y = arith.select %y_finite, %sine, %im_0 : $T
  %is_large = arith.cmpf ogt, %x, %limit : $T
  %x_half = arith.mulf %x, %half : $T
  %x_part = arith.select %is_large, %x_half, %x : $T
  %power = math.exp %x_part : $T
  %again = arith.select %is_large, %power, %one : $T
  %re_part = arith.mulf %power, %re_y : $T
  %im_part = arith.mulf %power, %im_y : $T
  %re = arith.mulf %re_part, %again : $T
  %im_any = arith.mulf %im_part, %again : $T
  %is_real = arith.cmpf oeq, %y, %zero : $T
  %im = arith.select %is_real, %y, %im_any : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

func.func @expm1(%0: complex<$T>) -> complex<$T> {
  %half = arith.constant 0.5 : $T
  %two = arith.constant -2.0 : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %y_half = arith.mulf %y, %half : $T
  %sine_half = math.sin %y_half : $T
  %square = arith.mulf %sine_half, %sine_half : $T
  %cosine_1 = arith.mulf %square, %two : $T
  %growth = math.expm1 %x : $T
  %cosine = math.cos %y : $T
  %re = math.fma %growth, %cosine, %cosine_1 : $T
  %power = complex.exp %0 : complex<$T>
  %im = complex.im %power : complex<$T>
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// Near the unit circle log1p(x^2 + y^2 - 1) / 2, whose argument is computed in twice the precision.
func.func @log(%0: complex<$T>) -> complex<$T> {
  %half = arith.constant 0.5 : $T
  %one = arith.constant 1.0 : $T
  %inf = arith.constant $inf : $T
  %near_low = arith.constant 0.7 : $T
  %near_high = arith.constant 1.5 : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %x_larger = arith.cmpf ogt, %a, %b : $T
  %large = arith.select %x_larger, %a, %b : $T
  %small = arith.select %x_larger, %b, %a : $T
  %p = arith.mulf %large, %large : $T
  %p_negated = arith.negf %p : $T
  %p_rest = math.fma %large, %large, %p_negated : $T
  %q = arith.mulf %small, %small : $T
  %q_negated = arith.negf %q : $T
  %q_rest = math.fma %small, %small, %q_negated : $T
  %p_1 = arith.subf %p, %one : $T
  // The sum of p - 1 and q, and its rounding error (Knuth's TwoSum).
  %sum = arith.addf %p_1, %q : $T
  %q_part = arith.subf %sum, %p_1 : $T
  %p_part = arith.subf %sum, %q_part : $T
  %p_error = arith.subf %p_1, %p_part : $T
  %q_error = arith.subf %q, %q_part : $T
  %sum_error = arith.addf %p_error, %q_error : $T
  %rest = arith.addf %p_rest, %q_rest : $T
  %error = arith.addf %rest, %sum_error : $T
  %excess = arith.addf %sum, %error : $T
  %near_log = math.log1p %excess : $T
  %equal = arith.cmpf oeq, %small, %large : $T
  %quotient = arith.divf %small, %large : $T
  %ratio = arith.select %equal, %one, %quotient : $T
  %ratio_square = arith.mulf %ratio, %ratio : $T
  %slant_log = math.log1p %ratio_square : $T
  %large_log = math.log %large : $T
  %far = math.fma %slant_log, %half, %large_log : $T
  %near = arith.mulf %near_log, %half : $T
  %not_below = arith.cmpf oge, %large, %near_low : $T
  %not_above = arith.cmpf ole, %large, %near_high : $T
  %is_near = arith.andi %not_below, %not_above : i1
  %finite = arith.select %is_near, %near, %far : $T
  %x_inf = arith.cmpf oeq, %a, %inf : $T
  %y_inf = arith.cmpf oeq, %b, %inf : $T
  %is_inf = arith.ori %x_inf, %y_inf : i1
  %re = arith.select %is_inf, %inf, %finite : $T
  %im = math.atan2 %y, %x : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

func.func @log1p(%0: complex<$T>) -> complex<$T> {
  %half = arith.constant 0.5 : $T
  %one = arith.constant 1.0 : $T
  %two = arith.constant 2.0 : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %x_1 = arith.addf %x, %one : $T
  %z_1 = complex.create %x_1, %y : complex<$T>
  %far = complex.log %z_1 : complex<$T>
  %far_re = complex.re %far : complex<$T>
  %im = complex.im %far : complex<$T>
  %x_2 = arith.addf %x, %two : $T
  %y_square = arith.mulf %y, %y : $T
  %excess = math.fma %x, %x_2, %y_square : $T
  %near_log = math.log1p %excess : $T
  %near = arith.mulf %near_log, %half : $T
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %x_small = arith.cmpf olt, %a, %half : $T
  %y_small = arith.cmpf olt, %b, %half : $T
  %is_near = arith.andi %x_small, %y_small : i1
  %re = arith.select %is_near, %near, %far_re : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// t = sqrt((|x| + |z|) / 2) and y / 2t, in an order that depends on the sign of x; very large and very small numbers
// are scaled by a square first.
func.func @sqrt(%0: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %half = arith.constant 0.5 : $T
  %one = arith.constant 1.0 : $T
  %inf = arith.constant $inf : $T
  %huge = arith.constant $huge : $T
  %tiny = arith.constant $tiny : $T
  %down = arith.constant 0.0625 : $T
  %down_back = arith.constant 4.0 : $T
  %up = arith.constant $up : $T
  %up_back = arith.constant $up_back : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %x_larger = arith.cmpf ogt, %a, %b : $T
  %large = arith.select %x_larger, %a, %b : $T
  %is_huge = arith.cmpf ogt, %large, %huge : $T
  %is_tiny = arith.cmpf olt, %large, %tiny : $T
  %factor_up = arith.select %is_tiny, %up, %one : $T
  %factor = arith.select %is_huge, %down, %factor_up : $T
  %back_up = arith.select %is_tiny, %up_back, %one : $T
  %back = arith.select %is_huge, %down_back, %back_up : $T
  %x_scaled = arith.mulf %a, %factor : $T
  %y_scaled = arith.mulf %b, %factor : $T
  %scaled = complex.create %x_scaled, %y_scaled : complex<$T>
  %length = complex.abs %scaled : complex<$T>
  %sum = arith.addf %x_scaled, %length : $T
  %mean = arith.mulf %sum, %half : $T
  %root = math.sqrt %mean : $T
  %double = arith.addf %root, %root : $T
  %quotient = arith.divf %y_scaled, %double : $T
  %is_zero = arith.cmpf oeq, %root, %zero : $T
  %other = arith.select %is_zero, %y_scaled, %quotient : $T
  %t = arith.mulf %root, %back : $T
  %u = arith.mulf %other, %back : $T
  %left = arith.cmpf olt, %x, %zero : $T
  %re_any = arith.select %left, %u, %t : $T
  %im_any = arith.select %left, %t, %u : $T
  %y_inf = arith.cmpf oeq, %b, %inf : $T
  %re = arith.select %y_inf, %inf, %re_any : $T
  %im_length = arith.select %y_inf, %inf, %im_any : $T
  %im = math.copysign %im_length, %y : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

func.func @rsqrt(%0: complex<$T>) -> complex<$T> {
  %one = complex.constant [1.0 : $T, 0.0 : $T] : complex<$T>
  %root = complex.sqrt %0 : complex<$T>
  %result = complex.div %one, %root : complex<$T>
  return %result : complex<$T>
}

// (sin x cosh y, cos x sinh y); beyond $exp_limit both hyperbolic functions are exp(|y|) / 2, multiplied in two steps.
func.func @sin(%0: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %half = arith.constant 0.5 : $T
  %inf = arith.constant $inf : $T
  %limit = arith.constant $exp_limit : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %sine = math.sin %x : $T
  %cosine = math.cos %x : $T
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %is_large = arith.cmpf ogt, %b, %limit : $T
  %b_half = arith.mulf %b, %half : $T
  %power = math.exp %b_half : $T
  %power_half = arith.mulf %power, %half : $T
  %cosh = math.cosh %y : $T
  %sinh = math.sinh %y : $T
  %re_small = arith.mulf %sine, %cosh : $T
  %im_small = arith.mulf %cosine, %sinh : $T
  %re_part = arith.mulf %sine, %power_half : $T
  %re_large = arith.mulf %re_part, %power : $T
  %im_part = arith.mulf %cosine, %power_half : $T
  %im_up = arith.mulf %im_part, %power : $T
  %im_down = arith.negf %im_up : $T
  %below = arith.cmpf olt, %y, %zero : $T
  %im_large = arith.select %below, %im_down, %im_up : $T
  %re_any = arith.select %is_large, %re_large, %re_small : $T
  %im_any = arith.select %is_large, %im_large, %im_small : $T
  // Zeros stay, and infinite y make infinite sines, whatever the other part is.
  %x_zero = arith.cmpf oeq, %x, %zero : $T
  %re = arith.select %x_zero, %x, %re_any : $T
  %y_zero = arith.cmpf oeq, %y, %zero : $T
  %turned = arith.cmpf olt, %cosine, %zero : $T
  %y_negated = arith.negf %y : $T
  %im_zero = arith.select %turned, %y_negated, %y : $T
  %im_other = arith.select %y_zero, %im_zero, %im_any : $T
  %x_finite = arith.cmpf olt, %a, %inf : $T
  %im_inf = arith.select %x_finite, %im_other, %inf : $T
  %y_inf = arith.cmpf oeq, %b, %inf : $T
  %im = arith.select %y_inf, %im_inf, %im_other : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

func.func @cos(%0: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %half = arith.constant 0.5 : $T
  %one = arith.constant 1.0 : $T
  %inf = arith.constant $inf : $T
  %limit = arith.constant $exp_limit : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %sine_up = math.sin %x : $T
  %sine = arith.negf %sine_up : $T
  %cosine = math.cos %x : $T
  %a = math.absf %x : $T
  %b = math.absf %y : $T
  %is_large = arith.cmpf ogt, %b, %limit : $T
  %b_half = arith.mulf %b, %half : $T
  %power = math.exp %b_half : $T
  %power_half = arith.mulf %power, %half : $T
  %cosh = math.cosh %y : $T
  %sinh = math.sinh %y : $T
  %re_small = arith.mulf %cosine, %cosh : $T
  %im_small = arith.mulf %sine, %sinh : $T
  %re_part = arith.mulf %cosine, %power_half : $T
  %re_large = arith.mulf %re_part, %power : $T
  %im_part = arith.mulf %sine, %power_half : $T
  %im_up = arith.mulf %im_part, %power : $T
  %direction = math.copysign %one, %y : $T
  %im_large = arith.mulf %im_up, %direction : $T
  %re_any = arith.select %is_large, %re_large, %re_small : $T
  %im_any = arith.select %is_large, %im_large, %im_small : $T
  %x_finite = arith.cmpf olt, %a, %inf : $T
  %re_inf = arith.select %x_finite, %re_any, %inf : $T
  %y_inf = arith.cmpf oeq, %b, %inf : $T
  %re = arith.select %y_inf, %re_inf, %re_any : $T
  %x_zero = arith.cmpf oeq, %x, %zero : $T
  %y_zero = arith.cmpf oeq, %y, %zero : $T
  %is_real = arith.ori %x_zero, %y_zero : i1
  %x_direction = math.copysign %one, %sine : $T
  %signed = arith.mulf %x_direction, %direction : $T
  %im_zero = arith.mulf %signed, %zero : $T
  %im = arith.select %is_real, %im_zero, %im_any : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// (sinh x cosh x, sin y cos y) / (sinh^2 x + cos^2 y); beyond $tanh_limit the real part is 1 in this precision.
func.func @tanh(%0: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %minus_two = arith.constant -2.0 : $T
  %four = arith.constant 4.0 : $T
  %inf = arith.constant $inf : $T
  %limit = arith.constant $tanh_limit : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %a = math.absf %x : $T
  %is_large = arith.cmpf ogt, %a, %limit : $T
  %x_small = arith.select %is_large, %one, %x : $T
  %sine = math.sin %y : $T
  %cosine = math.cos %y : $T
  %sinh = math.sinh %x_small : $T
  %cosh = math.cosh %x_small : $T
  %sinh_square = arith.mulf %sinh, %sinh : $T
  %norm = math.fma %cosine, %cosine, %sinh_square : $T
  %re_above = arith.mulf %sinh, %cosh : $T
  %im_above = arith.mulf %sine, %cosine : $T
  %re_small = arith.divf %re_above, %norm : $T
  %im_small = arith.divf %im_above, %norm : $T
  %re_large = math.copysign %one, %x : $T
  %exponent = arith.mulf %a, %minus_two : $T
  %power = math.exp %exponent : $T
  %power_4 = arith.mulf %power, %four : $T
  %im_large = arith.mulf %im_above, %power_4 : $T
  %x_inf = arith.cmpf oeq, %a, %inf : $T
  %im_0 = math.copysign %zero, %im_above : $T
  %im_far = arith.select %x_inf, %im_0, %im_large : $T
  %nothing = arith.mulf %im_above, %zero : $T
  %re_finite = arith.addf %re_large, %nothing : $T
  %re_far = arith.select %x_inf, %re_large, %re_finite : $T
  %re_any = arith.select %is_large, %re_far, %re_small : $T
  %x_zero = arith.cmpf oeq, %x, %zero : $T
  %re = arith.select %x_zero, %x, %re_any : $T
  %im_any = arith.select %is_large, %im_far, %im_small : $T
  %y_zero = arith.cmpf oeq, %y, %zero : $T
  %im = arith.select %y_zero, %y, %im_any : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// -i tanh(i z)
func.func @tan(%0: complex<$T>) -> complex<$T> {
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %turned_re = arith.negf %y : $T
  %turned = complex.create %turned_re, %x : complex<$T>
  %value = complex.tanh %turned : complex<$T>
  %value_re = complex.re %value : complex<$T>
  %re = complex.im %value : complex<$T>
  %im = arith.negf %value_re : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}

// exp(w log z), but products where w is 1, 2 or 3, quotients where it is -1, -2 or -3, and a power of real numbers
// where both are: few errors, and none where the result is an integer.
func.func @pow(%0: complex<$T>, %1: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %two = arith.constant 2.0 : $T
  %three = arith.constant 3.0 : $T
  %nan = arith.constant $nan : $T
  %x = complex.re %0 : complex<$T>
  %y = complex.im %0 : complex<$T>
  %c = complex.re %1 : complex<$T>
  %d = complex.im %1 : complex<$T>
  %logarithm = complex.log %0 : complex<$T>
  %exponent = complex.mul %1, %logarithm : complex<$T>
  %power = complex.exp %exponent : complex<$T>
  %unit = complex.create %one, %zero : complex<$T>
  %square = complex.mul %0, %0 : complex<$T>
  %cube = complex.mul %square, %0 : complex<$T>
  %real_power = math.powf %x, %c : $T
  %real = complex.create %real_power, %zero : complex<$T>
  %y_zero = arith.cmpf oeq, %y, %zero : $T
  %d_zero = arith.cmpf oeq, %d, %zero : $T
  %x_positive = arith.cmpf ogt, %x, %zero : $T
  %both_real = arith.andi %y_zero, %d_zero : i1
  %is_real = arith.andi %both_real, %x_positive : i1
  %c_size = math.absf %c : $T
  %c_1 = arith.cmpf oeq, %c_size, %one : $T
  %c_2 = arith.cmpf oeq, %c_size, %two : $T
  %c_3 = arith.cmpf oeq, %c_size, %three : $T
  %is_1 = arith.andi %c_1, %d_zero : i1
  %is_2 = arith.andi %c_2, %d_zero : i1
  %is_3 = arith.andi %c_3, %d_zero : i1
  %with_real = arith.select %is_real, %real, %power : complex<$T>
  %as_2 = arith.select %is_2, %square, %cube : complex<$T>
  %as_1 = arith.select %is_1, %0, %as_2 : complex<$T>
  %inverse = complex.div %unit, %as_1 : complex<$T>
  %c_negative = arith.cmpf olt, %c, %zero : $T
  %product = arith.select %c_negative, %inverse, %as_1 : complex<$T>
  %is_1_or_2 = arith.ori %is_1, %is_2 : i1
  %is_product = arith.ori %is_1_or_2, %is_3 : i1
  %with_product = arith.select %is_product, %product, %with_real : complex<$T>
  // A power of 0: 0 where the exponent's real part is positive, 1 where it is 0, undefined for others.
  %x_zero = arith.cmpf oeq, %x, %zero : $T
  %z_zero = arith.andi %x_zero, %y_zero : i1
  %c_positive = arith.cmpf ogt, %c, %zero : $T
  %zero_part = arith.select %c_positive, %zero, %nan : $T
  %of_zero = complex.create %zero_part, %zero_part : complex<$T>
  %with_zero = arith.select %z_zero, %of_zero, %with_product : complex<$T>
  %c_zero = arith.cmpf oeq, %c, %zero : $T
  %w_zero = arith.andi %c_zero, %d_zero : i1
  %result = arith.select %w_zero, %unit, %with_zero : complex<$T>
  return %result : complex<$T>
}

// -i / 2 log1p(2 i y / (x - i y)) of complex y and x, and half a turn more where (x + i y) / sqrt(x^2 + y^2), whose
// logarithm it is by definition, is on the left. Both numbers are scaled by the larger one first.
func.func @atan2(%0: complex<$T>, %1: complex<$T>) -> complex<$T> {
  %zero = arith.constant 0.0 : $T
  %half = arith.constant 0.5 : $T
  %minus_half = arith.constant -0.5 : $T
  %one = arith.constant 1.0 : $T
  %pi = arith.constant $pi : $T
  %i = complex.constant [0.0 : $T, 1.0 : $T] : complex<$T>
  %two = complex.constant [2.0 : $T, 0.0 : $T] : complex<$T>
  %a = complex.abs %1 : complex<$T>
  %b = complex.abs %0 : complex<$T>
  %x_larger = arith.cmpf ogt, %a, %b : $T
  %large = arith.select %x_larger, %a, %b : $T
  %is_zero = arith.cmpf oeq, %large, %zero : $T
  %unit = arith.select %is_zero, %one, %large : $T
  %scale = complex.create %unit, %zero : complex<$T>
  %x_1 = complex.div %1, %scale : complex<$T>
  %y_1 = complex.div %0, %scale : complex<$T>
  %iy = complex.mul %i, %y_1 : complex<$T>
  %above = complex.add %x_1, %iy : complex<$T>
  %below = complex.sub %x_1, %iy : complex<$T>
  %product = complex.mul %above, %below : complex<$T>
  %root = complex.sqrt %product : complex<$T>
  %side = complex.div %above, %root : complex<$T>
  %side_re = complex.re %side : complex<$T>
  %side_im = complex.im %side : complex<$T>
  %left = arith.cmpf olt, %side_re, %zero : $T
  %turn = math.copysign %pi, %side_im : $T
  %more = arith.select %left, %turn, %zero : $T
  %iy_2 = complex.mul %two, %iy : complex<$T>
  %quotient = complex.div %iy_2, %below : complex<$T>
  %logarithm = complex.log1p %quotient : complex<$T>
  %log_re = complex.re %logarithm : complex<$T>
  %log_im = complex.im %logarithm : complex<$T>
  %re_right = arith.mulf %log_im, %half : $T
  %re = arith.addf %re_right, %more : $T
  %im = arith.mulf %log_re, %minus_half : $T
  %result = complex.create %re, %im : complex<$T>
  return %result : complex<$T>
}
