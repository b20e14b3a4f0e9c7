#include "weights/hf/scaled_matrix.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <random>

#include "base/error.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

// Random codes and scales of n rows and k columns. No scale is 255.
struct Stored {
  Stored(std::string_view dtype, uint64_t n, uint64_t k) : rows(n), cols(k), fp4(dtype == kHfFp4) {
    std::mt19937 random(static_cast<uint32_t>(n * 1000 + k));
    codes = {"x.weight", std::string(dtype), {n, fp4 ? k / 2 : k}, 3, fp4 ? n * k / 2 : n * k};
    scales = {"x.scale", std::string(kHfScales), {fp4 ? n : (n + 127) / 128, fp4 ? k / 32 : k / 128}, 0, 0};
    scales.offset = codes.offset + codes.bytes + 5;
    scales.bytes = scales.shape[0] * scales.shape[1];
    bytes.resize(scales.offset + scales.bytes);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 255);
  }
  ScaledMatrix matrix() const { return {{ByteInput::of(bytes, "f"), codes}, {ByteInput::of(bytes, "g"), scales}}; }
  uint8_t byte(uint64_t at) const { return static_cast<uint8_t>(bytes[at]); }
  // What the published layout says of an element: its code, and the scale that it is multiplied by.
  uint8_t code(uint64_t r, uint64_t c) const {
    if (!fp4) return byte(codes.offset + r * cols + c);
    const uint8_t both = byte(codes.offset + (r * cols + c) / 2);
    return c % 2 == 0 ? both & 15 : both >> 4;
  }
  uint8_t scale(uint64_t r, uint64_t c) const {
    return byte(scales.offset + (fp4 ? r * (cols / 32) + c / 32 : r / 128 * (cols / 128) + c / 128));
  }

  uint64_t rows, cols;
  bool fp4;
  SafetensorsTensor codes, scales;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> all_blocks(const ScaledMatrix& m) {
  std::vector<std::byte> out(m.bytes());
  m.read(0, out);
  return out;
}

void expect_blocks_of(const Stored& s) {
  const ScaledMatrix m = s.matrix();
  ASSERT_EQ(m.rows(), s.rows);
  ASSERT_EQ(m.cols(), s.cols);
  const uint64_t block = s.fp4 ? 32 : 128, block_bytes = s.fp4 ? 17 : 129;
  ASSERT_EQ(m.bytes(), s.rows * s.cols / block * block_bytes);
  const std::vector<std::byte> out = all_blocks(m);
  for (uint64_t r = 0; r < s.rows; ++r)
    for (uint64_t c = 0; c < s.cols; ++c) {
      const std::byte* b = out.data() + (r * (s.cols / block) + c / block) * block_bytes;
      const uint64_t j = c % block;
      const auto stored = static_cast<uint8_t>(b[1 + (s.fp4 ? j % 16 : j)]);
      const int got = !s.fp4 ? stored : j < 16 ? stored & 15 : stored >> 4;
      ASSERT_EQ(static_cast<uint8_t>(b[0]), s.scale(r, c)) << r << " " << c;
      ASSERT_EQ(got, s.code(r, c)) << r << " " << c;
    }
}

TEST(ScaledMatrix, EveryElementKeepsItsCodeAndScale) {
  for (const uint64_t n : {1u, 127u, 128u, 129u, 300u}) {
    expect_blocks_of({kHfFp8, n, 384});
    expect_blocks_of({kHfFp4, n, 96});
  }
  EXPECT_EQ(Stored(kHfFp8, 1, 128).matrix().format(), Format::e4m3);
  EXPECT_EQ(Stored(kHfFp4, 1, 32).matrix().format(), Format::mxfp4);
}

// Also of a matrix that is read in many pieces.
TEST(ScaledMatrix, AnyPieceIsThatPieceOfTheWhole) {
  std::mt19937 random(3);
  for (const Stored& s :
       {Stored(kHfFp8, 3, 256), Stored(kHfFp4, 5, 64), Stored(kHfFp8, 700, 1024), Stored(kHfFp4, 900, 2048)}) {
    const ScaledMatrix m = s.matrix();
    const std::vector<std::byte> whole = all_blocks(m);
    const auto expect_piece = [&](uint64_t begin, uint64_t n) {
      std::vector<std::byte> piece(n);
      m.read(begin, piece);
      EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<ptrdiff_t>(begin))) << begin;
    };
    const bool small = whole.size() < 1000;
    for (int i = 0; i < (small ? 3000 : 40); ++i) {
      const uint64_t begin = random() % whole.size();
      expect_piece(begin, random() % (whole.size() - begin + 1));
    }
    expect_piece(whole.size(), 0);
  }
}

void expect_unfit(Stored s, const std::function<void(Stored&)>& change, Code code, const std::string& part) {
  change(s);
  try {
    all_blocks(s.matrix());
    ADD_FAILURE() << "accepted: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

TEST(ScaledMatrix, WhatDoesNotFitIsNamedWithItsNumbers) {
  const Stored fp8(kHfFp8, 129, 256), fp4(kHfFp4, 4, 64);
  expect_unfit(
      fp8,
      [](Stored& s) {
        s.scales.shape = {1, 2};
      },
      Code::kInput, "g: tensor 'x.scale' has shape [1, 2]; 'x.weight', of shape [129, 256], needs [2, 2]");
  expect_unfit(
      fp8, [](Stored& s) { s.scales.shape = {4}; }, Code::kInput, "has shape [4]");
  expect_unfit(
      fp4,
      [](Stored& s) {
        s.scales.shape = {2, 4};
      },
      Code::kInput, "'x.weight', of shape [4, 32], needs [4, 2]");
  for (const char* dtype : {"F32", "U8", "BF16"})
    expect_unfit(
        fp8, [&](Stored& s) { s.scales.dtype = dtype; }, Code::kUnsupported,
        std::string("g: tensor 'x.scale' is ") + dtype + "; stet reads scales of F8_E8M0");
  expect_unfit(
      fp8,
      [](Stored& s) {
        s.codes.shape = {172, 192};
      },
      Code::kUnsupported, "f: tensor 'x.weight' has 192 columns; of FP8 stet reads a multiple of 128");
  expect_unfit(
      fp4,
      [](Stored& s) {
        s.codes.shape = {5, 24};
      },
      Code::kUnsupported, "has 48 columns; of packed FP4 stet reads a multiple of 32");
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{256}, {0, 128}, {1, 129, 256}, {}})
    expect_unfit(
        fp8, [&](Stored& s) { s.codes.shape = shape; }, Code::kInput, "which is no matrix");
}

TEST(ScaledMatrix, AScaleThatIsNoNumberIsRefused) {
  for (const std::string_view dtype : {kHfFp8, kHfFp4})
    expect_unfit(
        {dtype, 200, 256}, [](Stored& s) { s.bytes.back() = std::byte{255}; }, Code::kInput,
        "g: damaged: tensor 'x.scale' holds a scale that is no number");
}

TEST(ScaledMatrix, NamesOfCodesAndScales) {
  EXPECT_EQ(hf_name_of_codes("layers.0.attn.wkv.scale"), "layers.0.attn.wkv.weight");
  EXPECT_EQ(hf_name_of_codes("layers.0.hc_attn_scale"), "");
  EXPECT_EQ(hf_name_of_codes("x.weight_scale_inv"), "");
  EXPECT_EQ(hf_name_of_scales("mtp.0.e_proj.weight"), "mtp.0.e_proj.scale");
}

}  // namespace
}  // namespace stet
