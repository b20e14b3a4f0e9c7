// The rows of a step shared among all blocks of threads: the largest logit of each, and with a temperature the largest
// of logit and noise.
#include "kernels/sample/gumbel_cuda.cuh"
#include "kernels/sample/sample_cuda.cuh"
#include "kernels/sample/sample_cuda.h"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// Ids begin .. end - 1 of a row; whole groups of four, but for the last.
struct Slice {
  uint32_t row, slices, begin, end;
  bool live;
  __device__ Slice(const CudaSample& s, uint32_t rows) : row(0), slices(1), begin(0), end(0), live(false) {
    if (rows == 0) return;
    slices = slices_of(s, rows);
    row = blockIdx.x / slices;
    live = row < rows;
    const uint32_t quads = (s.vocab + 3) / 4, per = (quads + slices - 1) / slices * 4;
    begin = min(blockIdx.x % slices * per, s.vocab);
    end = min(begin + per, s.vocab);
  }
};

// By the whole block; the result is that of warp 0.
__device__ Wide block_max(Wide x) {
  __shared__ Wide of_warps[kThreads / kWarp];
  x = warp_max(x);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = x;
  __syncthreads();
  return warp_max(of_warps[threadIdx.x % (kThreads / kWarp)]);
}

__global__ void __launch_bounds__(kThreads) sample_best(const CudaStep* step, const __grid_constant__ CudaSample s) {
  release_next();
  wait_for_previous();
  const Slice slice(s, step->head_rows);
  if (!slice.live) return;
  const CudaSampling p = *s.sampling;
  const AdjustedRow row(s, p, slice.row);
  Wide best = 0;
  bool bad = false;
#pragma unroll 4
  for (uint32_t id = slice.begin + threadIdx.x; id < slice.end; id += kThreads) {
    const float l = row[id];
    bad |= (__float_as_uint(l) & 0x7fffffffu) >= 0x7f800000u;
    best = max(best, ranked(key_of(l), id));
  }
  const bool any = __syncthreads_or(bad);
  best = block_max(best);
  if (threadIdx.x == 0) s.best[blockIdx.x] = best, s.bad[blockIdx.x] = any;
}

__global__ void __launch_bounds__(kThreads) sample_noisy(const CudaStep* step, const __grid_constant__ CudaSample s) {
  release_next();
  wait_for_previous();
  const CudaSampling p = *s.sampling;
  const Slice slice(s, step->head_rows);
  if (p.temperature == 0.0f || !slice.live) return;
  const AdjustedRow row(s, p, slice.row);
  const float largest = value_of_key(key_of_ranked(join_slices(s.best, slice.slices, slice.row)));
  const bool by_key = p.top_k != 0 && p.top_k < s.vocab, by_weight = p.top_p != 0 || p.min_weight != 0;
  CudaKept kept = {0, 0xffffffffu, 0, 0xffffffffu};
  if (by_key || p.top_p != 0) kept = s.kept[slice.row];
  const uint64_t position = uint64_t{s.timeline->committed} + s.first + slice.row;
  Wide best = 0;
  for (uint32_t id = slice.begin + threadIdx.x * 4; id < slice.end; id += kThreads * 4) {
    const Philox words = gumbel_words(p.seed, position, id / 4);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      if (id + i >= slice.end) continue;
      const float l = row[id + i], x = tempered(l, largest, p.temperature);
      if (by_key && ranked(key_of(l), id + i) < ranked(kept.key, kept.key_id)) continue;
      if (by_weight) {
        const uint32_t w = weight_of(x);
        if (w < p.min_weight || ranked(w, id + i) < ranked(kept.weight, kept.weight_id)) continue;
      }
      best = max(best, ranked(key_of(__fadd_rn(x, gumbel_of_word(words.word[i]))), id + i));
    }
  }
  best = block_max(best);
  if (threadIdx.x == 0) s.noisy[blockIdx.x] = best;
}

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace
}  // namespace stet::cuda

namespace stet {

size_t cuda_sample_bytes(uint32_t vocab, uint32_t blocks) {
  return 2 * cuda::aligned(blocks * sizeof(unsigned long long)) + cuda::aligned(blocks * sizeof(uint32_t)) +
         cuda::aligned(kCudaSampleRows * sizeof(CudaKept)) + kCudaSampleRows * size_t{vocab} * sizeof(uint32_t);
}

void place_cuda_sample(CudaSample& s, uint8_t* memory) {
  const auto take = [&memory](size_t bytes) {
    uint8_t* at = memory;
    memory += cuda::aligned(bytes);
    return at;
  };
  s.best = reinterpret_cast<unsigned long long*>(take(s.blocks * sizeof *s.best));
  s.noisy = reinterpret_cast<unsigned long long*>(take(s.blocks * sizeof *s.noisy));
  s.bad = reinterpret_cast<uint32_t*>(take(s.blocks * sizeof *s.bad));
  s.kept = reinterpret_cast<CudaKept*>(take(kCudaSampleRows * sizeof *s.kept));
  s.keys = reinterpret_cast<uint32_t*>(memory);
}

void launch_sample(const CudaLaunch& on, const CudaStep* step, const CudaSample& s, uint32_t rows) {
  cuda::launch(on, cuda::sample_best, dim3(s.blocks), cuda::kThreads, 0, step, s);
  cuda::launch_cut(on, step, s, rows);
  cuda::launch(on, cuda::sample_noisy, dim3(s.blocks), cuda::kThreads, 0, step, s);
}

}  // namespace stet
