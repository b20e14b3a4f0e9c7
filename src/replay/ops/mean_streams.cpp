#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

// The sum in the streams' order, then one division.
void row_mean_streams(const Kernels&, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  const uint32_t width = c.out->width, streams = c.in->width / width;
  const float* x = c.in->row(row);
  float* y = c.out->row(row);
  for (uint32_t d = 0; d < width; ++d) {
    float sum = x[d];
    for (uint32_t j = 1; j < streams; ++j) sum = sum + x[size_t{j} * width + d];
    y[d] = sum / static_cast<float>(streams);
  }
  if (c.rounded) round_bf16(y, width);
}

}  // namespace stet
