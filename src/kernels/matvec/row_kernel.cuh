// Products with few rows of activations. A warp (of float weights half a warp) has a segment of a tile. Its ring is
// full before the kernel waits for its predecessor.
#pragma once

#include "kernels/matvec/row_partials.cuh"

namespace stet::cuda {

// The tree over what the segments of a run give.
template <typename Unit, uint32_t kStages>
__device__ __forceinline__ typename Unit::Sums sum_of_run(RowReader<Unit, kStages>& reader,
                                                          const Segments<Unit::kSegments == 2>& segments, uint32_t runs,
                                                          const typename Unit::Input& x) {
  const uint32_t per_run = Unit::kSegments == 2 ? runs : 1;
  typename Unit::Sums left = {}, sums = {};
#pragma unroll 1
  for (uint32_t j = 0; j < per_run; ++j) {
    left = sums;
    sums = {};
    const Segment s = segments.of(j);
    const uint32_t longest = segments.longest(j);
#pragma unroll 1
    for (uint32_t at = 0; at < longest; at += Unit::kColumns) {
      const uint8_t* unit = reader.next();
      if (at < s.length) Unit::add(unit, min(Unit::kColumns, s.length - at), x, s.begin + at, sums);
      reader.done();
    }
  }
  return per_run == 2 ? Unit::joined(left, sums) : sums;
}

// Tiles that no ring has room for yet are brought into the second cache, a part a lane of one warp: between two products the memory would
// rest while outputs are made, the next kernel is let in, and activations are prepared.
constexpr uint32_t kAheadPart = 8192, kAheadParts = 8;
__device__ __forceinline__ void fetch_ahead(const CudaProduct& p, const RowCut& cut, const Schedule& schedule, uint32_t rounds_in_rings) {
  const uint32_t tile_bytes = static_cast<uint32_t>(p.tile_bytes), of_tile = (tile_bytes + kAheadPart - 1) / kAheadPart;
  const uint32_t part = threadIdx.x % of_tile, at = rounds_in_rings * schedule.slots + threadIdx.x / of_tile;
  if (threadIdx.x >= kAheadParts || at >= schedule.rounds * schedule.slots) return;
  const uint32_t t = schedule.tile(at / schedule.slots, at % schedule.slots);
  if (t >= cut.tiles) return;
  prefetch_second(tile_address(p, cut, t) + part * kAheadPart, min(kAheadPart, tile_bytes - part * kAheadPart));
}

template <typename Unit, uint32_t kStages, uint32_t kBuffers>
__global__ void __launch_bounds__(kRowThreads, Unit::kOutputs == 1 ? 2 : 1)
    row_product(const CudaStep* step, const __grid_constant__ CudaProduct p, const __grid_constant__ RowCut cut) {
  using Reader = RowReader<Unit, kStages>;
  using Ring = typename Reader::Ring;
  using Sums = Partials<Unit::kOutputs, kBuffers>;
  uint8_t* const shared = dynamic_shared();
  release_next();
  const uint32_t warp = threadIdx.x / kWarp, slot = warp / cut.warps;
  const uint32_t outputs = min(Unit::kOutputs, live_rows(step, p.head));
  uint8_t* barriers = shared + kRowWarps * Ring::kBytes;
  const Sums partials(barriers + kRowWarps * Ring::kBarrierBytes);
  if (threadIdx.x == 0) partials.init(max(1u, outputs));
  const Schedule schedule(p, cut);
  const uint32_t half = Unit::kSegments == 2 ? threadIdx.x % kWarp / 16 : 0;
  const Segments<Unit::kSegments == 2> segments(cut, (warp % cut.warps * Unit::kSegments + half) * cut.per_run);
  Reader reader(p, cut, schedule, segments, slot,
                Ring(shared + warp * Ring::kBytes, barriers + warp * Ring::kBarrierBytes));
  if (warp == 0) fetch_ahead(p, cut, schedule, kStages * Unit::kColumns * cut.segments / max(cut.k, 1u));
  typename Unit::Maker maker(barriers + kRowWarps * Ring::kBarrierBytes + Sums::kBytes, p, step, cut.k);
  maker.fetch();
  wait_for_previous();
  if (outputs == 0) return reader.drain();
  maker.make();
  Finisher<Sums> finisher(p, cut, schedule, partials);
#pragma unroll 1
  for (uint32_t round = 0; round < schedule.rounds; ++round) {
    const uint32_t output = schedule.output_of(warp, round, outputs);
    const bool finishes = output < outputs && schedule.ends_task(round);
    if (finishes) finisher.begin(round, output);
    const bool works = slot < cut.slots && schedule.tile(round, slot) < cut.tiles;
    typename Unit::Sums sums = {};
    if (works) sums = sum_of_run<Unit, kStages>(reader, segments, cut.per_run, maker.input());
    partials.begin(round);
    if (works) Unit::leave(sums, partials.of(round) + warp * Sums::kStride);
    partials.left(round);
    if (finishes) finisher.end(round);
  }
}

// Of a block of threads.
template <typename Unit, uint32_t kStages, uint32_t kBuffers>
size_t row_shared_bytes(uint32_t k) {
  using Ring = typename RowReader<Unit, kStages>::Ring;
  const size_t bytes = kRowWarps * (Ring::kBytes + Ring::kBarrierBytes) + Partials<Unit::kOutputs, kBuffers>::kBytes +
                       Unit::input_bytes(k);
  return std::max(kPairShared, bytes);
}

template <typename Unit, uint32_t kStages, uint32_t kBuffers>
void launch_rows(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  const size_t shared = row_shared_bytes<Unit, kStages, kBuffers>(p.k);
  const auto kernel = row_product<Unit, kStages, kBuffers>;
  allow_shared(kernel, shared);
  const RowCut cut = cut_rows(p, Unit::kSegments, segment_count(p.k, traits(p.format).integer_block), on.processors);
  launch(on, kernel, dim3(on.processors), kRowThreads, shared, step, p, cut);
}

}  // namespace stet::cuda
