#include "kernels/common/state_rows_cuda.cuh"
#include "kernels/heads/heads_cuda.cuh"
#include "kernels/rounding/rounding_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct CacheRows {
  const float* in;  // [row][width]
  float* out;       // likewise
  CacheSpec spec;
  uint32_t width;
  bool head;
};

// A warp a row.
template <uint32_t kRegs>
__global__ void __launch_bounds__(kWarp) cache_rows(const CudaStep* step, const __grid_constant__ CacheRows p) {
  release_next();
  wait_for_previous();
  const CacheSpec& spec = p.spec;
  if (blockIdx.x >= live_rows(step, p.head)) return;
  const uint32_t t = step->position + blockIdx.x;
  WarpRow<kRegs> x;
  x.load(p.in + size_t{blockIdx.x} * p.width, p.width);
  rotate_tail(x, spec.rope.at(t), spec.rope.dim, false);
  if (spec.rounded) round_cached(x, spec.rope.dim);
  x.store(p.out + size_t{blockIdx.x} * p.width);
  if (spec.rows.width != 0) store_row(spec.rows, t, x);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_cache_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const cuda::CacheRows p = {op.in, op.out, std::get<CacheSpec>(op.spec), op.out_width, op.head};
  cuda::check_rotation(p.width, p.spec.rope.dim);
  if (p.spec.rows.width != 0) cuda::check_state_rows(p.spec.rows);
  cuda::with_warp_row(p.width, [&]<uint32_t kRegs>() {
    cuda::launch(on, cuda::cache_rows<kRegs>, dim3(op.rows), cuda::kWarp, 0, step, p);
  });
}

}  // namespace stet
