#include "base/dmath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/hash.h"

namespace stet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double uniform(std::mt19937_64& rng, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(rng);
}

// The error in units of the last place of the exact result, which long double (64 bits) gives 2^11 times finer.
double units(double got, long double want) {
  const double nearest = static_cast<double>(want);
  const double unit = std::nextafter(std::fabs(nearest), kInfinity) - std::fabs(nearest);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / static_cast<long double>(unit));
}

// exp and pow: half a unit for the last addition, 1 + (r + r^2 p); before it two roundings of at most 2^-55 (the sum in
// brackets) and 2^-57 (r^2 p), which are 3/8 of the unit 2^-53 of results below 1. log is rounded once, from a pair.
constexpr double kExpUnits = 1.0;
constexpr double kLogUnits = 0.5 + 0x1p-6;
// sin and cos are below 1: half a unit is 2^-54, and the terms that are rounded before the last addition are below 1/4
// and 1/2.
constexpr double kSinCosError = 0x1p-53;

TEST(DoubleMath, Exp) {
  std::mt19937_64 rng(1);
  double worst = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = i % 2 == 0 ? uniform(rng, -708, 709) : uniform(rng, -1, 1);
    worst = std::max(worst, units(exp64(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, kExpUnits);
  RecordProperty("worst_units", std::to_string(worst));
  EXPECT_EQ(exp64(0), 1);
  EXPECT_EQ(exp64(710), kInfinity);
  EXPECT_EQ(exp64(kInfinity), kInfinity);
  EXPECT_EQ(exp64(-746), 0);
  EXPECT_EQ(exp64(-kInfinity), 0);
  EXPECT_NEAR(exp64(-745), 0x1p-1074, 0x1p-1074);
  EXPECT_TRUE(std::isfinite(exp64(709.78)));
  EXPECT_TRUE(std::isnan(exp64(NAN)));
}

TEST(DoubleMath, Log) {
  std::mt19937_64 rng(2);
  double worst = 0;
  for (int i = 0; i < 100'000; ++i) {
    double x = 0;
    if (i % 3 == 0) x = std::ldexp(uniform(rng, 1, 2), static_cast<int>(rng() % 2046) - 1022);
    if (i % 3 == 1) x = uniform(rng, 0.5, 2);
    if (i % 3 == 2) x = 1 + uniform(rng, -1e-6, 1e-6);
    worst = std::max(worst, units(log64(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, kLogUnits);
  RecordProperty("worst_units", std::to_string(worst));
  EXPECT_EQ(log64(1), 0);
  EXPECT_LT(units(log64(0x1p-1074), std::log(0x1p-1074L)), kLogUnits);
  EXPECT_LT(units(log64(0x1.fffffffffffffp1023), std::log(0x1.fffffffffffffp1023L)), kLogUnits);
  EXPECT_EQ(log64(0), -kInfinity);
  EXPECT_EQ(log64(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log64(-1)));
  EXPECT_TRUE(std::isnan(log64(NAN)));
}

TEST(DoubleMath, Pow) {
  std::mt19937_64 rng(3);
  double worst = 0;
  for (int i = 0; i < 100'000; ++i) {
    // What RoPE asks for, and the whole range.
    const double base = i % 2 == 0 ? uniform(rng, 1e3, 1e8) : std::exp(uniform(rng, -300, 300));
    const double exponent = i % 2 == 0 ? uniform(rng, -1, 0) : uniform(rng, -2, 2);
    const long double want = std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    worst = std::max(worst, units(pow64(base, exponent), want));
  }
  EXPECT_LT(worst, kExpUnits);
  RecordProperty("worst_units", std::to_string(worst));
  EXPECT_EQ(pow64(1, 12345.678), 1);
  EXPECT_EQ(pow64(3, 0), 1);
  EXPECT_EQ(pow64(2, 0x1p90), kInfinity);
  EXPECT_EQ(pow64(2, -0x1p1000), 0);
  EXPECT_EQ(pow64(0.5, 0x1p1000), 0);
  EXPECT_EQ(pow64(10000, 0x1p-90), 1);
  for (double base : {0.0, -2.0, kInfinity, static_cast<double>(NAN)}) EXPECT_TRUE(std::isnan(pow64(base, 2))) << base;
  for (double exponent : {kInfinity, -kInfinity, static_cast<double>(NAN)}) EXPECT_TRUE(std::isnan(pow64(2, exponent)));
}

TEST(DoubleMath, SinCos) {
  std::mt19937_64 rng(4);
  double worst = 0;
  const auto check = [&worst](double x) {
    const SinCos got = sincos64(x);
    const auto exact = static_cast<long double>(x);
    worst = std::max(worst, static_cast<double>(std::fabs(got.sin - std::sin(exact))));
    worst = std::max(worst, static_cast<double>(std::fabs(got.cos - std::cos(exact))));
  };
  for (int i = 0; i < 100'000; ++i) check(uniform(rng, -0x1p21, 0x1p21));
  for (int i = 0; i < 100'000; ++i) check(uniform(rng, -4, 4));
  for (int i = -50'000; i < 50'000; ++i) check(i * 1.5707963267948966);  // next to the multiples of pi / 2
  for (int i = 0; i <= 0x1p21; i += 41) check(i);                        // positions at frequency 1
  for (double x : {0x1p21, -0x1p21, 0.0, 0x1p-1074, 0x1p-30}) check(x);
  EXPECT_LT(worst, kSinCosError);
  RecordProperty("worst_error", std::to_string(worst * 0x1p53) + " * 2^-53");
  EXPECT_EQ(sincos64(0).cos, 1);
  // sin is odd and cos even to the bit: the reduction is symmetric.
  for (int i = 0; i < 1000; ++i) {
    const double x = uniform(rng, 0, 0x1p21);
    EXPECT_EQ(sincos64(-x).sin, -sincos64(x).sin);
    EXPECT_EQ(sincos64(-x).cos, sincos64(x).cos);
  }
  for (double x : {0x1.0000000000001p21, -3e6, kInfinity, static_cast<double>(NAN)}) {
    EXPECT_TRUE(std::isnan(sincos64(x).sin)) << x;
    EXPECT_TRUE(std::isnan(sincos64(x).cos)) << x;
  }
}

// Relative error near the zeros of sin, where an absolute bound would not notice a reduction that lost the tail of pi.
TEST(DoubleMath, SinIsRightNextToItsZeros) {
  // k times a part of 53 bits is exact in the 64 of a long double.
  const long double pi_high = 0x1.921fb54442d18p+1L, pi_low = 0x1.1a62633145c06e0ep-53L;
  for (int k = 1; k < 2048; ++k) {
    const double x = k * 3.141592653589793;
    const long double distance = (static_cast<long double>(x) - k * pi_high) - k * pi_low;
    const long double want = (k % 2 == 0 ? 1 : -1) * std::sin(distance);
    EXPECT_LT(std::fabs(static_cast<double>((sincos64(x).sin - want) / want)), 0x1p-50) << k;
  }
}

// The bits are part of the numerics contract: every compiler and optimisation level must give these.
TEST(DoubleMath, GoldenBits) {
  std::vector<double> values;
  for (int i = -2000; i <= 2000; ++i) {
    const double x = i * 0.3517;
    values.push_back(exp64(x));
    values.push_back(log64(exp64(x * 0.5)));
    values.push_back(sincos64(x * 2900.0).sin);
    values.push_back(sincos64(x * 2900.0).cos);
    values.push_back(pow64(10000.0 + i, x / 900.0));
  }
  for (double theta : {1e4, 1e5, 5e5, 1e6, 1e7})
    for (int i = 0; i < 64; ++i) {
      const double frequency = pow64(theta, -2.0 * i / 128.0);
      values.push_back(frequency);
      for (int position : {1, 2, 100, 8191, 131071, 2097151}) {
        values.push_back(sincos64(position * frequency).sin);
        values.push_back(sincos64(position * frequency).cos);
      }
    }
  EXPECT_EQ(xxh3(values.data(), values.size() * sizeof(double)), 0xa6c0c3363d9bb9eu);
}

}  // namespace
}  // namespace stet
