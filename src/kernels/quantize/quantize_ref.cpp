#include <algorithm>

#include "kernels/quantize/quantize_common.h"

namespace stet {

void quantize_ref(const float* x, uint32_t row, const Activations& out) {
  if (out.kind == ActKind::f32) return copy_row(x, row, out);
  for (uint32_t b = 0; b < out.k / 32; ++b, x += 32) {
    uint32_t max_bits = 0;
    for (int i = 0; i < 32; ++i) max_bits = std::max(max_bits, bits_of_float(x[i]) & 0x7fffffffu);
    const BlockScale scale = block_scale(max_bits);
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
