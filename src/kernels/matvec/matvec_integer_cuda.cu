// Integer-block products: a persistent grid, every warp with a ring of weight chunks that it fills itself.
#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/cuda/activations.h"
#include "kernels/matvec/matvec_shape.cuh"

namespace stet::cuda {
namespace {

// How a launch is cut, worked out on the host.
struct Cut {
  uint32_t tiles, team_warps, segments, chunks, blocks;
  uint32_t stride;  // floats of a warp's partial sums
};

template <Format kFormat>
struct Ring {
  using W = CudaWeights<kFormat>;
  static constexpr uint32_t kBlockBytes = W::kCodes + W::kScales;
  static constexpr uint32_t kChunkBytes = kChunkBlocks * kBlockBytes;
  static constexpr uint32_t kStages = kChunkBytes <= 1280 ? 4 : 3;
  static constexpr uint32_t kBytes = kProductWarps * kStages * kChunkBytes;
};

// The chunks that a warp reads, in order: chunks begin .. end - 1 of every tile of its team.
template <Format kFormat>
class Reader {
 public:
  using R = Ring<kFormat>;
  __device__ Reader(const CudaProduct& p, const Cut& cut, const Team& team, uint32_t begin, uint32_t end, uint8_t* ring)
      : p_(p), cut_(cut), teams_(team.teams), begin_(begin), end_(end), tile_(p.gated ? 2 * team.index : team.index), chunk_(begin),
        more_(begin < end && tile_ < cut.tiles), ring_(ring) {
    if (more_) open();
#pragma unroll
    for (uint32_t i = 0; i < R::kStages; ++i) request(i);
  }
  // The next chunk, when it is there.
  __device__ const uint8_t* next() {
    copy_wait<R::kStages - 1>();
    __syncwarp();
    return ring_ + stage_ * R::kChunkBytes;
  }
  // The chunk of next() was used: its place is filled anew.
  __device__ void done() {
    __syncwarp();
    request(stage_);
    stage_ = stage_ + 1 == R::kStages ? 0 : stage_ + 1;
  }

 private:
  __device__ void open() {
    const TilePlace place = tile_place(p_, tile_);
    at_ = place.matrix->data + place.tile * p_.tile_bytes + size_t{begin_} * R::kChunkBytes;
  }
  __device__ void request(uint32_t stage) {
    if (more_) {
      const uint32_t blocks = min(kChunkBlocks, cut_.blocks - chunk_ * kChunkBlocks), bytes = blocks * R::kBlockBytes;
      uint8_t* to = ring_ + stage * R::kChunkBytes;
      for (uint32_t i = threadIdx.x % kWarp * 16; i < bytes; i += kWarp * 16) copy_async16(to + i, at_ + i);
      at_ += R::kChunkBytes;
      if (++chunk_ == end_) advance();
    }
    copy_commit();
  }
  __device__ void advance() {
    chunk_ = begin_;
    // Gate and up of a tile follow each other, then the team's next pair.
    tile_ += !p_.gated ? teams_ : (tile_ & 1u) == 0 ? 1 : 2 * teams_ - 1;
    more_ = tile_ < cut_.tiles;
    if (more_) open();
  }

  const CudaProduct& p_;
  const Cut& cut_;
  uint32_t teams_, begin_, end_, tile_, chunk_, stage_ = 0;
  bool more_;
  const uint8_t* at_ = nullptr;
  uint8_t* ring_;
};

// Sums of a lane: rows 2g and 2g + 1 of a tile, columns 2t and 2t + 1 of each group of 8.
template <uint32_t kGroups>
struct Sums {
  float v[kGroups][4];
  __device__ void clear() {
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) v[i][j] = 0.0f;
  }
  __device__ void add_left(const Sums& left) {
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) v[i][j] = __fadd_rn(left.v[i][j], v[i][j]);
  }
};

template <Format kFormat, uint32_t kGroups>
__device__ __forceinline__ void add_block(const uint8_t* codes, const uint8_t* scales, const uint8_t* const x[kGroups],
                                          const bool live[kGroups], Sums<kGroups>& sums) {
  using W = CudaWeights<kFormat>;
  const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const float2 d = W::scale(scales, g), m = W::minimum(scales, g);
#pragma unroll
  for (uint32_t i = 0; i < kGroups; ++i) {
    const uint2 b = live[i] ? *reinterpret_cast<const uint2*>(x[i] + lane * 8) : uint2{0, 0};
    const int4 s = *reinterpret_cast<const int4*>(x[i] + 256 + t * 16);
    const BlockInput in = {b.x, b.y, {__int_as_float(s.x), __int_as_float(s.y)}, {s.z, s.w}};
    int2 high = {0, 0};
    if constexpr (W::kHalves) high = *reinterpret_cast<const int2*>(x[i] + 352 + t * 8);
    const int32_t highs[2] = {high.x, high.y};
    float f[4];
    W::product(codes, scales, lane, in, highs, f);
#pragma unroll
    for (int j = 0; j < 4; ++j) sums.v[i][j] = __fmaf_rn(__fmul_rn(j < 2 ? d.x : d.y, in.d[j & 1]), f[j], sums.v[i][j]);
    if constexpr (W::kMinimum) {
      const float2 scaled = *reinterpret_cast<const float2*>(x[i] + 320 + t * 8);
#pragma unroll
      for (int j = 0; j < 4; ++j) sums.v[i][j] = __fmaf_rn(j < 2 ? m.x : m.y, (j & 1) == 0 ? scaled.x : scaled.y, sums.v[i][j]);
    }
  }
}

template <Format kFormat, uint32_t kGroups>
__device__ __forceinline__ void add_chunk(const uint8_t* chunk, uint32_t blocks, const uint8_t* x, size_t group_bytes,
                                          const bool live[kGroups], Sums<kGroups>& sums) {
  using W = CudaWeights<kFormat>;
  const auto block = [&](uint32_t b, uint32_t of) {
    const uint8_t* at[kGroups];
#pragma unroll
    for (uint32_t i = 0; i < kGroups; ++i) at[i] = x + i * group_bytes + b * kCudaRecord;
    add_block<kFormat, kGroups>(chunk + b * W::kCodes, chunk + of * W::kCodes + b * W::kScales, at, live, sums);
  };
  if (blocks == kChunkBlocks) {
#pragma unroll
    for (uint32_t b = 0; b < kChunkBlocks; ++b) block(b, kChunkBlocks);
  } else {
    for (uint32_t b = 0; b < blocks; ++b) block(b, blocks);
  }
}

// Segments first .. first + n - 1 of a tile, as the subtree that they are; n a power of two, at most 16.
template <Format kFormat, uint32_t kGroups>
__device__ __forceinline__ Sums<kGroups> sum_segments(Reader<kFormat>& reader, const Cut& cut, uint32_t first, uint32_t n,
                                                      const uint8_t* x, size_t group_bytes, const bool live[kGroups]) {
  Sums<kGroups> sums, level[4];
  for (uint32_t i = 0; i < n; ++i) {
    sums.clear();
    const uint32_t end = segment_start(first + i + 1, cut.segments, cut.chunks);
    for (uint32_t c = segment_start(first + i, cut.segments, cut.chunks); c < end; ++c) {
      const uint8_t* chunk = reader.next();
      add_chunk<kFormat, kGroups>(chunk, min(kChunkBlocks, cut.blocks - c * kChunkBlocks), x + size_t{c} * kChunkBlocks * kCudaRecord,
                                  group_bytes, live, sums);
      reader.done();
    }
    bool open = true;
#pragma unroll
    for (uint32_t l = 0; l < 4; ++l) {
      if (!open) continue;
      if ((i >> l & 1u) != 0) {
        sums.add_left(level[l]);
      } else {
        level[l] = sums;
        open = false;
      }
    }
  }
  return sums;
}

template <uint32_t kGroups>
__device__ __forceinline__ void leave_sums(const Sums<kGroups>& sums, uint32_t columns, float* partial) {
  const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
#pragma unroll
  for (uint32_t i = 0; i < kGroups; ++i)
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j)
      if (const uint32_t column = i * 8 + 2 * t + (j & 1); column < columns) partial[column * kTileRows + 2 * g + j / 2] = sums.v[i][j];
}

template <Format kFormat, uint32_t kGroups>
__global__ void __launch_bounds__(kProductThreads, 1)
    integer_product(const CudaStep* step, const __grid_constant__ CudaProduct p, const __grid_constant__ Cut cut) {
  constexpr uint32_t kColumns = kGroups * 8;
  uint8_t* const shared = dynamic_shared();
  release_next();
  const Team team(cut.team_warps);
  const uint32_t per_warp = cut.segments / team.warps, first = team.warp * per_warp;
  const uint32_t begin = segment_start(first, cut.segments, cut.chunks), end = segment_start(first + per_warp, cut.segments, cut.chunks);
  using R = Ring<kFormat>;
  Reader<kFormat> reader(p, cut, team, begin, end, shared + threadIdx.x / kWarp * (R::kStages * R::kChunkBytes));
  float* partial = reinterpret_cast<float*>(shared + R::kBytes) + threadIdx.x / kWarp / team.warps * team.warps * 2 * cut.stride;
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head), first_row = blockIdx.y * kColumns;
  if (first_row >= rows) return;
  const uint32_t columns = min(kColumns, rows - first_row);
  const size_t group_bytes = size_t{cut.blocks} * kCudaRecord;
  const uint8_t* x = p.x + blockIdx.y * kGroups * group_bytes;
  bool live[kGroups];
#pragma unroll
  for (uint32_t i = 0; i < kGroups; ++i) live[i] = i * 8 + threadIdx.x % kWarp / 4 < columns;
  constexpr uint32_t kKept = kGroups * 4;
  float kept[kKept];
  uint32_t turn = 0;
  const uint32_t pair = p.gated ? 2 : 1;
  for (uint32_t t0 = team.index * pair; t0 < cut.tiles; t0 += team.teams * pair)
    for (uint32_t t = t0; t < t0 + pair; ++t, turn ^= 1) {
      const Sums<kGroups> sums = sum_segments<kFormat, kGroups>(reader, cut, first, per_warp, x, group_bytes, live);
      float* of_turn = partial + turn * team.warps * cut.stride;
      leave_sums(sums, columns, of_turn + team.warp * cut.stride);
      team.sync();
      finish_tile(p, team, t, columns, first_row, of_turn, cut.stride, kept);
    }
}

template <Format kFormat, uint32_t kGroups>
void launch_groups(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  Cut cut = {};
  cut.segments = segment_count(p.k, true);
  cut.chunks = chunk_count(p.k);
  cut.blocks = p.k / kBlock;
  cut.tiles = tile_count(p);
  const uint32_t tasks = p.gated ? cut.tiles / 2 : cut.tiles;
  cut.team_warps = team_warps(tasks, on.processors, cut.segments);
  const uint32_t teams = kProductWarps / cut.team_warps;
  cut.stride = std::min(p.rows, kGroups * 8) * kTileRows;
  const size_t shared = Ring<kFormat>::kBytes + kProductWarps * 2 * cut.stride * sizeof(float);
  const auto kernel = integer_product<kFormat, kGroups>;
  allow_shared(kernel, Ring<kFormat>::kBytes + kProductWarps * 2 * kGroups * 8 * kTileRows * sizeof(float));
  const uint32_t blocks = std::min(on.processors, (tasks + teams - 1) / teams);
  launch(on, kernel, dim3(blocks, (p.rows + kGroups * 8 - 1) / (kGroups * 8)), kProductThreads, shared, step, p, cut);
}

}  // namespace

template <Format kFormat>
void launch_integer(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if (p.rows <= 8) return launch_groups<kFormat, 1>(on, step, p);
  launch_groups<kFormat, 2>(on, step, p);
}

template <Format kFormat>
void launch_if_integer(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (kIntegerWeights<kFormat>) {
    launch_integer<kFormat>(on, step, p);
  } else {
    fail_cuda_format("integer", static_cast<uint32_t>(kFormat));
  }
}

}  // namespace stet::cuda

namespace stet {

void launch_integer_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id: return cuda::launch_if_integer<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
