#include "kernels/common/state_rows_cuda.cuh"
#include "kernels/entries/pool_cuda.cuh"
#include "kernels/heads/heads_cuda.cuh"
#include "kernels/rounding/rounding_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct PoolEntries {
  float* out;  // [row][size]
  EntrySpec spec;
  bool head;
};

// The norm, the roundings and the rotation of a pooled entry, by one warp, and its place in the state.
template <uint32_t kRegs>
__device__ __forceinline__ void finish_entry(const EntrySpec& spec, uint32_t entry, WarpRow<kRegs>& row) {
  if (spec.rounded) round_bf16(row);
  const float r = inverse_rms(row, spec.eps);
  row.each([&](float& x, uint32_t d) { x = __fmul_rn(__fmul_rn(x, r), spec.norm[d]); });
  if (spec.rounded) round_bf16(row);
  rotate_tail(row, spec.rope.at(entry * spec.pool.ratio()), spec.rope.dim, false);
  if (spec.rounded && spec.indexed) round_indexed(row);
  if (spec.rounded && !spec.indexed) round_cached(row, spec.rope.dim);
  store_row(spec.pool.entries, entry, row);
}

// A block of threads has a row of the pass, a thread a channel.
template <uint32_t kRegs>
__global__ void __launch_bounds__(kRegs * kWarp) pool_entries(const CudaStep* step, const __grid_constant__ PoolEntries p) {
  __shared__ PooledRows rows;
  __shared__ float pooled[kRegs * kWarp];
  release_next();
  wait_for_previous();
  if (blockIdx.x >= live_rows(step, p.head)) return;
  const PoolSpec& pool = p.spec.pool;
  const uint32_t t = step->position + blockIdx.x, size = pool.size(), ratio = pool.ratio(), d = threadIdx.x;
  float* out = p.out + size_t{blockIdx.x} * size;
  if ((t + 1) % ratio != 0) {
    if (d < size) out[d] = 0.0f;
    return;
  }
  const uint32_t entry = t / ratio, n = find_pooled_rows(pool, entry, rows);
  __syncthreads();
  if (d < size) pooled[d] = pool_channel(rows, n, pool.rows.width / 2, d);
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  WarpRow<kRegs> row;
  row.load(pooled, size);
  finish_entry(p.spec, entry, row);
  row.store(out);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_pool_entry(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const cuda::PoolEntries p = {op.out, std::get<EntrySpec>(op.spec), op.head};
  const uint32_t size = p.spec.pool.size();
  cuda::check_rotation(size, p.spec.rope.dim);
  cuda::check_state_rows(p.spec.pool.entries);
  if (p.spec.rounded && p.spec.indexed) cuda::check_indexed_width(size);
  cuda::with_warp_row(size, [&]<uint32_t kRegs>() {
    cuda::launch(on, cuda::pool_entries<kRegs>, dim3(op.rows), kRegs * cuda::kWarp, 0, step, p);
  });
}

}  // namespace stet
