#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/matvec_wide_float.cuh"

namespace stet::cuda {
namespace {

// 128 rows of weights, 128 of x. Which is best where was measured on an H200 (bench/bench_wide_products.cu).
using WideFloat128 = WideFloatShape<4, 1, 16, 3, 2>;
using WideFloat64 =
    WideFloatShape<4, 2, 8, 3, 2>;  // up to 64 rows of x: half of the warps rest, and a lane holds half as much

template <Format kFormat>
void launch_if_wide_float(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (kIntegerWeights<kFormat>) {
    fail_cuda_format("float", static_cast<uint32_t>(kFormat));
  } else if (p.rows <= 64) {
    launch_wide_float<kFormat, WideFloat64>(on, step, p);
  } else {
    launch_wide_float<kFormat, WideFloat128>(on, step, p);
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
