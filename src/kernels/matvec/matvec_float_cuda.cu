// Products with float weights: every output and segment is one chain of fma in k order. A lane has kRows rows of one segment; a warp
// walks its 2 kRows segments side by side.
#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/cuda/activations.h"
#include "kernels/matvec/matvec_shape.cuh"

namespace stet::cuda {
namespace {

struct FloatCut {
  uint32_t tiles, segments, chunks, k;
  uint32_t stride;  // floats of a warp's partial sums
};

constexpr uint32_t kStageBytes = 1024;
constexpr uint32_t kFloatStages = 5;

template <typename Element, uint32_t kRows>
struct FloatShape {
  static constexpr uint32_t kSegments = 2 * kRows;             // of a warp
  static constexpr uint32_t kStepBytes = kTileRows * sizeof(Element);  // a column of a tile
  static constexpr uint32_t kSteps = kStageBytes / kSegments / kStepBytes;  // columns of a stage
  static constexpr uint32_t kSegmentBytes = kSteps * kStepBytes + 32;       // 32: segments lie in different banks
  static constexpr uint32_t kRingBytes = kFloatStages * kSegments * kSegmentBytes;
  static_assert(kSteps >= 2 && kSteps % 2 == 0);
};

// Elements of kRows neighbouring rows.
template <typename Element, uint32_t kRows>
struct alignas(kRows * sizeof(Element)) Elements {
  Element e[kRows];
};

template <Format kFormat, uint32_t kRows>
class FloatReader {
 public:
  using Element = typename CudaWeights<kFormat>::Element;
  using Shape = FloatShape<Element, kRows>;
  // longest: columns of the longest of the warp's segments.
  __device__ FloatReader(const CudaProduct& p, const FloatCut& cut, const Team& team, uint32_t first_segment, uint32_t longest, uint8_t* ring)
      : p_(p), cut_(cut), teams_(team.teams), first_(first_segment), longest_(longest), tile_(p.gated ? 2 * team.index : team.index),
        more_(longest > 0 && tile_ < cut.tiles), ring_(ring) {
#pragma unroll
    for (uint32_t i = 0; i < kFloatStages; ++i) request(i);
  }
  __device__ const uint8_t* next() {
    copy_wait<kFloatStages - 1>();
    __syncwarp();
    return ring_ + stage_ * Shape::kSegments * Shape::kSegmentBytes;
  }
  __device__ void done() {
    __syncwarp();
    request(stage_);
    stage_ = stage_ + 1 == kFloatStages ? 0 : stage_ + 1;
  }

 private:
  __device__ void request(uint32_t stage) {
    if (more_) {
      const TilePlace place = tile_place(p_, tile_);
      const uint8_t* tile = place.matrix->data + place.tile * p_.tile_bytes;
      constexpr uint32_t kPieces = Shape::kSteps * Shape::kStepBytes / 16;  // of a segment
      for (uint32_t i = threadIdx.x % kWarp; i < Shape::kSegments * kPieces; i += kWarp) {
        const uint32_t s = first_ + i / kPieces, byte = i % kPieces * 16;
        const uint32_t begin = segment_start(s, cut_.segments, cut_.chunks) * kChunk;
        const uint32_t end = min(segment_start(s + 1, cut_.segments, cut_.chunks) * kChunk, cut_.k);
        if (begin + done_ + byte / Shape::kStepBytes >= end) continue;
        copy_async16(ring_ + (stage * Shape::kSegments + i / kPieces) * Shape::kSegmentBytes + byte,
                     tile + size_t{begin + done_} * Shape::kStepBytes + byte);
      }
      done_ += Shape::kSteps;
      if (done_ >= longest_) advance();
    }
    copy_commit();
  }
  __device__ void advance() {
    done_ = 0;
    tile_ += !p_.gated ? teams_ : (tile_ & 1u) == 0 ? 1 : 2 * teams_ - 1;
    more_ = tile_ < cut_.tiles;
  }

  const CudaProduct& p_;
  const FloatCut& cut_;
  uint32_t teams_, first_, longest_, tile_, done_ = 0, stage_ = 0;
  bool more_;
  uint8_t* ring_;
};

template <uint32_t kColumns>
__device__ __forceinline__ void load_columns(const float* x, float (&out)[kColumns]) {
  if constexpr (kColumns == 1) {
    out[0] = *x;
  } else if constexpr (kColumns == 2) {
    const float2 v = *reinterpret_cast<const float2*>(x);
    out[0] = v.x, out[1] = v.y;
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kColumns; i += 4) {
      const float4 v = *reinterpret_cast<const float4*>(x + i);
      out[i] = v.x, out[i + 1] = v.y, out[i + 2] = v.z, out[i + 3] = v.w;
    }
  }
}

template <Format kFormat, uint32_t kRows, uint32_t kColumns>
__device__ __forceinline__ void add_column(const Elements<typename CudaWeights<kFormat>::Element, kRows>* w, const float* x,
                                           float (&acc)[kRows][kColumns]) {
  float v[kColumns];
  load_columns<kColumns>(x, v);
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    const float weight = CudaWeights<kFormat>::value(w->e[r]);
#pragma unroll
    for (uint32_t c = 0; c < kColumns; ++c) acc[r][c] = __fmaf_rn(weight, v[c], acc[r][c]);
  }
}

// The tree over the segments of a warp, which lie in neighbouring groups of lanes. (a + b and b + a are the same bits.)
template <uint32_t kRows, uint32_t kColumns>
__device__ __forceinline__ void fold_segments(float (&acc)[kRows][kColumns]) {
#pragma unroll
  for (uint32_t distance = kTileRows / kRows; distance < kWarp; distance *= 2)
#pragma unroll
    for (uint32_t r = 0; r < kRows; ++r)
#pragma unroll
      for (uint32_t c = 0; c < kColumns; ++c) acc[r][c] = __fadd_rn(acc[r][c], __shfl_xor_sync(kAll, acc[r][c], distance));
}

template <Format kFormat, uint32_t kRows, uint32_t kColumns>
__global__ void __launch_bounds__(kProductThreads, 1)
    float_product(const CudaStep* step, const __grid_constant__ CudaProduct p, const __grid_constant__ FloatCut cut) {
  using Reader = FloatReader<kFormat, kRows>;
  using Shape = typename Reader::Shape;
  using Lane = Elements<typename Reader::Element, kRows>;
  uint8_t* const shared = dynamic_shared();
  release_next();
  const Team team(cut.segments / Shape::kSegments);
  const uint32_t lane = threadIdx.x % kWarp, of_warp = lane / (kTileRows / kRows), row = lane % (kTileRows / kRows) * kRows;
  const uint32_t first = team.warp * Shape::kSegments, segment = first + of_warp;
  const uint32_t begin = segment_start(segment, cut.segments, cut.chunks) * kChunk;
  const uint32_t end = min(segment_start(segment + 1, cut.segments, cut.chunks) * kChunk, cut.k);
  const uint32_t length = end > begin ? end - begin : 0, longest = __reduce_max_sync(kAll, length);
  Reader reader(p, cut, team, first, longest, shared + threadIdx.x / kWarp * Shape::kRingBytes);
  float* partial = reinterpret_cast<float*>(shared + kProductWarps * Shape::kRingBytes) +
                   threadIdx.x / kWarp / team.warps * team.warps * 2 * cut.stride;
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head), first_row = blockIdx.y * kCudaGroup;
  if (first_row >= rows) return;
  const uint32_t columns = min(kColumns, rows - first_row);
  const float* x = reinterpret_cast<const float*>(p.x) + size_t{blockIdx.y} * kCudaGroup * cut.k + size_t{begin} * kColumns;
  constexpr uint32_t kKept = kColumns == 1 ? 1 : kColumns / 2;
  float kept[kKept];
  uint32_t turn = 0;
  const uint32_t pair = p.gated ? 2 : 1;
  for (uint32_t t0 = team.index * pair; t0 < cut.tiles; t0 += team.teams * pair)
    for (uint32_t t = t0; t < t0 + pair; ++t, turn ^= 1) {
      float acc[kRows][kColumns] = {};
      for (uint32_t k = 0; k < longest; k += Shape::kSteps) {
        const uint8_t* stage = reader.next() + of_warp * Shape::kSegmentBytes + row * sizeof(typename Reader::Element);
        const float* xk = x + size_t{k} * kColumns;
        if (k + Shape::kSteps <= length) {
#pragma unroll
          for (uint32_t i = 0; i < Shape::kSteps; ++i)
            add_column<kFormat, kRows, kColumns>(reinterpret_cast<const Lane*>(stage + i * Shape::kStepBytes), xk + i * kColumns, acc);
        } else {
          for (uint32_t i = 0; k + i < length; ++i)
            add_column<kFormat, kRows, kColumns>(reinterpret_cast<const Lane*>(stage + i * Shape::kStepBytes), xk + i * kColumns, acc);
        }
        reader.done();
      }
      fold_segments<kRows, kColumns>(acc);
      float* of_turn = partial + turn * team.warps * cut.stride;
#pragma unroll
      for (uint32_t c = 0; c < kColumns; ++c)
#pragma unroll
        for (uint32_t r = 0; r < kRows; ++r)
          if (of_warp == 0 && c < columns) of_turn[team.warp * cut.stride + c * kTileRows + row + r] = acc[r][c];
      team.sync();
      finish_tile(p, team, t, columns, first_row, of_turn, cut.stride, kept);
    }
}

template <Format kFormat, uint32_t kRows, uint32_t kColumns>
void launch_shape(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p, FloatCut cut) {
  using Shape = FloatShape<typename CudaWeights<kFormat>::Element, kRows>;
  cut.stride = kColumns * kTileRows;
  const uint32_t tasks = p.gated ? cut.tiles / 2 : cut.tiles, teams = kProductWarps / (cut.segments / Shape::kSegments);
  constexpr size_t kShared = kProductWarps * (Shape::kRingBytes + 2 * kColumns * kTileRows * sizeof(float));
  const auto kernel = float_product<kFormat, kRows, kColumns>;
  allow_shared(kernel, kShared);
  const uint32_t blocks = std::min(on.processors, (tasks + teams - 1) / teams);
  launch(on, kernel, dim3(blocks, (p.rows + kCudaGroup - 1) / kCudaGroup), kProductThreads, kShared, step, p, cut);
}

template <Format kFormat, uint32_t kRows>
void launch_columns(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p, const FloatCut& cut) {
  switch (cuda_float_columns(p.rows)) {
    case 1: return launch_shape<kFormat, kRows, 1>(on, step, p, cut);
    case 2: return launch_shape<kFormat, kRows, 2>(on, step, p, cut);
    case 4: return launch_shape<kFormat, kRows, 4>(on, step, p, cut);
    default: return launch_shape<kFormat, kRows, 8>(on, step, p, cut);
  }
}

// The most rows a lane that leave every warp of the device a tile of its own.
template <Format kFormat>
void launch_float(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  FloatCut cut = {};
  cut.segments = segment_count(p.k, false);
  cut.chunks = chunk_count(p.k);
  cut.k = p.k;
  cut.tiles = tile_count(p);
  const uint64_t tasks = p.gated ? cut.tiles / 2 : cut.tiles, warps = uint64_t{on.processors} * kProductWarps;
  const auto fits = [&](uint32_t rows) { return cut.segments % (2 * rows) == 0 && tasks * (cut.segments / (2 * rows)) * 10 >= warps * 9; };
  if (fits(4)) return launch_columns<kFormat, 4>(on, step, p, cut);
  if (fits(2) || cut.segments / 2 > kProductWarps) return launch_columns<kFormat, 2>(on, step, p, cut);
  launch_columns<kFormat, 1>(on, step, p, cut);
}

}  // namespace
template <Format kFormat>
void launch_if_float(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (kFloatWeights<kFormat>) {
    launch_float<kFormat>(on, step, p);
  } else {
    fail_cuda_format("float", static_cast<uint32_t>(kFormat));
  }
}

}  // namespace stet::cuda

namespace stet {

void launch_float_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id: return cuda::launch_if_float<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
