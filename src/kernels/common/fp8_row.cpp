#include "kernels/common/fp8_row.h"

#include <algorithm>
#include <cstring>

#include "base/fp.h"

namespace stet {
namespace {

constexpr uint8_t kNaNCode = 0x7f;
constexpr uint16_t kNaNHalf = 0x7fc0;
// act_quant takes no group for smaller than this.
constexpr float kLeastLargest = 1e-4f;

float two_to(int exponent) { return float_of_bits(static_cast<uint32_t>(exponent + 127) << 23); }

float e4m3_value(uint8_t code) {
  const uint32_t exponent = (code >> 3) & 15, mantissa = code & 7;
  float size = static_cast<float>(mantissa) * 0x1p-9f;
  if (exponent != 0) size = static_cast<float>(8 + mantissa) * two_to(static_cast<int>(exponent) - 10);
  if ((code & 0x7f) == kNaNCode) size = float_of_bits(0x7fc00000u);
  return (code & 0x80) != 0 ? -size : size;
}

// The code whose value x is; false: there is none.
bool e4m3_code(float x, uint8_t& code) {
  const uint32_t bits = bits_of_float(x), size = bits & 0x7fffffffu;
  const int exponent = static_cast<int>(size >> 23) - 127;
  uint32_t c = 0;
  if (size > 0x7f800000u) {
    c = kNaNCode;
  } else if (exponent >= -6) {
    if (exponent > 8 || (size & 0xfffffu) != 0) return false;
    c = static_cast<uint32_t>(exponent + 7) << 3 | ((size >> 20) & 7);
    if (c == kNaNCode) return false;  // 480
  } else {
    const float steps = float_of_bits(size) * 0x1p9f;
    c = static_cast<uint32_t>(steps);
    if (static_cast<float>(c) != steps) return false;
  }
  code = static_cast<uint8_t>(c | bits >> 31 << 7);
  return true;
}

// Of the least power of two s with max(largest, 1e-4) / s <= 448 = 1.75 * 2^8: its exponent. The largest is finite.
int scale_exponent(float largest) {
  const uint32_t bits = bits_of_float(std::max(largest, kLeastLargest));
  return static_cast<int>(bits >> 23) - 127 - 8 + ((bits & 0x7fffffu) > 0x600000u ? 1 : 0);
}

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
      const float scaled = x[i] * two_to(-exponent);
      const bool lost = scaled * two_to(exponent) != x[i] && x[i] == x[i];  // below the smallest float
      if (lost || !e4m3_code(scaled, row[i])) return i;
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
    x[i] = e4m3_value(row[i]) * two_to(row[shape.scales_at() + i / Fp8RowShape::kGroup] - 127);
  for (uint32_t i = 0; i < shape.rotated; ++i) {
    uint16_t half;
    std::memcpy(&half, row + shape.codes + size_t{2} * i, sizeof half);
    x[shape.codes + i] = bf16_to_f32(half);
  }
}

}  // namespace stet
