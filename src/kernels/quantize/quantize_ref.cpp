#include <algorithm>

#include "kernels/quantize/quantize_common.h"

namespace stet {
namespace {

void planes_ref(const float* x, uint32_t row, const Activations& out) {
  for (uint32_t first = 0; first < out.k; first += kPlaneGroup) {
    const uint32_t end = std::min(out.k, first + kPlaneGroup);
    const BlockScale scale = plane_scale(largest_bits(x + first, end - first));
    for (uint32_t i = first; i < end; ++i) {
      const PlaneRecord record = plane_record(out, row, i / 32);
      const int32_t v = scale.inverse == 0.0f ? 0 : integer_e4m3(f32_to_e4m3(x[i] * scale.inverse));
      record.high(row % kGroup)[PlaneRecord::place(i % 32)] = static_cast<int16_t>(v / 512);
      record.low(row % kGroup)[PlaneRecord::place(i % 32)] = static_cast<int16_t>(v % 512);
      record.d()[row % kGroup] = scale.d;
    }
  }
}

}  // namespace

void quantize_ref(const float* x, uint32_t row, const Activations& out) {
  if (out.kind == ActKind::f32) return copy_row(x, row, out);
  if (out.kind == ActKind::e4m3) return planes_ref(x, row, out);
  for (uint32_t b = 0; b < out.k / 32; ++b, x += 32) {
    const BlockScale scale = block_scale(largest_bits(x, 32));
    const ActRecord record = act_record(out, row, b);
    int32_t sums[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      float q = scale.inverse == 0.0f ? 0.0f : rint32(x[i] * scale.inverse);
      q = std::min(127.0f, std::max(-127.0f, q));
      record.q(row % kGroup)[i] = static_cast<int8_t>(q);
      sums[i / 16] += static_cast<int32_t>(q);
    }
    finish_record(record, row % kGroup, scale.d, sums[0], sums[1]);
  }
}

}  // namespace stet
