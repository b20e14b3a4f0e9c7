// Elementary functions in double precision for tables that are part of the numerics contract (RoPE): the same bits from
// every compiler and on every machine, because they are made of additions, multiplications and divisions in a fixed
// order, without libm and without fused multiply-add. Not for inner loops.
#pragma once

namespace stet {

// e^x. Error below 1 unit in the last place; 0 below about -745.13, infinity above about 709.78.
double exp64(double x);

// Natural logarithm. Error below 1 unit in the last place; -infinity at 0, NaN below.
double log64(double x);

// base^exponent for 0 < base < infinity and finite exponents; NaN otherwise. Error below 1 unit in the last place where
// the result is a normal number: the logarithm is carried in two doubles.
double pow64(double base, double exponent);

struct SinCos {
  double sin;
  double cos;
};

// Sine and cosine for |x| <= 2^21, each with an absolute error below 2^-53; NaN outside. The limit is what the
// exact argument reduction covers, and well above any position times the highest RoPE frequency (1).
SinCos sincos64(double x);

}  // namespace stet
