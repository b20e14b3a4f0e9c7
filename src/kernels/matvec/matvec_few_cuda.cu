#include "kernels/matvec/few_unit.cuh"
#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/row_kernel.cuh"

namespace stet {
namespace {

template <Format kFormat>
bool launch_few(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (cuda::kIntegerWeights<kFormat>) {
    using Unit = cuda::FewUnit<kFormat>;
    if (cuda::row_shared_bytes<Unit, 2, 4>(p.k) <= cuda::kMostShared) {
      cuda::launch_rows<Unit, 2, 4>(on, step, p);
      return true;
    }
    if (cuda::row_shared_bytes<Unit, 1, 2>(p.k) <= cuda::kMostShared) {
      cuda::launch_rows<Unit, 1, 2>(on, step, p);
      return true;
    }
  }
  return false;
}

}  // namespace

bool launch_few_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if (p.rows > kFewProductRows) return false;
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return launch_few<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
  return false;
}

}  // namespace stet
