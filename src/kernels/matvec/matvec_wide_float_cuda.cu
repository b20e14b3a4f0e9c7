#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/matvec_wide_float.cuh"

namespace stet::cuda {
namespace {

// A block of Large takes 128 rows of weights times 128 of x, one of Small 64 times 128. Large is faster where two share
// a processor; where each has one for itself, Small is (measured on an H200: docs/performance.md).
using Large = WideFloatShape<4, 1, 16, 2>;
using Small = WideFloatShape<2, 2, 8, 3>;

template <Format kFormat>
void launch_if_wide_float(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (!kFloatWeights<kFormat>) {
    fail_cuda_format("float", static_cast<uint32_t>(kFormat));
  } else {
    const WideFloatLaunch<kFormat, Large> large(on, p);
    if (large.blocks() > on.processors) return large.run(step);
    WideFloatLaunch<kFormat, Small>(on, p).run(step);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_wide_float_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::launch_if_wide_float<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
