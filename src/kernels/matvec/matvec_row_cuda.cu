#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/row_kernel.cuh"
#include "kernels/matvec/row_unit.cuh"

namespace stet {

void launch_row_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  const auto launch = [&]<Format kFormat>() {
    if constexpr (!cuda::kIntegerWeights<kFormat> && !cuda::kFloatWeights<kFormat>) {
      fail_cuda_format("CUDA", static_cast<uint32_t>(kFormat));
    } else {
      using Unit = cuda::RowUnit<kFormat>;
      if (cuda::row_shared_bytes<Unit, 2, 4>(p.k) <= cuda::kMostShared)
        return cuda::launch_rows<Unit, 2, 4>(on, step, p);
      if (cuda::row_shared_bytes<Unit, 1, 4>(p.k) > cuda::kMostShared)
        fail_cuda_shape("columns of a matrix", p.k, "use --device cpu");
      cuda::launch_rows<Unit, 1, 4>(on, step, p);
    }
  };
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return launch.template operator()<Format::id>();
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
