#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/e4m3/e4m3.h"
#include "kernels/common/math_ref.h"
#include "kernels/kernels_test_util.h"

namespace stet {
namespace {

using test::Fill;

TEST(Kernels, ScalarIsAlwaysThereAndUnknownIsRefused) {
  EXPECT_EQ(available_isas().front(), Isa::scalar);
  EXPECT_EQ(kernels(Isa::scalar).isa, Isa::scalar);
  EXPECT_FALSE(isa_from_name("mmx").has_value());
}

void expect_quantized(ActKind kind, Fill fill, uint32_t rows) {
  const uint32_t k = 416;  // the last group of kind e4m3 is short
  auto x = test::make_values(size_t{rows} * k, fill, rows);
  x[5] = 0x1p-60f;  // at the floor
  std::vector<uint8_t> want(activation_bytes(kind, rows, k), 0xee);
  for (uint32_t m = 0; m < rows; ++m) quantize_ref(x.data() + m * k, m, {kind, rows, k, want.data()});
  for (Isa isa : available_isas()) {
    std::vector<uint8_t> got(want.size(), 0x11);
    for (uint32_t m = 0; m < rows; ++m) kernels(isa).quantize(x.data() + m * k, m, {kind, rows, k, got.data()});
    EXPECT_EQ(got, want) << isa_name(isa) << " " << act_name(kind);
  }
}

TEST(Kernels, QuantizeEqualsTheReference) {
  for (const ActKind kind : {ActKind::i8, ActKind::e4m3})
    for (Fill fill : {Fill::normal, Fill::extreme, Fill::tiny, Fill::nonfinite})
      for (uint32_t rows : {1u, 3u, 8u, 11u}) expect_quantized(kind, fill, rows);
}

// A group of kind e4m3 by its definition, in double: the least power of two not below a / 448, to nearest even.
void expect_planes(const std::vector<float>& x, Isa isa) {
  std::vector<uint8_t> out(activation_bytes(ActKind::e4m3, 1, static_cast<uint32_t>(x.size())));
  const Activations a{ActKind::e4m3, 1, static_cast<uint32_t>(x.size()), out.data()};
  kernels(isa).quantize(x.data(), 0, a);
  double largest = 1e-4;
  for (const float v : x) largest = std::max(largest, std::abs(static_cast<double>(v)));
  int exponent;
  const double fraction = std::frexp(largest / 448, &exponent);
  const double scale = std::ldexp(1.0, exponent - (fraction == 0.5 ? 1 : 0));
  for (uint32_t i = 0; i < x.size(); ++i) {
    const PlaneRecord record = plane_record(a, 0, i / 32);
    ASSERT_EQ(record.d()[0], scale) << largest;
    int of_value;
    std::frexp(x[i] / scale, &of_value);
    const double step = std::ldexp(1.0, std::max(of_value - 1, -6) - 3);
    const double want = std::nearbyint(x[i] / scale / step) * step * 512;
    const int high = record.high(0)[PlaneRecord::place(i % 32)], low = record.low(0)[PlaneRecord::place(i % 32)];
    ASSERT_EQ(high * 512 + low, want) << isa_name(isa) << " " << x[i] << " scale " << scale;
    ASSERT_TRUE(std::abs(high) < 512 && std::abs(low) < 512 && high * low >= 0) << high << " " << low;
  }
}

TEST(Kernels, PlanesAreThePublishedQuantisation) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  for (const Isa isa : available_isas()) {
    for (const float size :
         {1.0f, 448.0f, 1.7500001f, 1e-4f, 1.0680e-4f, 1.0682e-4f, 0.0f, 1e-30f, 1e-44f, 1e30f, 3.4e38f}) {
      std::vector<float> x(128);
      for (float& v : x) v = std::max(-1.0f, std::min(1.0f, normal(rng) / 4)) * size;
      x[77] = size;
      expect_planes(x, isa);
    }
    // Every value, every half way between two of them, and their neighbours.
    std::vector<float> ties;
    for (int code = 0; code < 0x7e; ++code) {
      const float low = e4m3_to_f32(static_cast<uint8_t>(code)), high = e4m3_to_f32(static_cast<uint8_t>(code + 1));
      const float half = (low + high) / 2;
      for (const float v : {low, half, std::nextafter(half, 0.0f), std::nextafter(half, 1e9f)})
        for (const float sign : {1.0f, -1.0f}) ties.push_back(sign * v);
    }
    for (size_t first = 0; first < ties.size(); first += 127) {
      std::vector<float> x(128, 0.0f);
      std::copy(ties.begin() + first, ties.begin() + std::min(ties.size(), first + 127), x.begin());
      x[127] = 448.0f;
      expect_planes(x, isa);
    }
  }
}

TEST(Kernels, PlanesOfANonFiniteElement) {
  std::vector<float> x(160, 1.0f);
  x[100] = __builtin_inff();
  std::vector<uint8_t> out(activation_bytes(ActKind::e4m3, 1, 160));
  const Activations a{ActKind::e4m3, 1, 160, out.data()};
  for (const Isa isa : available_isas()) {
    kernels(isa).quantize(x.data(), 0, a);
    for (uint32_t b = 0; b < 5; ++b) {
      EXPECT_EQ(std::isnan(plane_record(a, 0, b).d()[0]), b < 4);
      EXPECT_EQ(plane_record(a, 0, b).high(0)[3], b < 4 ? 0 : 256);
    }
  }
}

// The block rules of the contract, by hand.
TEST(Kernels, QuantizeRules) {
  std::vector<uint8_t> out(activation_bytes(ActKind::i8, 1, 32));
  const Activations a{ActKind::i8, 1, 32, out.data()};
  const ActRecord record = act_record(a, 0, 0);
  std::vector<float> x(32, 0.0f);
  x[0] = 0x1p-60f;
  quantize_ref(x.data(), 0, a);
  EXPECT_EQ(record.d()[0], 0.0f);
  x[0] = -254.0f, x[1] = 1.0f, x[2] = 3.0f;  // d = 2: 0.5 rounds to 0, 1.5 to 2
  quantize_ref(x.data(), 0, a);
  EXPECT_EQ(record.d()[0], 2.0f);
  EXPECT_EQ(record.q(0)[0], -127);
  EXPECT_EQ(record.q(0)[1], 0);
  EXPECT_EQ(record.q(0)[2], 2);
  EXPECT_EQ(record.bias8()[0], -8 * -125);
  x[9] = __builtin_inff();
  quantize_ref(x.data(), 0, a);
  EXPECT_TRUE(std::isnan(record.d()[0]));
  EXPECT_EQ(record.q(0)[0], 0);
}

TEST(Kernels, RmsnormEqualsTheReference) {
  for (Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite})
    for (uint32_t k : {1u, 8u, 60u, 256u, 576u, 1000u, 4096u}) {
      const auto x = test::make_values(k, fill, k), w = test::make_values(k, Fill::normal, 9);
      auto want = test::poisoned(k);
      rmsnorm_ref(x.data(), w.data(), 1e-5f, k, want.data());
      for (Isa isa : available_isas()) {
        auto got = test::poisoned(k);
        kernels(isa).rmsnorm(x.data(), w.data(), 1e-5f, k, got.data());
        ASSERT_EQ(test::first_difference(got.data(), want.data(), k), k) << isa_name(isa) << " K=" << k;
      }
    }
}

TEST(Kernels, SwigluAndRopeEqualTheReference) {
  auto gate = test::make_values(4096, Fill::normal, 1);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] *= static_cast<float>(i % 200);
  gate[7] = __builtin_inff(), gate[8] = -__builtin_inff(), gate[9] = __builtin_nanf("");
  const auto up = test::make_values(4096, Fill::normal, 2);
  std::vector<float> want(4096);
  swiglu_ref(gate.data(), up.data(), 4096, want.data());
  for (Isa isa : available_isas()) {
    std::vector<float> got(4096);
    kernels(isa).swiglu(gate.data(), up.data(), 4096, got.data());
    EXPECT_EQ(test::first_difference(got.data(), want.data(), 4096), 4096u) << isa_name(isa);
    for (uint32_t rope_dim : {64u, 40u, 6u}) {
      rope_ref(gate.data() + 64, {up.data(), up.data() + 64}, rope_dim, 64, want.data());
      kernels(isa).rope(gate.data() + 64, {up.data(), up.data() + 64}, rope_dim, 64, got.data());
      EXPECT_EQ(test::first_difference(got.data(), want.data(), 64), 64u) << isa_name(isa);
    }
    swiglu_ref(gate.data(), up.data(), 4096, want.data());
  }
}

// Lengths that are no multiple of a vector: nothing is written beyond the end.
TEST(Kernels, SwigluKeepsToItsLength) {
  const auto gate = test::make_values(64, Fill::normal, 3), up = test::make_values(64, Fill::normal, 4);
  for (uint32_t n = 1; n <= 40; ++n) {
    auto want = test::poisoned(64);
    swiglu_ref(gate.data(), up.data(), n, want.data());
    for (Isa isa : available_isas()) {
      auto got = test::poisoned(64);
      kernels(isa).swiglu(gate.data(), up.data(), n, got.data());
      ASSERT_EQ(test::first_difference(got.data(), want.data(), 64), 64u) << isa_name(isa) << " n=" << n;
    }
  }
}

// exp: two roundings of the reduction, eight of the polynomial: below 2 ulp everywhere, and right at the ends.
TEST(Kernels, ExpIsAccurate) {
  double worst = 0;
  for (float x = -87.0f; x < 88.7f; x += 0.0137f) {
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_ref(x) - want) / want);
  }
  EXPECT_LT(worst, 2 * 0x1p-23);
  EXPECT_EQ(exp_ref(0.0f), 1.0f);
  EXPECT_EQ(exp_ref(-200.0f), 0.0f);
  EXPECT_EQ(exp_ref(-__builtin_inff()), 0.0f);
  EXPECT_EQ(exp_ref(89.0f), __builtin_inff());
  EXPECT_EQ(exp_ref(-103.0f), 0x1p-149f);  // subnormal, kept
  EXPECT_TRUE(std::isnan(exp_ref(__builtin_nanf(""))));
}

}  // namespace
}  // namespace stet
