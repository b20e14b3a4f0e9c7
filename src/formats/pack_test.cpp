#include "formats/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/fp.h"
#include "formats/e4m3/e4m3.h"

namespace stet {
namespace {

struct Case {
  uint32_t rows, cols;
};

std::vector<uint8_t> random_blocks(const FormatTraits& t, uint32_t rows, uint32_t cols, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(size_t{rows} * cols);
  for (float& v : x) v = normal(rng);
  std::vector<uint8_t> blocks(x.size() / t.block_elements * t.block_bytes);
  t.quantize(x.data(), blocks.data(), x.size());
  return blocks;
}

// Every element of the packed matrix is bit for bit what the format's own decoder makes of the source.
TEST(Pack, ElementsEqualTheDecoder) {
  for (const FormatTraits& t : all_formats()) {
    for (Case c : {Case{16, 256}, Case{37, 768}, Case{1, 512}}) {
      const auto blocks = random_blocks(t, c.rows, c.cols, c.rows);
      const auto packed = pack_matrix(t.format, blocks.data(), c.rows, c.cols);
      const PackedMatrix m{t.format, c.rows, c.cols, packed.data()};
      ASSERT_EQ(packed.size(), m.bytes());
      std::vector<float> want(size_t{c.rows} * c.cols);
      t.dequantize(blocks.data(), want.data(), want.size());
      for (uint32_t r = 0; r < c.rows; ++r)
        for (uint32_t k = 0; k < c.cols; ++k) {
          const float got = pack_traits(t.format).element(m.tile(r / 16), c.cols, r % 16, k);
          ASSERT_EQ(bits_of_float(got), bits_of_float(want[size_t{r} * c.cols + k])) << t.name << " " << r << "," << k;
        }
    }
  }
}

// A block term with x = e_i gives the integer of element i: scale * integer + minimum must be the element, up to its rounding.
TEST(Pack, BlockTermsEqualTheElements) {
  for (const FormatTraits& t : all_formats()) {
    if (!t.integer_block) continue;
    const auto blocks = random_blocks(t, 16, 256, 7);
    const auto packed = pack_matrix(t.format, blocks.data(), 16, 256);
    const PackTraits& p = pack_traits(t.format);
    for (uint32_t r = 0; r < 16; ++r)
      for (uint32_t k = 0; k < 256; ++k) {
        int8_t x[32] = {};
        x[k % 32] = 1;
        const BlockTerm term = p.block_term(packed.data(), 256, r, k / 32, x);
        const double value = double{term.scale} * term.isum + double{term.minimum};
        const double magnitude = std::abs(double{term.scale} * term.isum) + std::abs(double{term.minimum});
        ASSERT_NEAR(value, p.element(packed.data(), 256, r, k), 2 * 0x1p-24 * magnitude) << t.name;
      }
  }
}

// Scales and codes that are NaN: of a packed row all 32 elements of the block, in a product too; no other row, no other
// block.
TEST(Pack, NanOfPowerScalesReachesItsBlockOnly) {
  for (const Format format : {Format::e4m3, Format::mxfp4}) {
    const FormatTraits& t = traits(format);
    auto blocks = random_blocks(t, 16, 256, 3);
    const size_t row = 256 / t.block_elements * t.block_bytes;
    blocks[2 * row] = 255;                                        // row 2, the first block of the format
    if (format == Format::e4m3) blocks[5 * row + 1 + 40] = 0xff;  // row 5, column 40
    const auto packed = pack_matrix(format, blocks.data(), 16, 256);
    const PackTraits& p = pack_traits(format);
    const int8_t x[32] = {};
    for (uint32_t r = 0; r < 16; ++r)
      for (uint32_t k = 0; k < 256; ++k) {
        const bool bad = (r == 2 && k < t.block_elements) || (format == Format::e4m3 && r == 5 && k / 32 == 1);
        EXPECT_EQ(std::isnan(p.element(packed.data(), 256, r, k)), bad) << t.name << " " << r << " " << k;
        EXPECT_EQ(std::isnan(p.block_term(packed.data(), 256, r, k / 32, x).scale), bad)
            << t.name << " " << r << " " << k;
      }
  }
}

// The product of planes against integers of 64 bits. Elements of a block are equal in size, so that every plane sum is
// as large as it can be: each is below 2^24, where a float holds every integer.
TEST(Pack, PlaneTermsEqualExactSums) {
  for (int code = 0; code < 0x7f; code += 3)
    for (int other = 0; other < 0x7f; other += 7) {
      BlockE4M3 block = {127, {}};
      int32_t x[32];
      int64_t high = 0, middle = 0, low = 0, sum = 0, sizes[3] = {};
      for (int i = 0; i < 32; ++i) {
        const bool minus = (code + other + i / 8) % 3 == 0;
        block.codes[i] = static_cast<uint8_t>(code | (minus ? 0x80 : 0));
        x[i] = integer_e4m3(static_cast<uint8_t>(other)) * (i % 5 == 1 ? -1 : 1);
        const int64_t w = integer_e4m3(block.codes[i]);
        high += w / 512 * (x[i] / 512), middle += w / 512 * (x[i] % 512) + w % 512 * (x[i] / 512),
            low += w % 512 * (x[i] % 512);
        sizes[0] += std::abs(w / 512 * (x[i] / 512)), sizes[2] += std::abs(w % 512 * (x[i] % 512));
        sizes[1] += std::abs(w / 512 * (x[i] % 512)) + std::abs(w % 512 * (x[i] / 512));
        sum += w * x[i];
      }
      for (const int64_t size : sizes) ASSERT_LT(size, 1 << 24);
      ASSERT_EQ(sum, (high * 512 + middle) * 512 + low);
      const auto packed = pack_matrix(Format::e4m3, &block, 1, 128);
      const PlaneTerm term = pack_traits(Format::e4m3).plane_term(packed.data(), 128, 0, 0, x);
      // Rounded once where the inner sum fits a float, as here, but for the largest.
      const float inner = static_cast<float>(static_cast<double>(high * 512 + middle));
      ASSERT_EQ(term.sum, static_cast<float>(static_cast<double>(inner) * 512 + static_cast<double>(low)))
          << code << " " << other;
      ASSERT_EQ(term.scale, 0x1p-18f);
    }
}

TEST(Pack, ProductsTakeTheInputsOfTheirFormat) {
  EXPECT_TRUE(takes_input(Format::bf16, ActKind::f32));
  EXPECT_FALSE(takes_input(Format::bf16, ActKind::i8));
  EXPECT_TRUE(takes_input(Format::q4_1, ActKind::i8));
  EXPECT_FALSE(takes_input(Format::q4_1, ActKind::e4m3) || takes_input(Format::q4_1, ActKind::f32));
  for (const Format format : {Format::e4m3, Format::mxfp4}) {
    for (const ActKind kind : {ActKind::f32, ActKind::i8, ActKind::e4m3}) EXPECT_TRUE(takes_input(format, kind));
    EXPECT_EQ((PackedMatrix{format, 1, 128, nullptr}.input), ActKind::i8);
  }
  EXPECT_EQ((PackedMatrix{Format::f16, 1, 128, nullptr}.input), ActKind::f32);
}

}  // namespace
}  // namespace stet
