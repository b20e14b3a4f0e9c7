// Products of the experts that a row has chosen, a row of x at a time: what gate and down share. A warp has a segment of a tile (of float
// weights a pair of segments), and fills a ring of its own with the weights. Bits as experts.h.
#pragma once

#include "base/cuda/warp_ring.cuh"
#include "kernels/experts/expert_input.cuh"
#include "kernels/experts/experts.h"
#include "kernels/matvec/matvec_shape.cuh"
#include "kernels/rounding/round_value.h"
#include "kernels/route/route.h"

namespace stet::cuda {

constexpr uint32_t kExpertWarps = kRowThreads / kWarp;
constexpr uint32_t kExpertStages = 2;

// All experts of a launch have the same shape.
struct ExpertProduct {
  const float *in, *routes, *shared;          // [row][in_width], [row][2 * chosen], [row][n]
  float* out;                                 // [row][out_width]
  const uint8_t *const *first, *const *second;  // [experts]: gate and up, or down and null
  uint64_t tile_bytes;
  uint32_t in_width, out_width;
  uint32_t k, n, tiles;  // of an expert's matrix
  uint32_t experts, chosen;
  uint32_t segments, chunks;
  float limit;
  bool rounded, head;
};

// The matrices of a row's slots, in shared memory.
struct ChosenExperts {
  const uint8_t* matrix[2][kMaxChosen];
};

// By all threads of a block. The ids are read past the first cache: it may still hold those of another layer.
__device__ __forceinline__ void find_chosen(const ExpertProduct& p, uint32_t row, ChosenExperts& chosen) {
  const uint32_t slot = threadIdx.x % kMaxChosen, of = threadIdx.x / kMaxChosen;
  if (slot < p.chosen && of < (p.second == nullptr ? 1 : 2)) {
    const uint32_t expert = expert_index(__ldcg(p.routes + size_t{row} * 2 * p.chosen + slot), p.experts);
    chosen.matrix[of][slot] = (of == 0 ? p.first : p.second)[expert];
  }
  __syncthreads();
}

// A run: what a warp multiplies before it leaves its sums. Columns are those of the lane's segment.
struct ExpertRun {
  const uint8_t* tile;
  uint32_t begin, length, longest;  // longest: of the warp's segments
  uint32_t x;                       // where column 0 lies in the input
};

template <typename Unit>
__device__ __forceinline__ ExpertRun expert_run(const ExpertProduct& p, const uint8_t* matrix, uint32_t tile, uint32_t run, uint32_t x) {
  const uint32_t segment = Unit::kSegments == 2 ? run * 2 + threadIdx.x % kWarp / 16 : run;
  const uint32_t begin = segment_start(segment, p.segments, p.chunks) * kChunk;
  const uint32_t end = min(segment_start(segment + 1, p.segments, p.chunks) * kChunk, p.k);
  const uint32_t length = end > begin ? end - begin : 0;
  return {matrix + tile * p.tile_bytes, begin, length, Unit::kSegments == 2 ? __reduce_max_sync(kAll, length) : length, x};
}

// Reads the weights of a warp's runs, in order. Runs::find(i, run): the i-th, if there is one.
template <typename Unit, typename Runs>
class ExpertReader {
 public:
  using Ring = WarpRing<kExpertStages, Unit::kSegments, Unit::kBytes>;
  // Of a block of threads.
  static constexpr uint32_t kBytes = kExpertWarps * (Ring::kBytes + Ring::kBarrierBytes);

  // memory: kBytes, aligned to 128.
  __device__ ExpertReader(const Runs& runs, uint8_t* memory)
      : runs_(runs),
        ring_(memory + threadIdx.x / kWarp * Ring::kBytes, memory + kExpertWarps * Ring::kBytes + threadIdx.x / kWarp * Ring::kBarrierBytes) {
    more_ = runs_.find(0, run_);
    skip_empty();
#pragma unroll 1
    for (uint32_t i = 0; i < kExpertStages && more_; ++i) request();
  }
  __device__ typename Unit::Sums sum(const ExpertRun& run, const typename Unit::Input& x) {
    typename Unit::Sums sums = {};
#pragma unroll 1
    for (uint32_t at = 0; at < run.longest; at += Unit::kColumns) {
      const uint8_t* unit = ring_.wait();
      if (at < run.length) Unit::add(unit, min(Unit::kColumns, run.length - at), x, run.x + run.begin + at, sums);
      ring_.release();
      if (more_) request();
    }
    return sums;
  }

 private:
  __device__ void request() {
    const uint32_t columns = at_ < run_.length ? min(Unit::kColumns, run_.length - at_) : 0;
    ring_.request(run_.tile + Unit::offset(run_.begin + at_), Unit::bytes(columns));
    at_ += Unit::kColumns;
    if (at_ < run_.longest) return;
    at_ = 0;
    more_ = runs_.find(++next_, run_);
    skip_empty();
  }
  __device__ void skip_empty() {
    while (more_ && run_.longest == 0) more_ = runs_.find(++next_, run_);
  }

  const Runs& runs_;
  Ring ring_;
  ExpertRun run_;
  uint32_t next_ = 0, at_ = 0;
  bool more_;
};

// The tree over what `runs` runs have left, kTileRows floats each.
__device__ __forceinline__ float tree_of_runs(const float* partial, uint32_t runs) {
  return runs == 32 ? tree_of<32>(partial, kTileRows) : tree_sum(partial, runs, kTileRows);
}

__device__ __forceinline__ float rounded_if(bool rounded, float x) { return rounded ? rounded_bf16(x) : x; }

// Calls launch<Unit>() with what multiplies such weights and activations.
template <typename Launch>
void with_expert_unit(const PackedMatrix& m, const Launch& launch) {
  const auto of_format = [&]<Format kFormat>() {
    if constexpr (kPlaneWeights<kFormat>) {
      if (m.input == ActKind::e4m3) return launch.template operator()<PlaneUnit<kFormat, ActKind::e4m3, 1>>();
      if (m.input == ActKind::i8) return launch.template operator()<PlaneUnit<kFormat, ActKind::i8, 1>>();
    } else if constexpr (kIntegerWeights<kFormat> || kFloatWeights<kFormat>) {
      return launch.template operator()<RowUnit<kFormat>>();
    }
    fail_cuda_format("CUDA", static_cast<uint32_t>(kFormat));
  };
  switch (m.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return of_format.template operator()<Format::id>();
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet::cuda
