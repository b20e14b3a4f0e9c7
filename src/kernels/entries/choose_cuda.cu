// Two kernels: scores of entries, all heads and 20 entries a block of threads at a time; then the best ones, a block a row. A row that sees
// no more entries than it chooses has no scores.
#include "kernels/common/best_ref.h"
#include "kernels/common/key_tile_cuda.cuh"
#include "kernels/entries/best_cuda.cuh"
#include "kernels/entries/entries_cuda.h"

namespace stet::cuda {
namespace {

constexpr uint32_t kChooseThreads = 256;
constexpr uint32_t kChooseWarps = kChooseThreads / kWarp;
constexpr uint32_t kOctet = 8;  // heads of a warp

// Of one launch: `rows` rows from `first` on.
struct ChooseRows {
  CudaChoose c;
  uint32_t first, rows;
  uint32_t entries;  // that a row sees, at most

  __device__ uint32_t* scores(uint32_t row) const { return c.scores + size_t{row - first} * entries; }
};

// Shared memory of a block of threads: queries, keys, what each head adds to an entry's score, and the heads' weights.
__host__ __device__ constexpr uint32_t octets_of(uint32_t heads) { return (heads + kOctet - 1) / kOctet; }
__host__ __device__ constexpr uint32_t term_stride(uint32_t heads) { return octets_of(heads) * kOctet + 1; }
constexpr size_t choose_bytes(uint32_t heads, uint32_t dim) {
  return quad_bytes(octets_of(heads) * 2, dim) + key_tile_bytes(dim) + (size_t{kTileKeys} * term_stride(heads) + heads) * sizeof(float);
}

struct ChooseShared {
  float4* q;    // [quad][d]
  float* keys;  // [entry of the tile][d]
  float* term;  // [entry][head]
  float* weight;

  __device__ ChooseShared(uint8_t* memory, uint32_t heads, uint32_t dim) {
    q = reinterpret_cast<float4*>(memory);
    keys = reinterpret_cast<float*>(memory + quad_bytes(octets_of(heads) * 2, dim));
    term = keys + size_t{kTileKeys} * key_stride(dim);
    weight = term + size_t{kTileKeys} * term_stride(heads);
  }
};

// Of each head and entry of the tile: the product with the weight where every step is rounded, else the dot product, if positive.
__device__ __forceinline__ void make_terms(const ChooseSpec& spec, const ChooseShared& s) {
  const uint32_t dim = spec.keys.width, lane = threadIdx.x % kWarp;
  for (uint32_t octet = threadIdx.x / kWarp; octet < octets_of(spec.heads); octet += kChooseWarps) {
    DotTile<2> dots;
    dots.make(s.keys, s.q + size_t{octet} * 2 * dim, dim);
    const uint32_t head = octet * kOctet + dots.head();
    if (head >= spec.heads) continue;
#pragma unroll
    for (uint32_t i = 0; i < kLaneKeys; ++i) {
      const float dot = rounded_if(spec.rounded, dots.sum[i][0]);
      const float positive = dot < 0.0f ? 0.0f : dot;  // a NaN stays one
      s.term[(lane / 8 * kLaneKeys + i) * term_stride(spec.heads) + head] =
          spec.rounded ? rounded_bf16(__fmul_rn(s.weight[head], positive)) : positive;
    }
  }
}

__device__ __forceinline__ float entry_score(const ChooseSpec& spec, const ChooseShared& s, uint32_t entry) {
  const float* term = s.term + size_t{entry} * term_stride(spec.heads);
  float score = 0.0f;
  if (spec.rounded) {
#pragma unroll 16
    for (uint32_t h = 0; h < spec.heads; ++h) score = __fadd_rn(score, term[h]);
    return rounded_bf16(score);
  }
#pragma unroll 16
  for (uint32_t h = 0; h < spec.heads; ++h) score = __fmaf_rn(s.weight[h], term[h], score);
  return score;
}

template <RowFormat kFormat>
__global__ void __launch_bounds__(kChooseThreads) entry_scores(const CudaStep* step, const __grid_constant__ ChooseRows p) {
  uint8_t* const memory = dynamic_shared();
  release_next();
  wait_for_previous();
  const ChooseSpec& spec = p.c.spec;
  const uint32_t row = p.first + blockIdx.y, heads = spec.heads, dim = spec.keys.width;
  if (row >= live_rows(step, p.c.head)) return;
  const uint32_t seen = visible_entries(step->position + row, spec.keys.ratio);
  if (seen <= spec.top || blockIdx.x * kTileKeys >= seen) return;
  const ChooseShared s(memory, heads, dim);
  load_quads<kChooseThreads>(p.c.q + size_t{row} * heads * dim, heads, octets_of(heads) * 2, dim, s.q);
  for (uint32_t h = threadIdx.x; h < heads; h += kChooseThreads) {
    const float w = __fmul_rn(__ldcg(p.c.weight + size_t{row} * heads + h), spec.scale);
    s.weight[h] = rounded_if(spec.rounded, w);
  }
  for (uint32_t first = blockIdx.x * kTileKeys; first < seen; first += gridDim.x * kTileKeys) {
    load_keys<kFormat, kChooseThreads>(spec.keys, first, seen, [&](uint32_t j) { return spec.keys.at(j); }, [](uint32_t) { return false; }, s.keys);
    __syncthreads();
    make_terms(spec, s);
    __syncthreads();
    if (const uint32_t j = first + threadIdx.x; threadIdx.x < kTileKeys && j < seen)
      p.scores(row)[j] = static_cast<uint32_t>(best_key(entry_score(spec, s, threadIdx.x), j) >> 32);
  }
}

__global__ void __launch_bounds__(kBestThreads) best_entries(const CudaStep* step, const __grid_constant__ ChooseRows p) {
  __shared__ BestShared shared;
  release_next();
  wait_for_previous();
  const ChooseSpec& spec = p.c.spec;
  const uint32_t row = p.first + blockIdx.x;
  if (row >= live_rows(step, p.c.head)) return;
  const uint32_t seen = visible_entries(step->position + row, spec.keys.ratio);
  float* chosen = p.c.chosen + size_t{row} * spec.top;
  if (seen > spec.top) return Best(p.scores(row), seen, spec.top, shared).list(chosen);
  for (uint32_t i = threadIdx.x; i < spec.top; i += kBestThreads) chosen[i] = i < seen ? static_cast<float>(i) : -1.0f;
}

constexpr size_t kMostScores = 32 * 1024 * 1024;  // bytes

// Entries that a row sees at most; none, where that many are chosen anyway.
uint32_t most_entries(const ChooseSpec& spec, uint32_t context) {
  const uint32_t seen = context / spec.keys.ratio;
  return seen > spec.top ? seen : 0;
}
uint32_t rows_at_once(const ChooseSpec& spec, uint32_t rows, uint32_t context) {
  const size_t bytes = std::max<size_t>(1, size_t{most_entries(spec, context)} * sizeof(uint32_t));
  return std::min<uint32_t>(rows, static_cast<uint32_t>(std::max<size_t>(1, kMostScores / bytes)));
}

template <RowFormat kFormat>
void launch_scores(const CudaLaunch& on, const CudaStep* step, const ChooseRows& p) {
  const size_t shared = choose_bytes(p.c.spec.heads, p.c.spec.keys.width);
  if (shared > kMostShared) fail_cuda_shape("elements of an indexer's queries", p.c.spec.heads * p.c.spec.keys.width, "use --device cpu");
  const uint32_t tiles = std::min((p.entries + kTileKeys - 1) / kTileKeys, std::max(1u, 4 * on.processors / p.rows));
  allow_shared(entry_scores<kFormat>, shared);
  launch(on, entry_scores<kFormat>, dim3(tiles, p.rows), kChooseThreads, shared, step, p);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

uint64_t choose_entries_scratch(const ChooseSpec& spec, uint32_t rows, uint32_t context) {
  return uint64_t{cuda::rows_at_once(spec, rows, context)} * cuda::most_entries(spec, context) * sizeof(uint32_t);
}

void launch_choose(const CudaLaunch& on, const CudaStep* step, const CudaChoose& c) {
  cuda::check_state_rows(c.spec.keys);
  cuda::ChooseRows p = {c, 0, 0, cuda::most_entries(c.spec, c.context)};
  const uint32_t at_once = cuda::rows_at_once(c.spec, c.rows, c.context);
  for (; p.first < c.rows; p.first += at_once) {
    p.rows = std::min(at_once, c.rows - p.first);
    if (p.entries != 0) {
      switch (c.spec.keys.format) {
        case RowFormat::f32:
          cuda::launch_scores<RowFormat::f32>(on, step, p);
          break;
        case RowFormat::f16:
          cuda::launch_scores<RowFormat::f16>(on, step, p);
          break;
        case RowFormat::fp8:
          cuda::launch_scores<RowFormat::fp8>(on, step, p);
          break;
      }
    }
    cuda::launch(on, cuda::best_entries, dim3(p.rows), cuda::kBestThreads, 0, step, p);
  }
}

}  // namespace stet
