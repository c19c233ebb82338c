/* Conversions to bfloat16, rounding to nearest even. LLVM calls these functions on CPUs without bf16 instructions;
 * they are in compiler-rt and in recent libgcc, but not in every process.
 *
 * Not every C compiler has the type. A bfloat16 is returned in the low 16 bits of the register in which a float is
 * returned, of which callers do not look at the others. */
#include "abi.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static float round_to_bf16(uint32_t bits) {
  uint32_t upper = bits >> 16;
  /* A NaN must stay one: set the quiet bit instead of rounding. */
  if ((bits & 0x7fffffff) > 0x7f800000)
    return float_of(upper | 0x40);
  return float_of((bits + 0x7fff + (upper & 1)) >> 16);
}

EXPORT float __truncsfbf2(float value);
EXPORT float __truncdfbf2(double value);

float __truncsfbf2(float value) { return round_to_bf16(bits_of(value)); }

/* double -> float -> bfloat would round twice. Rounding the first step to odd (truncate, then set the last bit if
 * anything was lost) makes the second step exact, since float has more than two bits to spare. */
float __truncdfbf2(double value) {
  float nearest = (float)value;
  uint32_t bits = bits_of(nearest);
  if (isnan(value) || (double)nearest == value)
    return round_to_bf16(bits);
  /* If rounding went away from zero, one step back in magnitude is the truncation. */
  bool away = fabs((double)nearest) > fabs(value);
  return round_to_bf16((bits - away) | 1);
}
