#include "kernels/matvec/plane_products_cuda.h"

#include "kernels/matvec/plane_kernel.cuh"

namespace stet {
namespace {

// The first of the row counts whose rows fit into shared memory.
template <Format kFormat, ActKind kKind, uint32_t kRows, uint32_t... kFewer>
void launch_rows_of(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  using Unit = cuda::PlaneUnit<kFormat, kKind, kRows>;
  using Maker = cuda::PlaneRows<kKind, kRows>;
  if (cuda::plane_shared_bytes<Unit, Maker>(p.k) <= cuda::kMostShared) return cuda::launch_planes<Unit, Maker>(on, step, p);
  if constexpr (sizeof...(kFewer) == 0) {
    fail_cuda_shape("columns of a matrix", p.k, "use --device cpu");
  } else {
    launch_rows_of<kFormat, kKind, kFewer...>(on, step, p);
  }
}

template <Format kFormat, ActKind kKind>
void launch_kind(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if (p.x == nullptr) {
    using Unit = cuda::PlaneUnit<kFormat, kKind, 1>;
    using Maker = cuda::PlaneSource<kKind>;
    if (cuda::plane_shared_bytes<Unit, Maker>(p.k) > cuda::kMostShared)
      fail_cuda_shape("columns of a matrix", p.k, "use --device cpu");
    return cuda::launch_planes<Unit, Maker>(on, step, p);
  }
  if (p.rows == 1) return launch_rows_of<kFormat, kKind, 1>(on, step, p);
  if (p.rows <= 4) return launch_rows_of<kFormat, kKind, 4, 1>(on, step, p);
  launch_rows_of<kFormat, kKind, 8, 4, 1>(on, step, p);
}

template <Format kFormat>
void launch_format(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (cuda::kPlaneWeights<kFormat>) {
    if (p.input == ActKind::e4m3) return launch_kind<kFormat, ActKind::e4m3>(on, step, p);
    if (p.input == ActKind::i8) return launch_kind<kFormat, ActKind::i8>(on, step, p);
  }
  fail_cuda_format("plane", static_cast<uint32_t>(kFormat));
}

}  // namespace

bool has_plane_products(Format format) {
  switch (format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::kPlaneWeights<Format::id>;
#include "formats/formats.def"
#undef FORMAT
  }
  return false;
}

void launch_plane_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if (p.gated) fail_cuda_format("gated plane", static_cast<uint32_t>(p.format));
  if (p.x == nullptr && p.rows != 1) fail_cuda_shape("rows that a product makes itself", p.rows, "prepare them");
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return launch_format<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
