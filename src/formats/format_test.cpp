#include "formats/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fp.h"
#include "formats/e4m3/e4m3.h"
#include "formats/mxfp4/mxfp4.h"
#include "formats/q6_k/q6_k.h"

namespace stet {
namespace {

std::vector<uint8_t> bytes_of_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<float> floats_of_hex(const std::string& hex) {
  const std::vector<uint8_t> bytes = bytes_of_hex(hex);
  std::vector<float> x(bytes.size() / 4);
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

const FormatTraits& named(std::string_view name) { return traits(format_from_name(name).value()); }

std::vector<float> decoded(const FormatTraits& t, const std::vector<uint8_t>& blocks) {
  std::vector<float> x(blocks.size() / t.block_bytes * t.block_elements);
  t.dequantize(blocks.data(), x.data(), x.size());
  return x;
}

std::vector<uint8_t> encoded(const FormatTraits& t, const std::vector<float>& x) {
  std::vector<uint8_t> blocks(x.size() / t.block_elements * t.block_bytes);
  t.quantize(x.data(), blocks.data(), x.size());
  return blocks;
}

void check_decode(const char* format, const char* blocks, const char* values) {
  const std::vector<float> got = decoded(named(format), bytes_of_hex(blocks));
  const std::vector<float> want = floats_of_hex(values);
  ASSERT_EQ(got.size(), want.size()) << format;
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(bits_of_float(got[i]), bits_of_float(want[i]))
        << format << " element " << i << ": " << got[i] << ", " << want[i];
}

void check_encode(const char* format, const char* values, const char* blocks) {
  EXPECT_EQ(encoded(named(format), floats_of_hex(values)), bytes_of_hex(blocks)) << format;
}

TEST(Formats, EqualTheGoldenVectors) {
#define GOLDEN_DECODE(format, blocks, values) check_decode(format, blocks, values);
#define GOLDEN_ENCODE(format, values, blocks) check_encode(format, values, blocks);
#include "formats/format_golden.inc"
#undef GOLDEN_DECODE
#undef GOLDEN_ENCODE
}

TEST(Formats, AreFoundByNameAndNumber) {
  EXPECT_EQ(all_formats().size(), 9u);
  for (const FormatTraits& t : all_formats()) {
    EXPECT_EQ(&traits(t.format), &t);
    EXPECT_EQ(format_from_ggml(t.ggml_type), t.format == Format::e4m3 ? std::nullopt : std::optional(t.format));
    EXPECT_EQ(format_from_number(t.ggml_type), t.format);
    EXPECT_EQ(format_from_name(t.name), t.format);
  }
  EXPECT_EQ(format_from_name("q4_0"), Format::q4_0);
  EXPECT_EQ(format_from_name("Q6_k"), Format::q6_k);
  EXPECT_EQ(format_from_name("q4"), std::nullopt);
  EXPECT_EQ(format_from_ggml(12), std::nullopt);
}

// Largest |decoded - x| allowed for a block of encoded elements with these extremes, from the formula of the format:
// half a step (a whole one where the code is clamped at its upper end), plus the f16 rounding of scale and minimum
// (2^-11 relative each, 2^-25 absolute where they are subnormal) times the largest code.
double tolerance(std::string_view name, double low, double high) {
  const double amax = std::max(std::abs(low), std::abs(high));
  const double u = 0x1p-11, tiny = 0x1p-24;
  if (name == "F32") return 0;
  if (name == "F16") return amax * u + tiny;
  if (name == "BF16") return amax * 0x1p-8;
  if (name == "Q4_0") return amax / 8 + amax * u + 8 * tiny;
  if (name == "Q4_1")
    return (high - low) / 15 * 0.5001 + (high - low) * u + std::abs(low) * u + 16 * tiny + amax * 0x1p-22;
  // Half a step: of the element's binade, 2^-4 or 2^-2 of it at most; of the least code, where that is larger.
  if (name == "F8_E4M3") return amax * 0x1p-4 + 1e-30;
  if (name == "MXFP4") return amax / 4 + 1e-30;
  if (name == "Q8_0") return amax / 127 * 0.5001 + amax * u + 127 * tiny;
  // Q6_K: the sub-scale is off by at most half of super = amax / 32 / 127 (times 32), plus a step at the clamped end.
  return amax / 32 + 32 * (amax / 32 / 127) + amax * 2 * u + 127 * 32 * tiny;
}

TEST(Formats, EncodingStaysWithinItsStep) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  for (const FormatTraits& t : all_formats()) {
    for (int round = 0; round < 300; ++round) {
      const float size = std::ldexp(1.0f, static_cast<int>(rng() % 24) - 16), shift = round % 3 == 0 ? size : 0.0f;
      std::vector<float> x(t.block_elements);
      for (float& v : x) v = normal(rng) * size + shift;
      if (round % 7 == 0) x.assign(x.size(), size);
      const auto [low, high] = std::minmax_element(x.begin(), x.end());
      const double limit = tolerance(t.name, *low, *high);
      const std::vector<float> y = decoded(t, encoded(t, x));
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_LE(std::abs(y[i] - x[i]), limit) << t.name << " " << x[i] << " " << y[i];
    }
  }
}

TEST(Formats, ZeroAndTinyBlocksDecodeToZero) {
  for (const FormatTraits& t : all_formats()) {
    if (t.block_elements == 1) continue;
    for (const float v : {0.0f, -0.0f, 1e-42f, -3e-39f}) {
      const std::vector<float> y = decoded(t, encoded(t, std::vector<float>(t.block_elements, v)));
      for (const float z : y) ASSERT_EQ(z, 0.0f) << t.name << " " << v;
    }
  }
}

TEST(Formats, WhatTheScaleCannotHoldIsRefused) {
  for (const char* name : {"F16", "Q4_0", "Q4_1", "Q8_0", "Q6_K"}) {
    const FormatTraits& t = named(name);
    for (const float v : {3e38f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> x(t.block_elements, 0.5f);
      x.back() = v;
      try {
        encoded(t, x);
        ADD_FAILURE() << name << " encoded " << v;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::kInput);
        EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
      }
    }
  }
}

// Every bit of a Q6_K block belongs to exactly one element.
TEST(Q6K, EachBitMovesOneElement) {
  for (int bit = 0; bit < 192 * 8; ++bit) {
    BlockQ6_K block = {};
    (bit < 1024 ? block.ql[bit / 8] : block.qh[bit / 8 - 128]) = static_cast<uint8_t>(1 << bit % 8);
    int moved = 0;
    for (int i = 0; i < 256; ++i) moved += get_q6(block, i) != 0;
    ASSERT_EQ(moved, 1) << bit;
  }
}

// A block whose elements sit on the grid comes back exactly, the extremes -32 and 31 included.
TEST(Q6K, GridValuesRoundTrip) {
  std::mt19937 rng(3);
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) {
    const int s = i / 16;
    x[i] = (0.0078125f * static_cast<float>(s == 0 ? 127 : 1 + s * 8)) *
           static_cast<float>(i % 16 == 0 ? -32 : int(rng() % 64) - 32);
  }
  EXPECT_EQ(decoded(named("Q6_K"), encoded(named("Q6_K"), x)), x);
}

// What `value` times 2^(scale - 127) is: the product is exact in double, and rounded once.
void expect_scaled(float got, double value, int scale, const std::string& where) {
  const float want = static_cast<float>(std::ldexp(value, scale - 127));
  if (scale == 255 || std::isnan(value)) {
    EXPECT_TRUE(std::isnan(got)) << where;
  } else {
    ASSERT_EQ(bits_of_float(got), bits_of_float(want)) << where << ": " << got << " " << want;
  }
}

double value_e4m3(int code) {
  const int e = code >> 3 & 15, m = code & 7;
  if (e == 15 && m == 7) return std::nan("");
  const double size = e == 0 ? std::ldexp(m, -9) : std::ldexp(8 + m, e - 10);
  return code & 128 ? -size : size;
}

// Every code with every scale: exact, with subnormal results and infinity; NaN stays NaN.
TEST(E4M3, DecodesEveryCodeAndScale) {
  for (int scale = 0; scale < 256; ++scale)
    for (int first = 0; first < 256; first += 128) {
      BlockE4M3 block = {static_cast<uint8_t>(scale), {}};
      for (int j = 0; j < 128; ++j) block.codes[j] = static_cast<uint8_t>(first + j);
      float x[128];
      traits(Format::e4m3).dequantize(&block, x, 128);
      for (int j = 0; j < 128; ++j) {
        expect_scaled(x[j], value_e4m3(first + j), scale, fmt::format("code {} scale {}", first + j, scale));
        if (!is_nan_e4m3(block.codes[j])) {
          ASSERT_EQ(integer_e4m3(block.codes[j]), 512 * value_e4m3(first + j));
        }
      }
    }
}

TEST(Mxfp4, DecodesEveryCodeAndScale) {
  constexpr double kValues[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6};
  for (int scale = 0; scale < 256; ++scale) {
    BlockMxfp4 block = {static_cast<uint8_t>(scale), {}};
    for (int j = 0; j < 16; ++j) block.qs[j] = static_cast<uint8_t>(j | (15 - j) << 4);
    float x[32];
    traits(Format::mxfp4).dequantize(&block, x, 32);
    for (int j = 0; j < 16; ++j) {
      expect_scaled(x[j], kValues[j], scale, fmt::format("code {} scale {}", j, scale));
      expect_scaled(x[16 + j], kValues[15 - j], scale, fmt::format("code {} scale {}", 15 - j, scale));
    }
  }
}

// Between two neighbours of a table the nearer one is chosen, half way the one whose code is even. code_of(x, i)
// encodes x.
template <typename CodeOf>
void check_nearest(const std::vector<double>& values, CodeOf&& code_of) {
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const float half = static_cast<float>((values[i] + values[i + 1]) / 2);  // exact
    for (const float sign : {1.0f, -1.0f}) {
      EXPECT_EQ(code_of(sign * half), i + i % 2) << half;
      EXPECT_EQ(code_of(sign * std::nextafter(half, 0.0f)), i) << half;
      EXPECT_EQ(code_of(sign * std::nextafter(half, 1e9f)), i + 1) << half;
      EXPECT_EQ(code_of(sign * static_cast<float>(values[i])), i);
    }
  }
}

TEST(E4M3, EncodesTheNearest) {
  std::vector<double> values;
  for (int code = 0; code < 0x7f; ++code) values.push_back(value_e4m3(code));
  const auto code_of = [](float x) {
    EXPECT_EQ(f32_to_e4m3(x) >> 7, std::signbit(x));
    return size_t{f32_to_e4m3(x)} & 0x7f;
  };
  check_nearest(values, code_of);
  EXPECT_EQ(f32_to_e4m3(1e9f), 0x7e);
  EXPECT_EQ(f32_to_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
  EXPECT_TRUE(is_nan_e4m3(f32_to_e4m3(std::nanf(""))));
}

TEST(Mxfp4, EncodesTheNearest) {
  check_nearest({0, .5, 1, 1.5, 2, 3, 4, 6}, [](float x) {
    std::vector<float> block(32, 6.0f);  // the scale is 1
    block[3] = x;
    return size_t{encoded(named("MXFP4"), block)[4]} & 7;
  });
}

// The scale is the least that holds the largest magnitude; ends of the range; what is not finite has none.
TEST(PowerScales, AreTheLeast) {
  const std::tuple<const char*, float, int> cases[] = {{"F8_E4M3", 448.0f, 127},
                                                       {"F8_E4M3", std::nextafter(448.0f, 1e9f), 128},
                                                       {"F8_E4M3", 224.0f, 126},
                                                       {"F8_E4M3", std::numeric_limits<float>::max(), 247},
                                                       {"F8_E4M3", 0.0f, 19},
                                                       {"MXFP4", 6.0f, 127},
                                                       {"MXFP4", std::nextafter(6.0f, 1e9f), 128},
                                                       {"MXFP4", 3.0f, 126},
                                                       {"MXFP4", std::numeric_limits<float>::max(), 253},
                                                       {"MXFP4", 0.0f, 25}};
  for (const auto& [name, largest, scale] : cases) {
    std::vector<float> x(named(name).block_elements, 0.0f);
    x[5] = -largest;
    EXPECT_EQ(encoded(named(name), x)[0], scale) << name << " " << largest;
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      x[7] = bad;
      EXPECT_THROW(encoded(named(name), x), Error) << name;
    }
  }
}

}  // namespace
}  // namespace stet
