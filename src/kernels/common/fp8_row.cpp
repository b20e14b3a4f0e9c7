#include "kernels/common/fp8_row.h"

#include <algorithm>
#include <cstring>

#include "base/fp.h"
#include "formats/e4m3/e4m3.h"
#include "kernels/quantize/quantize.h"

namespace stet {
namespace {

constexpr uint16_t kNaNHalf = 0x7fc0;

// The code whose value x is; false: there is none.
bool code_of(float x, uint8_t& code) {
  code = f32_to_e4m3(x);
  const float back = e4m3_to_f32(code);
  return back == x || (back != back && x != x);
}

// Of the least power of two that act_quant takes for the group: its exponent. The largest is finite.
int scale_exponent(float largest) { return exponent_above(std::max(largest, kPlaneFloor), kLargestE4M3); }

// NaN and infinity have no part in the scale.
float largest_of(const float* x, uint32_t n) {
  float largest = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const float size = float_of_bits(bits_of_float(x[i]) & 0x7fffffffu);
    if (size > largest && size - size == 0.0f) largest = size;
  }
  return largest;
}

}  // namespace

uint32_t encode_fp8_row(const Fp8RowShape& shape, const float* x, uint8_t* row) {
  std::fill_n(row + shape.scales_at(), shape.bytes() - shape.scales_at(), uint8_t{0});
  for (uint32_t g = 0; g < shape.groups(); ++g) {
    const uint32_t first = g * Fp8RowShape::kGroup, end = std::min(first + Fp8RowShape::kGroup, shape.codes);
    const int exponent = scale_exponent(largest_of(x + first, end - first));
    row[shape.scales_at() + g] = static_cast<uint8_t>(exponent + 127);
    for (uint32_t i = first; i < end; ++i) {
      const float scaled = x[i] * power_of_two(-exponent);
      const bool lost = scaled * power_of_two(exponent) != x[i] && x[i] == x[i];  // below the smallest float
      if (lost || !code_of(scaled, row[i])) return i;
    }
  }
  for (uint32_t i = 0; i < shape.rotated; ++i) {
    const uint32_t bits = bits_of_float(x[shape.codes + i]);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    if (!nan && (bits & 0xffffu) != 0) return shape.codes + i;
    const uint16_t half = nan ? kNaNHalf : static_cast<uint16_t>(bits >> 16);
    std::memcpy(row + shape.codes + size_t{2} * i, &half, sizeof half);
  }
  return shape.width();
}

void decode_fp8_row(const Fp8RowShape& shape, const uint8_t* row, float* x) {
  for (uint32_t i = 0; i < shape.codes; ++i)
    x[i] = e4m3_to_f32(row[i]) * power_of_two(row[shape.scales_at() + i / Fp8RowShape::kGroup] - 127);
  for (uint32_t i = 0; i < shape.rotated; ++i) {
    uint16_t half;
    std::memcpy(&half, row + shape.codes + size_t{2} * i, sizeof half);
    x[shape.codes + i] = bf16_to_f32(half);
  }
}

}  // namespace stet
