#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/matvec_wide_integer.cuh"

namespace stet::cuda {
namespace {

template <Format kFormat>
void launch_if_wide_integer(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (!kIntegerWeights<kFormat>) {
    fail_cuda_format("integer", static_cast<uint32_t>(kFormat));
  } else {
    launch_wide_integer<kFormat>(on, step, p);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_wide_integer_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::launch_if_wide_integer<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
