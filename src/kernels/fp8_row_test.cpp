// Rows in fewer bytes: whatever act_quant leaves comes back bit by bit, and nothing else is taken.
#include "kernels/common/fp8_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/fp.h"

namespace stet {
namespace {

constexpr Fp8RowShape kPublished{448, 64};

// All magnitudes of e4m3, by the format's definition.
std::vector<double> e4m3_sizes() {
  std::vector<double> sizes;
  for (int m = 0; m < 8; ++m) sizes.push_back(std::ldexp(m, -9));
  for (int e = -6; e <= 8; ++e)
    for (int m = 8; m < (e == 8 ? 15 : 16); ++m) sizes.push_back(std::ldexp(m, e - 3));
  return sizes;
}

// act_quant of tools/oracle/deepseek_v4/formats.py, by search: the nearest code, ties to the even one.
void act_quant_by_search(float* x, uint32_t n) {
  static const std::vector<double> sizes = e4m3_sizes();
  double largest = 1e-4;
  for (uint32_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  double scale = std::ldexp(1.0, -100);
  while (scale * 448.0 < largest) scale *= 2;
  for (uint32_t i = 0; i < n; ++i) {
    const double size = std::abs(static_cast<double>(x[i])) / scale;
    size_t best = 0;
    for (size_t c = 1; c < sizes.size(); ++c) {
      const double now = std::abs(sizes[c] - size), before = std::abs(sizes[best] - size);
      if (now < before || (now == before && c % 2 == 0)) best = c;
    }
    x[i] = static_cast<float>(std::copysign(sizes[best] * scale, static_cast<double>(x[i])));
  }
}

std::vector<float> published_row(const Fp8RowShape& shape, uint32_t seed, int exponent) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(shape.width());
  for (float& v : x) v = bf16_to_f32(f32_to_bf16(std::ldexp(normal(random), exponent)));
  for (uint32_t g = 0; g < shape.codes; g += 64) act_quant_by_search(x.data() + g, std::min(64u, shape.codes - g));
  return x;
}

void expect_back(const Fp8RowShape& shape, const std::vector<float>& x) {
  std::vector<uint8_t> row(shape.bytes() + 1, 0xaa);
  ASSERT_EQ(encode_fp8_row(shape, x.data(), row.data()), shape.width());
  EXPECT_EQ(row.back(), 0xaa);
  std::vector<float> back(x.size());
  decode_fp8_row(shape, row.data(), back.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(bits_of_float(back[i]), bits_of_float(x[i])) << i;
}

TEST(Fp8Row, HasThePublishedSize) {
  EXPECT_EQ(kPublished.bytes(), 584u);
  EXPECT_EQ(kPublished.groups(), 7u);
  EXPECT_EQ((Fp8RowShape{16, 8}).bytes(), 16u + 16 + 8);
}

TEST(Fp8Row, WhatActQuantLeavesComesBackBitByBit) {
  for (const Fp8RowShape& shape : {kPublished, Fp8RowShape{16, 8}, Fp8RowShape{65, 2}})
    for (int exponent : {-140, -60, -20, -13, -3, 0, 1, 2, 7, 30, 120})
      for (uint32_t seed = 0; seed < 4; ++seed) expect_back(shape, published_row(shape, seed, exponent));
}

// Every finite code under every scale that act_quant can choose, beside the group's largest value and without it.
TEST(Fp8Row, EveryCodeUnderEveryScaleComesBack) {
  const Fp8RowShape shape{64, 0};
  for (int exponent = -22; exponent <= 119; ++exponent)
    for (const double largest : {448.0, 240.0, 224.0}) {
      if (exponent == -22 && largest < 448.0) continue;
      for (const double size : e4m3_sizes()) {
        if (size > largest) continue;
        std::vector<float> x(64, 0.0f);
        x[0] = static_cast<float>(std::ldexp(largest, exponent));
        x[5] = static_cast<float>(std::ldexp(-size, exponent));
        expect_back(shape, x);
      }
    }
}

TEST(Fp8Row, HoldsKnownBytes) {
  const Fp8RowShape shape{3, 2};
  const float x[5] = {448.0f, -1.0f, 0x1p-9f, 1.0f, -0.0f};
  uint8_t row[15];
  ASSERT_EQ(shape.bytes(), sizeof row);
  ASSERT_EQ(encode_fp8_row(shape, x, row), 5u);
  const uint8_t want[15] = {0x7e, 0xb8, 0x01, 0x80, 0x3f, 0x00, 0x80, 127, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 15; ++i) EXPECT_EQ(row[i], want[i]) << i;
}

TEST(Fp8Row, NamesTheFirstElementThatWouldNotComeBack) {
  uint8_t row[584];
  const std::vector<float> right = published_row(kPublished, 3, 0);
  const auto refused = [&](uint32_t at, float value) {
    std::vector<float> x = right;
    x[at] = value;
    return encode_fp8_row(kPublished, x.data(), row) == at;
  };
  for (const uint32_t at : {0u, 63u, 64u, 447u}) {
    EXPECT_TRUE(refused(at, float_of_bits(bits_of_float(0.75f) + 1))) << at;
    EXPECT_TRUE(refused(at, 17.0f / 16)) << "five bits";
    EXPECT_TRUE(refused(at, 0x1p-40f)) << "below the group's smallest step";
    EXPECT_TRUE(refused(at, INFINITY));
  }
  for (const uint32_t at : {448u, 511u}) {
    EXPECT_TRUE(refused(at, float_of_bits(bits_of_float(0.75f) + 1))) << at;
    EXPECT_TRUE(refused(at, 1.0f + 0x1p-8f)) << "nine bits";
    EXPECT_FALSE(refused(at, INFINITY)) << "bf16 has it";
  }
  // Smaller than what the product with the scale can hold.
  std::vector<float> far(512, 0.0f);
  far[0] = 0x1p120f;
  far[1] = 0x1p-120f;
  EXPECT_EQ(encode_fp8_row(kPublished, far.data(), row), 1u);
}

TEST(Fp8Row, NaNStaysOne) {
  std::vector<float> x = published_row(kPublished, 1, 0), back(512);
  x[7] = x[500] = NAN;
  uint8_t row[584];
  ASSERT_EQ(encode_fp8_row(kPublished, x.data(), row), 512u);
  decode_fp8_row(kPublished, row, back.data());
  for (uint32_t i = 0; i < 512; ++i) {
    if (i == 7 || i == 500) {
      EXPECT_TRUE(std::isnan(back[i]));
    } else {
      ASSERT_EQ(bits_of_float(back[i]), bits_of_float(x[i])) << i;
    }
  }
}

}  // namespace
}  // namespace stet
