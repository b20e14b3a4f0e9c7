#include "base/dmath.h"

#include <cstdint>

#include "base/contract.h"

namespace stet {
namespace {

constexpr double kInfinity = __builtin_inf();
constexpr double kNaN = __builtin_nan("");

constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln 2 in two parts. The first has 40 bits, so its product with an exponent (11 bits) is exact.
constexpr double kLn2High = 0x1.62e42fefa4000p-1;
constexpr double kLn2Low = -0x1.8432a1b0e2634p-43;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// pi / 2 in three parts. The first two have 32 bits, so their products with integers of up to 21 bits are exact.
constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;

uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
double of_bits(uint64_t bits) { return __builtin_bit_cast(double, bits); }

// 2^e for -1022 <= e <= 1023.
double power_of_two(int e) { return of_bits(static_cast<uint64_t>(e + 1023) << 52); }

// Nearest integer, ties to even, for |x| < 2^51.
double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// An unevaluated sum; |low| is at most half a unit of high.
struct Pair {
  double high;
  double low;
};

// a + b without error (Knuth's six operations).
Pair exact_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// a * b without error, each factor split in two halves of 26 bits (Dekker, Veltkamp). REQUIRES: |a|, |b| < 2^500, and a
// product above 2^-900 or zero.
Pair exact_product(double a, double b) {
  const auto split = [](double x) {
    const double scaled = 134217729.0 * x;  // 2^27 + 1
    const double high = scaled - (scaled - x);
    return Pair{high, x - high};
  };
  const double product = a * b;
  const Pair x = split(a), y = split(b);
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

// e^(x + low) for |low| far below 1.
double exp_of_pair(double x, double low) {
  if (x != x) return kNaN;
  if (x > 709.79) return kInfinity;
  if (x < -745.14) return 0.0;
  const double k = nearest(x * kLog2E);
  // |r| <= ln(2) / 2 + a little. k * kLn2High is exact and close to x, so the first difference is exact as well.
  const Pair reduced = exact_sum(x - k * kLn2High, low - k * kLn2Low);
  const double r = reduced.high;
  // Taylor: the first term left out, r^14 / 14!, is below 2^-57.
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  const double y = 1.0 + (r + ((r * r) * p + reduced.low));
  // In two steps: 2^k alone may be out of range where the result is not.
  const int exponent = static_cast<int>(k);
  const int half = exponent / 2;
  return y * power_of_two(half) * power_of_two(exponent - half);
}

// ln x as a pair that is good to about 2^-60 of its size. REQUIRES: 0 < x < infinity.
Pair log_pair(double x) {
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const uint64_t bits = bits_of(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = of_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp+0) {  // sqrt(2): m lies in (sqrt(1/2), sqrt(2)]
    m *= 0.5;
    ++exponent;
  }
  // ln(1 + f) = 2 atanh(s) with s = f / (2 + f); s as a pair, because the term 2 s carries the precision.
  const double f = m - 1.0;
  const Pair d = exact_sum(2.0, f);
  const double s = f / d.high;
  const Pair sd = exact_product(s, d.high);
  const double s_low = ((f - sd.high) - sd.low - s * d.low) / d.high;
  // |s| <= 0.1716: the first term left out is below 2^-64 of the sum.
  const double z = s * s;
  double p = 2.0 / 25.0;
  p = p * z + 2.0 / 23.0;
  p = p * z + 2.0 / 21.0;
  p = p * z + 2.0 / 19.0;
  p = p * z + 2.0 / 17.0;
  p = p * z + 2.0 / 15.0;
  p = p * z + 2.0 / 13.0;
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  // The cubic term is up to 1 % of the sum, so its coefficient and its cube are carried in pairs too.
  const Pair cube = exact_product(s, z);
  const Pair third = exact_product(cube.high, 2.0 / 3.0);
  const double third_low = third.low + cube.high * 0x1.5555555555555p-55 + cube.low * (2.0 / 3.0) +
                           exact_product(s, s).low * s * (2.0 / 3.0) + 2.0 * z * s_low;
  const double tail = 2.0 * s_low + third_low + (z * p) * cube.high;
  const double e = static_cast<double>(exponent);
  const Pair a = exact_sum(e * kLn2High, 2.0 * s);
  const Pair b = exact_sum(a.high, third.high);
  const double low = (b.low + a.low) + (tail + e * kLn2Low);
  return exact_sum(b.high, low);
}

// sin and cos of r.high + r.low, |r| <= pi / 4 and a little.
SinCos sincos_reduced(const Pair& r) {
  const double z = r.high * r.high;
  // Taylor up to r^17 / 17!; the next term is below 2^-63.
  double s = 1.0 / 355687428096000.0;
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  // Up to r^18 / 18!; the next term is below 2^-68.
  double c = -1.0 / 6402373705728000.0;
  c = c * z + 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  // To first order in r.low: sin' = cos, cos' = -sin.
  const double half = 0.5 * z;
  const double one_minus_half = 1.0 - half;
  const double sin = r.high + (r.high * z * s + r.low * one_minus_half);
  const double cos = one_minus_half + (((1.0 - one_minus_half) - half) + (z * z * c - r.high * r.low));
  return {sin, cos};
}

}  // namespace

double exp64(double x) { return exp_of_pair(x, 0.0); }

double log64(double x) {
  if (x == 0.0) return -kInfinity;
  if (!(x > 0.0)) return kNaN;
  if (x == kInfinity) return x;
  return log_pair(x).high;
}

double pow64(double base, double exponent) {
  if (!(base > 0.0 && base < kInfinity) || !(exponent - exponent == 0.0)) return kNaN;
  const Pair log = log_pair(base);
  if (log.high == 0.0 || exponent == 0.0) return 1.0;
  // Beyond 2^80 the result is 0 or infinity for every base other than 1, and below 2^-80 it is 1: the products stay in
  // range.
  const double magnitude = exponent < 0.0 ? -exponent : exponent;
  if (magnitude < 0x1p-80) return 1.0;
  const double y = magnitude > 0x1p80 ? (exponent < 0.0 ? -0x1p80 : 0x1p80) : exponent;
  const Pair product = exact_product(log.high, y);
  return exp_of_pair(product.high, product.low + log.low * y);
}

SinCos sincos64(double x) {
  if (!(x >= -0x1p21 && x <= 0x1p21)) return {kNaN, kNaN};
  const double k = nearest(x * kTwoOverPi);  // |k| < 2^21
  const double first = x - k * kHalfPi1;     // exact: both are multiples of 2^-53, and the difference is below 1
  const Pair rest = exact_sum(first, -(k * kHalfPi2));
  const Pair r = exact_sum(rest.high, rest.low - k * kHalfPi3);
  const SinCos quadrant = sincos_reduced(r);
  switch (static_cast<int>(k) & 3) {
    case 0:
      return quadrant;
    case 1:
      return {quadrant.cos, -quadrant.sin};
    case 2:
      return {-quadrant.sin, -quadrant.cos};
    default:
      return {-quadrant.cos, quadrant.sin};
  }
}

}  // namespace stet
