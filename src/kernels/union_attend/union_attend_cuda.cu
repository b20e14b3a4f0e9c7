// Two kernels: the scores of all keys of a row, 16 heads and 20 keys a block of threads at a time; then, for four heads and 64 elements of
// a row, weights, values and the join of all chunks, a warp a chunk. Between them lies what a checkpoint's weights depend on: the largest
// score of all earlier chunks.
#include "kernels/union_attend/union_attend_cuda.h"

#include "kernels/attend/join_cuda.cuh"
#include "kernels/common/key_tile_cuda.cuh"
#include "kernels/entries/entries.h"
#include "kernels/heads/heads_cuda.cuh"
#include "kernels/union_attend/union_list.h"

namespace stet::cuda {
namespace {

// Of one launch: `rows` rows from `first` on.
struct UnionRows {
  CudaUnion u;
  uint32_t first, rows;
  uint32_t keys;   // of a list at most
  uint32_t quads;  // of heads

  // Of a quad of heads of a row: [key][4].
  __device__ float* scores(uint32_t row, uint32_t quad) const {
    return u.scores + (size_t{row - first} * quads + quad) * keys * kQuad;
  }
};

// The keys of a row.
template <bool kBlock>
class UnionKeys {
 public:
  __device__ UnionKeys(const CudaUnion& u, const CudaStep* step, uint32_t row) : u_(u) {
    const UnionSpec& s = u.spec;
    const uint32_t t = kBlock ? step->position : step->position + row, end = kBlock ? t : t + 1;
    first_ = end < s.window ? 0 : end - s.window;
    uint32_t behind = step->rows;
    if constexpr (!kBlock) {
      seen_ = s.entries.width == 0 ? 0 : visible_entries(t, s.entries.ratio);
      behind = s.top != 0 ? min(seen_, s.top) : seen_;
      chosen_ = behind < seen_ ? u.chosen + size_t{row} * s.top : nullptr;
    }
    list_ = UnionList::of(s.rounded, first_, end - first_, s.window, behind);
  }
  __device__ const UnionList& list() const { return list_; }
  // Key j lies in the pass itself, as f32.
  __device__ bool own(uint32_t j) const { return kBlock && j >= list_.window; }
  __device__ const uint8_t* at(uint32_t j) const {
    if (j < list_.window) return u_.spec.rows.at(first_ + j);
    const uint32_t i = j - list_.window;
    if constexpr (kBlock) return reinterpret_cast<const uint8_t*>(u_.block + size_t{i} * u_.spec.rows.width);
    // Whatever a damaged list holds, only entries that the row sees are read.
    if (chosen_ == nullptr) return u_.spec.entries.at(i);
    return u_.spec.entries.at(min(static_cast<uint32_t>(larger(__ldcg(chosen_ + i), 0.0f)), seen_ - 1));
  }

 private:
  const CudaUnion& u_;
  uint32_t first_, seen_ = 0;
  const float* chosen_ = nullptr;
  UnionList list_;
};

// ---- scores

constexpr uint32_t kScoreQuads = 4;  // of a block of threads, a warp each
constexpr uint32_t kScoreThreads = kScoreQuads * kWarp;

constexpr size_t score_bytes(uint32_t dim) { return quad_bytes(kScoreQuads, dim) + key_tile_bytes(dim); }

template <RowFormat kFormat, bool kBlock>
__global__ void __launch_bounds__(kScoreThreads) union_scores(const CudaStep* step, const __grid_constant__ UnionRows p) {
  uint8_t* const shared = dynamic_shared();
  release_next();
  wait_for_previous();
  const UnionSpec& s = p.u.spec;
  const uint32_t row = p.first + blockIdx.z, dim = s.rows.width, warp = threadIdx.x / kWarp, quad = blockIdx.y * kScoreQuads + warp;
  if (row >= live_rows(step, p.u.head)) return;
  const UnionKeys<kBlock> keys(p.u, step, row);
  const uint32_t count = keys.list().keys();
  if (blockIdx.x * kTileKeys >= count) return;
  auto* q = reinterpret_cast<float4*>(shared);
  auto* tile = reinterpret_cast<float*>(shared + quad_bytes(kScoreQuads, dim));
  const uint32_t head = blockIdx.y * kScoreQuads * kQuad;
  load_quads<kScoreThreads>(p.u.q + (size_t{row} * s.heads + head) * dim, s.heads - head, kScoreQuads, dim, q);
  for (uint32_t first = blockIdx.x * kTileKeys; first < count; first += gridDim.x * kTileKeys) {
    load_keys<kFormat, kScoreThreads>(s.rows, first, count, [&](uint32_t j) { return keys.at(j); }, [&](uint32_t j) { return keys.own(j); }, tile);
    __syncthreads();
    if (quad < p.quads) {
      DotTile<1> dots;
      dots.make(tile, q + size_t{warp} * dim, dim);
      float* to = p.scores(row, quad) + dots.head();
#pragma unroll
      for (uint32_t i = 0; i < kLaneKeys; ++i)
        if (const uint32_t j = first + threadIdx.x % kWarp / 8 * kLaneKeys + i; dots.keeps() && j < count)
          to[size_t{j} * kQuad] = __fmul_rn(dots.sum[i][0], s.scale);
    }
    __syncthreads();
  }
}

// ---- weights, values and the join

constexpr uint32_t kSlice = 64;       // elements of a block of threads, two a lane
constexpr uint32_t kRunKeys = 1024;   // slots whose chunks are joined at a time
static_assert(kSlice == Fp8RowShape::kGroup, "a slice has one scale");

template <bool kRounded>
struct ValueShape {
  static constexpr uint32_t kChunk = kRounded ? kRoundedChunk : kSlots;
  static constexpr uint32_t kWarps = kRunKeys / kChunk;  // each has a chunk
  static constexpr uint32_t kThreads = kWarps * kWarp;
};

template <bool kRounded>
struct ValueShared {
  static constexpr uint32_t kChunk = ValueShape<kRounded>::kChunk, kWarps = ValueShape<kRounded>::kWarps;
  const uint8_t* key[kWarps][kChunk];
  float scale[kWarps][kChunk];    // of the slice's codes, in rows of fp8
  float4 weight[kWarps][kChunk];  // of four heads
  float most[kWarps][kQuad];      // the largest score of a chunk
  float2 sums[kWarps][kQuad];     // m, l
  float2 part[kWarps][kQuad][kWarp];
};

// The scores of a chunk in registers, then their weights: lane 4 g + h has slots g, g + 8, ... of head h.
template <bool kRounded>
struct ChunkScores {
  static constexpr uint32_t kEach = ValueShape<kRounded>::kChunk / 8;
  float s[kEach];
  uint32_t n;

  // scores: of the chunk's first key.
  __device__ void load(const float* scores, uint32_t keys) {
    n = keys;
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i) s[i] = slot(i) < n ? __ldcg(scores + i * kWarp + threadIdx.x % kWarp) : 0.0f;
  }
  __device__ float largest() const {
    float m = __uint_as_float(0xff800000u);  // a NaN becomes a weight of NaN, whatever the largest is
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i)
      if (slot(i) < n) m = larger(m, s[i]);
#pragma unroll
    for (uint32_t width = kWarp / 2; width >= kQuad; width /= 2) m = larger(m, __shfl_xor_sync(kAll, m, width));
    return m;
  }
  // Leaves weights, and gives their sum: 16 lanes (slot mod 16), folded.
  __device__ float weigh(float m, float* weight) const {
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i) {
      if (slot(i) >= n) continue;
      const float p = exp_exact(__fsub_rn(s[i], m));
      sum[i % 2] = __fadd_rn(sum[i % 2], p);
      weight[i * kWarp + threadIdx.x % kWarp] = rounded_if(kRounded, p);
    }
    float l = __fadd_rn(sum[0], sum[1]);
#pragma unroll
    for (uint32_t width = kWarp / 2; width >= kQuad; width /= 2) l = __fadd_rn(l, __shfl_xor_sync(kAll, l, width));
    return l;
  }

 private:
  __device__ static uint32_t slot(uint32_t i) { return i * 8 + threadIdx.x % kWarp / kQuad; }
};

// Two elements of a lane, of four heads.
struct ValueSums {
  float2 o[kQuad];
  __device__ ValueSums() {
#pragma unroll
    for (uint32_t h = 0; h < kQuad; ++h) o[h] = {0.0f, 0.0f};
  }
  __device__ void add(float4 p, float2 v) {
    o[0] = {__fmaf_rn(p.x, v.x, o[0].x), __fmaf_rn(p.x, v.y, o[0].y)};
    o[1] = {__fmaf_rn(p.y, v.x, o[1].x), __fmaf_rn(p.y, v.y, o[1].y)};
    o[2] = {__fmaf_rn(p.z, v.x, o[2].x), __fmaf_rn(p.z, v.y, o[2].y)};
    o[3] = {__fmaf_rn(p.w, v.x, o[3].x), __fmaf_rn(p.w, v.y, o[3].y)};
  }
};

// Some keys of a chunk, asked for together and added one after the other.
template <RowFormat kFormat>
struct ValueRun {
  static constexpr uint32_t kKeys = kFormat == RowFormat::f32 ? 16 : 32;
  RowPair<kFormat> pair[kKeys];

  __device__ void load(const StateRows& rows, const uint8_t* const* key, uint32_t n, uint32_t d) {
#pragma unroll
    for (uint32_t i = 0; i < kKeys; ++i)
      if (i < n) pair[i].load(rows, key[i], d);
  }
  template <typename Coded>
  __device__ void add(const float4* weight, const float* scale, uint32_t n, Coded coded, ValueSums& sums) const {
#pragma unroll
    for (uint32_t i = 0; i < kKeys; ++i)
      if (i < n) sums.add(weight[i], pair[i].values(coded, kFormat == RowFormat::fp8 ? scale[i] : 1.0f));
  }
};

// Keys begin .. end - 1 of a chunk; `run` has the first of them already.
template <RowFormat kFormat, typename Coded>
__device__ __forceinline__ void add_values(const StateRows& rows, const uint8_t* const* key, const float4* weight, const float* scale,
                                           uint32_t begin, uint32_t end, uint32_t d, Coded coded, ValueRun<kFormat>& run, ValueSums& sums) {
#pragma unroll 1
  for (uint32_t j = begin; j < end; j += run.kKeys) {
    if (j != begin) run.load(rows, key + j, end - j, d);
    run.add(weight + j, scale + j, end - j, coded, sums);
  }
}

// Joins the parts of `count` chunks of one head, a lane for two elements of the sums and for m and l of a chunk. A join is of neighbours
// whose right one begins there: what is left over at the end joins as attend.h says.
template <uint32_t kWarps>
__device__ __forceinline__ void join_chunks(float2 sums, float2 (&o)[kWarps], uint32_t count, float& m, float& l) {
  const uint32_t lane = threadIdx.x % kWarp;
#pragma unroll
  for (uint32_t run = 1; run < kWarps; run *= 2) {
    if (run >= count) break;
    const float2 right = {__shfl_down_sync(kAll, sums.x, run), __shfl_down_sync(kAll, sums.y, run)};
    const float top = larger(sums.x, right.x);
    const float a = exp_exact(__fsub_rn(sums.x, top)), b = exp_exact(__fsub_rn(right.x, top));
    if (lane % (2 * run) == 0 && lane + run < count) sums = {top, join_two(sums.y, right.y, {a, b})};
#pragma unroll
    for (uint32_t i = 0; i < kWarps; i += 2 * run) {
      const float2 w = {__shfl_sync(kAll, a, i), __shfl_sync(kAll, b, i)};
      if (i + run >= count) continue;
      o[i] = join_two(o[i], o[i + run], w);
    }
  }
  m = __shfl_sync(kAll, sums.x, 0);
  l = __shfl_sync(kAll, sums.y, 0);
}

// The sink, the division and the way back of two neighbouring elements of a head.
template <bool kRounded>
__device__ __forceinline__ void finish_pair(const CudaUnion& u, uint32_t head, uint32_t position, uint32_t d, const Joined<float2>& all, float* out) {
  const float sink = u.spec.sinks[head], m = larger(all.m, sink), w = exp_exact(__fsub_rn(all.m, m));
  const float l = __fadd_rn(__fmul_rn(all.l, w), exp_exact(__fsub_rn(sink, m)));
  float2 y = {__fdiv_rn(__fmul_rn(all.o.x, w), l), __fdiv_rn(__fmul_rn(all.o.y, w), l)};
  if (kRounded) y = {rounded_bf16(y.x), rounded_bf16(y.y)};
  if (const uint32_t first = u.spec.rows.width - u.rope.dim; d >= first) {
    const RopeRow rope = u.rope.at(position);
    y = {turned(y.x, y.y, rope, d - first, true), turned(y.y, y.x, rope, d + 1 - first, true)};
    if (kRounded) y = {rounded_bf16(y.x), rounded_bf16(y.y)};
  }
  *reinterpret_cast<float2*>(out + d) = y;
}

// What a warp does with its chunk, keys `begin` .. `begin + n - 1` of the list: first() asks for scores and values and gives the largest
// score, second() leaves the part.
template <RowFormat kFormat, bool kRounded, bool kBlock>
class ChunkValues {
 public:
  __device__ ChunkValues(const UnionRows& p, ValueShared<kRounded>& shared, uint32_t d)
      : rows_(p.u.spec.rows), s_(shared), warp_(threadIdx.x / kWarp), d_(d), codes_(rows_.width - rows_.rotated) {}

  __device__ float first(const UnionKeys<kBlock>& keys, const float* scores, uint32_t begin, uint32_t n) {
    const uint32_t lane = threadIdx.x % kWarp;
    scores_.load(scores + size_t{begin} * kQuad, n);
    own_ = kBlock ? min(n, max(keys.list().window, begin) - begin) : n;
    for (uint32_t j = lane; j < n; j += kWarp) {
      const uint8_t* row = keys.at(begin + j);
      s_.key[warp_][j] = row;
      if (kFormat == RowFormat::fp8 && d_ - 2 * lane < codes_ && j < own_)
        s_.scale[warp_][j] = fp8_scale(load_as<uint8_t>(row + rows_.fp8_shape().scales_at() + d_ / kSlice));
    }
    __syncwarp();
    run_.load(rows_, s_.key[warp_], own_, min(d_, rows_.width - 2));
    return scores_.largest();
  }

  __device__ void second(float m) {
    const uint32_t lane = threadIdx.x % kWarp, n = scores_.n, d = min(d_, rows_.width - 2);
    const float l = scores_.weigh(m, reinterpret_cast<float*>(s_.weight[warp_]));
    if (lane < kQuad) s_.sums[warp_][lane] = {m, l};
    __syncwarp();
    ValueSums sums;
    const auto stored = [&](auto coded) {
      add_values(rows_, s_.key[warp_], s_.weight[warp_], s_.scale[warp_], 0, own_, d, coded, run_, sums);
    };
    // Whether codes or rotated elements: mostly the same for the whole slice.
    if (d_ - 2 * lane + kSlice <= codes_) {
      stored(std::true_type());
    } else {
      stored(d < codes_);
    }
    if constexpr (kBlock) {
      ValueRun<RowFormat::f32> run;
      run.load(rows_, s_.key[warp_] + own_, n - own_, d);
      add_values(rows_, s_.key[warp_], s_.weight[warp_], s_.scale[warp_], own_, n, d, false, run, sums);
    }
#pragma unroll
    for (uint32_t h = 0; h < kQuad; ++h) s_.part[warp_][h][lane] = sums.o[h];
  }

 private:
  const StateRows& rows_;
  ValueShared<kRounded>& s_;
  const uint32_t warp_, d_, codes_;
  uint32_t own_ = 0;  // keys before those of the pass itself
  ChunkScores<kRounded> scores_;
  ValueRun<kFormat> run_;
};

template <RowFormat kFormat, bool kRounded, bool kBlock>
__global__ void __launch_bounds__(ValueShape<kRounded>::kThreads)
    union_values(const CudaStep* step, const __grid_constant__ UnionRows p) {
  constexpr uint32_t kWarps = ValueShape<kRounded>::kWarps;
  __shared__ ValueShared<kRounded> s;
  release_next();
  wait_for_previous();
  const uint32_t row = p.first + blockIdx.z, quad = blockIdx.y, lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (row >= live_rows(step, p.u.head)) return;
  const UnionKeys<kBlock> keys(p.u, step, row);
  const UnionList& list = keys.list();
  const uint32_t chunks = list.chunks(), d = blockIdx.x * kSlice + 2 * lane, head = quad * kQuad + warp;
  ChunkValues<kFormat, kRounded, kBlock> values(p, s, d);
  JoinedRuns<float2> tree;
  Joined<float2> all = {};
  float top = __uint_as_float(0xff800000u);  // of head lane % 4, over all runs before
  for (uint32_t first = 0; first < chunks; first += kWarps) {
    const uint32_t count = min(kWarps, chunks - first);
    float m = 0.0f;
    if (warp < count) {
      const uint32_t begin = list.begin(first + warp);
      m = values.first(keys, p.scores(row, quad), begin, list.begin(first + warp + 1) - begin);
      if (lane < kQuad) s.most[warp][lane] = m;
    }
    if constexpr (kRounded) {
      __syncthreads();
      m = top;
#pragma unroll
      for (uint32_t i = 0; i < kWarps; ++i) {
        if (i >= count) break;
        top = larger(top, s.most[i][lane % kQuad]);
        if (i <= warp) m = top;
      }
    }
    if (warp < count) values.second(m);
    __syncthreads();
    if (warp < kQuad) {
      float2 o[kWarps];
#pragma unroll
      for (uint32_t i = 0; i < kWarps; ++i) o[i] = i < count ? s.part[i][warp][lane] : float2{0.0f, 0.0f};
      join_chunks(lane < count ? s.sums[lane][warp] : float2{0.0f, 0.0f}, o, count, all.m, all.l);
      all.o = o[0];
      if (chunks > kWarps) tree.push(all);
    }
    __syncthreads();
  }
  if (warp >= kQuad || head >= p.u.spec.heads || d >= p.u.spec.rows.width) return;
  if (chunks > kWarps) all = tree.finish();
  finish_pair<kRounded>(p.u, head, step->position + row, d, all, p.u.out + (size_t{row} * p.u.spec.heads + head) * p.u.spec.rows.width);
}

// ---- launches

constexpr size_t kMostScores = 32 * 1024 * 1024;  // bytes

// Keys of a list, at most.
uint32_t most_keys(const UnionSpec& s, uint32_t context) {
  const uint32_t seen = s.entries.width == 0 ? 0 : context / s.entries.ratio;
  // A block's rows are more than it sees of entries: kSlots of them at most.
  return std::min(s.window, context) + std::max(kSlots, s.top != 0 ? std::min(seen, s.top) : seen);
}
uint32_t quads_of(const UnionSpec& s) { return (s.heads + kQuad - 1) / kQuad; }
size_t row_bytes(const UnionSpec& s, uint32_t context) { return size_t{most_keys(s, context)} * quads_of(s) * kQuad * sizeof(float); }
uint32_t rows_at_once(const UnionSpec& s, uint32_t rows, uint32_t context) {
  return std::min<uint32_t>(rows, static_cast<uint32_t>(std::max<size_t>(1, kMostScores / row_bytes(s, context))));
}

void check_shape(const CudaUnion& u) {
  const UnionSpec& s = u.spec;
  check_state_rows(s.rows);
  check_rotation(s.rows.width, u.rope.dim);
  if (s.rows.width > kMaxUnionDim) fail_cuda_kernel("elements of an attention head", s.rows.width, "use --device cpu");
  if (s.entries.width != 0 &&
      (s.entries.width != s.rows.width || s.entries.format != s.rows.format || s.entries.rotated != s.rows.rotated))
    fail_cuda_kernel("elements of an entry that is kept in another way than rows of the window", s.entries.width, "use --device cpu");
}

template <RowFormat kFormat, bool kBlock>
void launch_part(const CudaLaunch& on, const CudaStep* step, const UnionRows& p) {
  const UnionSpec& s = p.u.spec;
  const uint32_t dim = s.rows.width, groups = (p.quads + kScoreQuads - 1) / kScoreQuads, slices = (dim + kSlice - 1) / kSlice;
  // Rows that are many enough to fill the device share the work of loading their queries among tiles.
  const uint32_t tiles = std::min((p.keys + kTileKeys - 1) / kTileKeys, std::max(1u, 4 * on.processors / (groups * p.rows)));
  allow_shared(union_scores<kFormat, kBlock>, score_bytes(dim));
  launch(on, union_scores<kFormat, kBlock>, dim3(tiles, groups, p.rows), kScoreThreads, score_bytes(dim), step, p);
  const dim3 grid(slices, p.quads, p.rows);
  if (s.rounded) {
    launch(on, union_values<kFormat, true, kBlock>, grid, ValueShape<true>::kThreads, 0, step, p);
  } else {
    launch(on, union_values<kFormat, false, kBlock>, grid, ValueShape<false>::kThreads, 0, step, p);
  }
}

template <RowFormat kFormat>
void launch_format(const CudaLaunch& on, const CudaStep* step, const CudaUnion& u) {
  UnionRows p = {u, 0, 0, most_keys(u.spec, u.context), quads_of(u.spec)};
  const uint32_t at_once = rows_at_once(u.spec, u.rows, u.context);
  for (; p.first < u.rows; p.first += at_once) {
    p.rows = std::min(at_once, u.rows - p.first);
    u.block != nullptr ? launch_part<kFormat, true>(on, step, p) : launch_part<kFormat, false>(on, step, p);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

uint64_t union_attend_scratch(const UnionSpec& spec, uint32_t rows, uint32_t context) {
  return uint64_t{cuda::rows_at_once(spec, rows, context)} * cuda::row_bytes(spec, context);
}

void launch_union(const CudaLaunch& on, const CudaStep* step, const CudaUnion& u) {
  cuda::check_shape(u);
  switch (u.spec.rows.format) {
    case RowFormat::f32:
      return cuda::launch_format<RowFormat::f32>(on, step, u);
    case RowFormat::f16:
      return cuda::launch_format<RowFormat::f16>(on, step, u);
    case RowFormat::fp8:
      return cuda::launch_format<RowFormat::fp8>(on, step, u);
  }
}

}  // namespace stet
