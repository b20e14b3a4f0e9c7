#include "kernels/matvec/matvec.h"

#include <gtest/gtest.h>

#include "kernels/kernels_test_util.h"
#include "kernels/quantize/quantize.h"

namespace stet {
namespace {

using test::Fill;

struct Shape {
  uint32_t rows, cols;
};

std::vector<Shape> shapes(const FormatTraits& t) {
  if (t.block_elements == 256) return {{40, 256}, {16, 2304}};
  if (t.block_elements == 128) return {{40, 128}, {16, 2048}, {5, 2304}, {16, 640}};
  // Odd tails for float formats: K need not be a multiple of anything.
  if (!t.integer_block) return {{16, 576}, {37, 77}, {5, 8192 + 130}, {16, 2048}, {17, 1}};
  return {{48, 576}, {37, 32}, {16, 2048}, {7, 2144}, {16, 96}};
}

std::vector<ActKind> inputs(Format format) {
  std::vector<ActKind> out;
  for (const ActKind kind : {ActKind::f32, ActKind::i8, ActKind::e4m3})
    if (takes_input(format, kind)) out.push_back(kind);
  return out;
}

std::vector<std::pair<Isa, ActKind>> isas_and(const std::vector<ActKind>& kinds) {
  std::vector<std::pair<Isa, ActKind>> out;
  for (const Isa isa : available_isas())
    for (const ActKind kind : kinds) out.emplace_back(isa, kind);
  return out;
}

struct Input {
  std::vector<float> x;
  std::vector<uint8_t> storage;
  Activations act;
};

Input make_input(const Kernels& k, ActKind kind, uint32_t rows, uint32_t cols, Fill fill) {
  Input in;
  in.x = test::make_values(size_t{rows} * cols, fill, rows * 31 + cols);
  in.storage.resize(activation_bytes(kind, rows, cols));
  in.act = {kind, rows, cols, in.storage.data()};
  for (uint32_t m = 0; m < rows; ++m) k.quantize(in.x.data() + size_t{m} * cols, m, in.act);
  return in;
}

// Every instruction set and width: the bits of the scalar reference.
void expect_reference(const PackedMatrix& w, Fill fill) {
  const Kernels& reference = kernels(Isa::scalar);
  for (uint32_t rows : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 16u, 20u}) {
    const Input in = make_input(reference, w.input, rows, w.cols, fill);
    for (uint32_t tile = 0; tile < w.tiles(); tile += w.tiles() == 1 ? 1 : w.tiles() - 1) {
      auto want = test::poisoned(size_t{rows} * 16);
      reference.matvec(w, tile, in.act, want.data());
      for (Isa isa : available_isas()) {
        auto got = test::poisoned(size_t{rows} * 16);
        kernels(isa).matvec(w, tile, in.act, got.data());
        const size_t i = test::first_difference(got.data(), want.data(), got.size());
        ASSERT_EQ(i, got.size()) << isa_name(isa) << " by " << act_name(w.input) << " " << w.rows << "x" << w.cols
                                 << " M=" << rows << " tile " << tile << ": " << got[i] << " " << want[i];
      }
    }
  }
}

class MatvecTest : public testing::TestWithParam<std::tuple<Format, Fill>> {};

// Tails of rows and columns, and every kind of input.
TEST_P(MatvecTest, EqualsTheReference) {
  const auto [format, fill] = GetParam();
  for (const Shape s : shapes(traits(format))) {
    test::Packed w = test::make_packed(format, s.rows, s.cols, fill, s.rows + s.cols);
    for (const ActKind kind : inputs(format)) {
      w.matrix.input = kind;
      expect_reference(w.matrix, fill);
    }
  }
}

// A row's bits do not depend on how many rows share the pass: a property of its own, which equality with a width-dependent
// reference would not show.
TEST_P(MatvecTest, RowsAreIndependentOfTheirNumber) {
  const auto [format, fill] = GetParam();
  const uint32_t cols = traits(format).block_elements > 32 ? 512 : 608;
  test::Packed w = test::make_packed(format, 16, cols, fill, 3);
  for (const auto& [isa, kind] : isas_and(inputs(format))) {
    const Kernels& k = kernels(isa);
    w.matrix.input = kind;
    const Input all = make_input(k, kind, 16, cols, fill);
    std::vector<float> want(16 * 16);
    k.matvec(w.matrix, 0, all.act, want.data());
    for (uint32_t rows = 1; rows < 16; ++rows)
      for (uint32_t first : {0u, 16 - rows}) {
        std::vector<uint8_t> storage(activation_bytes(kind, rows, cols));
        const Activations act{kind, rows, cols, storage.data()};
        for (uint32_t m = 0; m < rows; ++m) k.quantize(all.x.data() + size_t{first + m} * cols, m, act);
        std::vector<float> got(size_t{rows} * 16);
        k.matvec(w.matrix, 0, act, got.data());
        ASSERT_EQ(test::first_difference(got.data(), want.data() + first * 16, got.size()), got.size()) << isa_name(isa) << rows;
      }
  }
}

std::string case_name(const testing::TestParamInfo<std::tuple<Format, Fill>>& info) {
  static const char* const fills[] = {"normal", "extreme", "tiny", "nonfinite"};
  return std::string(traits(std::get<0>(info.param)).name) + "_" + fills[static_cast<int>(std::get<1>(info.param))];
}

std::vector<Format> every_format() {
  std::vector<Format> out;
  for (const FormatTraits& t : all_formats()) out.push_back(t.format);
  return out;
}

INSTANTIATE_TEST_SUITE_P(AllFormats, MatvecTest,
                         testing::Combine(testing::ValuesIn(every_format()),
                                          testing::Values(Fill::normal, Fill::extreme, Fill::tiny, Fill::nonfinite)),
                         case_name);

// The reference against f64 arithmetic on the same quantised inputs. An acc of n terms has error below n * eps * sum|terms|
// (Higham, Accuracy and Stability of Numerical Algorithms, 3.1); a block contributes two roundings more.
TEST(MatvecReference, IsCloseToDouble) {
  for (Format format : {Format::q4_0, Format::q4_1, Format::q8_0, Format::q6_k, Format::e4m3, Format::mxfp4}) {
    const uint32_t cols = 2304;
    const test::Packed w = test::make_packed(format, 16, cols, Fill::normal, 5);
    const Input in = make_input(kernels(Isa::scalar), ActKind::i8, 1, cols, Fill::normal);
    float got[16];
    matvec_ref(w.matrix, 0, in.act, got);
    for (uint32_t r = 0; r < 16; ++r) {
      double sum = 0, magnitude = 0;
      for (uint32_t k = 0; k < cols; ++k) {
        const ActRecord record = act_record(in.act, 0, k / 32);
        const double x = double{record.d()[0]} * record.q(0)[k % 32];
        const double term = x * pack_traits(format).element(w.matrix.data, cols, r, k);
        sum += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(got[r], sum, (2.0 * cols / 32 + 16) * 0x1p-23 * magnitude) << traits(format).name;
    }
  }
}

// The same of e4m3 activations, whose values are known exactly.
TEST(MatvecReference, IsCloseToDoubleByPlanes) {
  for (Format format : {Format::e4m3, Format::mxfp4}) {
    const uint32_t cols = 2304;
    test::Packed w = test::make_packed(format, 16, cols, Fill::normal, 5);
    w.matrix.input = ActKind::e4m3;
    const Input in = make_input(kernels(Isa::scalar), ActKind::e4m3, 1, cols, Fill::normal);
    float got[16];
    matvec_ref(w.matrix, 0, in.act, got);
    for (uint32_t r = 0; r < 16; ++r) {
      double sum = 0, magnitude = 0;
      for (uint32_t k = 0; k < cols; ++k) {
        const PlaneRecord record = plane_record(in.act, 0, k / 32);
        const uint32_t at = PlaneRecord::place(k % 32);
        const double x = (512.0 * record.high(0)[at] + record.low(0)[at]) / 512 * record.d()[0];
        const double term = x * pack_traits(format).element(w.matrix.data, cols, r, k);
        sum += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(got[r], sum, (3.0 * cols / 32 + 16) * 0x1p-23 * magnitude) << traits(format).name;
    }
  }
}

// Blocks all of whose elements are an extreme of one of the planes, of either sign, against each other.
TEST(MatvecPlanes, AllExtremeBlocksEqualTheReference) {
  const float extremes[] = {448.0f, 480.0f / 512, 3840.0f / 512, 240.0f};  // planes 448 0, 0 480, 7 256, 240 0
  for (const Format format : {Format::e4m3, Format::mxfp4})
    for (const float of_weight : extremes)
      for (const float of_input : extremes) {
        std::vector<float> weights(16 * 256), x(256);
        for (size_t i = 0; i < weights.size(); ++i) weights[i] = i % 3 == i / 256 % 3 ? -of_weight : of_weight;
        for (size_t i = 0; i < x.size(); ++i) x[i] = i / 32 % 2 == 1 && i % 5 == 0 ? -of_input : of_input;
        for (size_t i = 0; i < x.size(); i += 128) x[i] = 448.0f;  // the scale is 1
        for (size_t i = 0; i < weights.size(); i += 128) weights[i] = 448.0f;
        std::vector<uint8_t> blocks(weights.size() / traits(format).block_elements * traits(format).block_bytes);
        traits(format).quantize(weights.data(), blocks.data(), weights.size());
        const auto packed = pack_matrix(format, blocks.data(), 16, 256);
        PackedMatrix w{format, 16, 256, packed.data()};
        w.input = ActKind::e4m3;
        std::vector<uint8_t> storage(activation_bytes(ActKind::e4m3, 1, 256));
        const Activations act{ActKind::e4m3, 1, 256, storage.data()};
        quantize_ref(x.data(), 0, act);
        ASSERT_EQ(plane_record(act, 0, 1).d()[0], 1.0f);
        ASSERT_EQ(512 * plane_record(act, 0, 1).high(0)[1] + plane_record(act, 0, 1).low(0)[1], 512 * of_input);
        float want[16], got[16];
        matvec_ref(w, 0, act, want);
        for (Isa isa : available_isas()) {
          kernels(isa).matvec(w, 0, act, got);
          ASSERT_EQ(test::first_difference(got, want, 16), 16u) << isa_name(isa) << of_weight << " " << of_input;
        }
      }
}

}  // namespace
}  // namespace stet
