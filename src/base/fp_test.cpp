#include "base/fp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stet {
namespace {

float random_float(std::mt19937& rng) { return float_of_bits(static_cast<uint32_t>(rng())); }

// glibc's fmaf is correctly rounded; ours must agree on random bit patterns and on near cancellations.
TEST(Fma32, EqualsTheLibrary) {
  std::mt19937 rng(1);
  for (int i = 0; i < 2'000'000; ++i) {
    float a = random_float(rng), b = random_float(rng), c = random_float(rng);
    if (i % 3 == 1) c = -a * b;
    if (i % 3 == 2) c = float_of_bits(bits_of_float(-a * b) ^ (rng() & 0xffu));
    const float got = fma32(a, b, c), want = std::fma(a, b, c);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got));
    } else {
      ASSERT_EQ(bits_of_float(got), bits_of_float(want)) << a << " " << b << " " << c;
    }
  }
}

TEST(F16, RoundTripsEveryValue) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float x = f16_to_f32(static_cast<uint16_t>(h));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(x))));
    } else {
      EXPECT_EQ(f32_to_f16(x), h);
    }
  }
}

// The midpoint between two neighbours goes to the even one, and one unit either side of it to the nearer one.
TEST(F16, RoundsToNearestEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float lo = f16_to_f32(static_cast<uint16_t>(h)), hi = f16_to_f32(static_cast<uint16_t>(h + 1));
    const float mid = lo + (hi - lo) / 2;  // exact: f32 has 13 more bits
    EXPECT_EQ(f32_to_f16(mid), (h & 1) ? h + 1 : h);
    EXPECT_EQ(f32_to_f16(std::nextafter(mid, 0.0f)), h);
    EXPECT_EQ(f32_to_f16(std::nextafter(mid, 1e9f)), h + 1);
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(float_of_bits(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(float_of_bits(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(float_of_bits(0x3f808001u)), 0x3f81);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(float_of_bits(0x7f800001u)))));
}

}  // namespace
}  // namespace stet
