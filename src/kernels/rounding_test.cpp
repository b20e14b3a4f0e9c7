// Roundings of published checkpoints against their definition in binary64.
#include "kernels/rounding/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/heads/heads.h"

namespace stet {
namespace {

// The nearest of all values of a format, ties to the one whose place in the list is even.
double nearest(const std::vector<double>& values, double x) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    const double a = std::abs(std::abs(x) - values[i]), b = std::abs(std::abs(x) - values[best]);
    if (a < b || (a == b && i % 2 == 0)) best = i;
  }
  return std::copysign(values[best], x);
}

std::vector<double> e4m3_values() {
  std::vector<double> v;
  for (int code = 0; code <= 0x7e; ++code) {
    const int exponent = code >> 3, mantissa = code & 7;
    v.push_back(exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
  }
  return v;
}
const std::vector<double> kE2m1 = {0, .5, 1, 1.5, 2, 3, 4, 6};

// A group of one value and the largest, whose scale is known.
template <typename Round>
void expect_nearest(const std::vector<double>& values, float x, float most, double limit, double floor, Round round) {
  const float in[2] = {x, most};
  float out[2];
  round(in, out);
  const double scale = std::exp2(std::ceil(std::log2(std::max(static_cast<double>(most), floor) / limit)));
  ASSERT_EQ(static_cast<double>(out[0]), nearest(values, static_cast<double>(x) / scale) * scale)
      << x << " of " << most;
}

TEST(Rounding, E4m3IsTheNearestWithTheLeastPowerOfTwo) {
  const std::vector<double> values = e4m3_values();
  const auto round = [](const float* in, float* out) { round_e4m3_ref(in, 2, 128, out); };
  for (const float most : {448.0f, 448.001f, 447.9f, 1.0f, 0.875f, 0.8750001f, 3e-5f, 1e-4f, 1.7e30f})
    for (int i = -3000; i <= 3000; ++i)
      expect_nearest(values, most * static_cast<float>(i) / 3000.0f, most, 448, static_cast<double>(1e-4f), round);
  // Every value, every midpoint and its neighbours, with the scale 1.
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = static_cast<float>((values[i] + values[i + 1]) / 2);
    for (const float x :
         {static_cast<float>(values[i]), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)})
      for (const float sign : {1.0f, -1.0f}) expect_nearest(values, sign * x, 448.0f, 448, 1e-4, round);
  }
}

TEST(Rounding, E2m1TakesTiesToEven) {
  const auto round = [](const float* in, float* out) { round_e2m1_ref(in, 2, out); };
  for (const float x : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 0.2499f, 4.9999f, 5.0001f, 0.0f})
    for (const float sign : {1.0f, -1.0f})
      for (const float scale : {1.0f, 0.25f, 1024.0f})
        expect_nearest(kE2m1, sign * x * scale, 6.0f * scale, 6, 1e-30, round);
  for (const float most : {6.0f, 6.0001f, 1.5f, 1.4f, 3e-30f})
    for (int i = -500; i <= 500; ++i)
      expect_nearest(kE2m1, most * static_cast<float>(i) / 500.0f, most, 6, 1e-300, round);
  const float zeros[2] = {};
  float out[2] = {1, 1};
  round_e2m1_ref(zeros, 2, out);
  EXPECT_EQ(out[0], 0.0f);
}

TEST(Rounding, GroupsHaveTheirOwnScales) {
  std::vector<float> x(300, 1.0f), y(300);
  x[0] = 448.0f;
  x[128] = 3.3f;
  x[299] = 1e-3f;
  round_e4m3_ref(x.data(), 300, 128, y.data());
  EXPECT_EQ(y[0], 448.0f);
  EXPECT_EQ(y[128], 3.25f);
  EXPECT_EQ(y[299], 0x1p-10f) << "of a shorter last group, whose scale is 2^-8";
  round_e4m3_ref(x.data(), 300, 64, y.data());
  EXPECT_EQ(y[100], 1.0f);
}

TEST(Rounding, IsWhatItIsTheSecondTime) {
  std::vector<float> x(128), once(128), twice(128);
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    uint32_t state = seed;
    for (float& v : x) v = static_cast<float>(static_cast<int32_t>(state = state * 1664525u + 1013904223u)) * 0x1p-28f;
    round_e4m3_ref(x.data(), 128, 128, once.data());
    round_e4m3_ref(once.data(), 128, 128, twice.data());
    ASSERT_EQ(once, twice) << seed;
  }
}

TEST(Rounding, WhatIsNotFiniteReachesTheWholeGroup) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(128, 1.0f), y(128);
    x[70] = bad;
    round_e4m3_ref(x.data(), 128, 64, y.data());
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_TRUE(std::isnan(y[64]) && std::isnan(y[127]));
    round_e2m1_ref(x.data(), 128, y.data());
    EXPECT_TRUE(std::isnan(y[64]) && y[63] == 1.0f && y[96] == 1.0f);
    round_bf16(x.data(), 128);
    EXPECT_FALSE(std::isfinite(x[70]));
  }
}

TEST(Rounding, HadamardIsItsOwnInverse) {
  for (const uint32_t n : {1u, 2u, 8u, 64u, 128u}) {
    std::vector<float> x(n), y;
    for (uint32_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 5) - 2.0f;
    y = x;
    hadamard_ref(y.data(), n);
    for (uint32_t row = 0; row < n; ++row) {
      double want = 0;
      for (uint32_t i = 0; i < n; ++i)
        want += (__builtin_popcount(row & i) % 2 == 0 ? 1.0 : -1.0) * static_cast<double>(x[i]);
      ASSERT_NEAR(static_cast<double>(y[row]), want / std::sqrt(n), 1e-6) << n;
    }
    hadamard_ref(y.data(), n);
    for (uint32_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], x[i], 1e-6f);
  }
}

TEST(Rounding, UnitHeadsRoundEveryStep) {
  const float x[4] = {1.0f, 2.015625f, -3.0f, 0.5f};
  float y[4];
  unit_head_bf16_ref(x, 4, 1e-6f, y);
  // 2.015625^2 = 4.0627 is 4.0625 in bf16; the mean of 1, 4.0625, 9 and 0.25 is 3.578125, 1 / sqrt of it 0.52734375.
  EXPECT_EQ(y[0], 0.52734375f);
  EXPECT_EQ(y[1], 1.0625f);
}

}  // namespace
}  // namespace stet
