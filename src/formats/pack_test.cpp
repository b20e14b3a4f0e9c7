#include "formats/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/fp.h"

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

}  // namespace
}  // namespace stet
