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
  EXPECT_EQ(all_formats().size(), 7u);
  for (const FormatTraits& t : all_formats()) {
    EXPECT_EQ(&traits(t.format), &t);
    EXPECT_EQ(format_from_ggml(t.ggml_type), t.format);
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

}  // namespace
}  // namespace stet
