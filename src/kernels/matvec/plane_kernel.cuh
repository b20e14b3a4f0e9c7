// Products through planes (plane_unit.cuh). Warps of a block work in teams; a team takes tiles, its warps share the segments of a
// tile, each a run of neighbours that it joins itself. The rings of all warps are full before the kernel waits for its predecessor.
#pragma once

#include "kernels/matvec/chunk_reader.cuh"
#include "kernels/matvec/plane_inputs.cuh"
#include "kernels/matvec/row_schedule.cuh"

namespace stet::cuda {

// The tiles of a team.
class TeamTiles {
 public:
  __device__ TeamTiles(const CudaProduct& p, const RowCut& cut, const Team& team) : p_(p), cut_(cut), teams_(team.teams), tile_(team.index) {}
  __device__ const uint8_t* next() {
    if (tile_ >= cut_.tiles) return nullptr;
    const uint8_t* tile = tile_address(p_, cut_, tile_);
    tile_ += teams_;
    return tile;
  }

 private:
  const CudaProduct& p_;
  const RowCut& cut_;
  const uint32_t teams_;
  uint32_t tile_;
};
template <typename Unit>
using PlaneReader = ChunkReader<Unit, TeamTiles>;

// What the warps of a team left for tile t becomes outputs: partial[warp][row of x][row of the tile].
template <typename Unit>
__device__ __forceinline__ void store_tile(const CudaProduct& p, const RowCut& cut, const Team& team, uint32_t t,
                                           uint32_t first_row, uint32_t rows, const float* partial) {
  const uint32_t end_row = cut.of_tile(t, cut.end_row), width = cut.of_tile(t, cut.width_of);
  float* const out = cut.of_tile(t, cut.out_of);
  for (uint32_t o = team.thread; o < rows * kTileRows; o += team.threads()) {
    const uint32_t row = t * kTileRows + o % kTileRows;
    if (row >= end_row) continue;
    float* to = out + size_t{first_row + o / kTileRows} * width + row;
    *to = output_of(p, tree_sum(partial + o, team.warps, Unit::kOutputs * kTileRows), p.accumulate ? *to : 0.0f);
  }
}

// Of rows first_row .. first_row + Unit::kOutputs - 1 of x, as far as they are there.
template <typename Unit, typename Maker>
__global__ void __launch_bounds__(kRowThreads, Unit::kOutputs == 1 ? 2 : 1)
    plane_product(const CudaStep* step, const __grid_constant__ CudaProduct p, const __grid_constant__ RowCut cut,
                  uint32_t first_row) {
  using Reader = PlaneReader<Unit>;
  constexpr uint32_t kPartial = Unit::kOutputs * kTileRows;  // floats of a warp
  uint8_t* const shared = dynamic_shared();
  release_next();
  Team team(cut.warps);
  team.index = threadIdx.x / kWarp / team.warps * gridDim.x + blockIdx.x;  // few tiles go to many processors
  const uint32_t warp = threadIdx.x / kWarp, first = team.warp * cut.per_run;
  float* partials = reinterpret_cast<float*>(shared + kRowWarps * Reader::kBytes);
  const SegmentRun run = {first, cut.per_run, cut.segments, cut.chunks, cut.k / kBlock};
  Reader reader(TeamTiles(p, cut, team), run, shared + warp * Reader::kBytes);
  Maker maker(reinterpret_cast<uint8_t*>(partials + 2 * kRowWarps * kPartial), p, step, cut.k);
  maker.fetch();
  wait_for_previous();
  const uint32_t all = live_rows(step, p.head);
  if (all <= first_row) return;
  const uint32_t rows = min(all - first_row, Unit::kOutputs);
  maker.make(p, first_row, rows);
  const PlaneInput x = maker.input();
  float* of_team = partials + (warp - team.warp) * kPartial;
#pragma unroll 1
  for (uint32_t t = team.index, turn = 0; t < cut.tiles; t += team.teams, turn ^= 1) {
    float* of_turn = of_team + turn * kRowWarps * kPartial;
    Unit::leave(sum_of_segments<Unit>(reader, run, x, 0), of_turn + team.warp * kPartial);
    team.sync();
    store_tile<Unit>(p, cut, team, t, first_row, rows, of_turn);
  }
}

// Of a block of threads.
template <typename Unit, typename Maker>
size_t plane_shared_bytes(uint32_t k) {
  const size_t bytes = kRowWarps * (PlaneReader<Unit>::kBytes + 2 * Unit::kOutputs * kTileRows * sizeof(float)) + Maker::bytes(k);
  return std::max(kPairShared, bytes);
}

// Warps of a team: few passes over the tiles, each short. What a tile costs beside its chunks is as much as a part of a chunk; more where
// warps wait for each other.
inline uint32_t plane_team_warps(const RowCut& cut, uint32_t processors) {
  constexpr double kAlone = 0.2, kTogether = 0.4;
  uint32_t best = 1;
  double best_cost = 1e30;
  for (uint32_t warps = 1; warps <= std::min(kRowWarps, cut.segments); warps *= 2) {
    const uint32_t teams = processors * (kRowWarps / warps);
    const double cost = static_cast<double>((cut.tiles + teams - 1) / teams) *
                        ((cut.chunks + warps - 1) / warps + (warps == 1 ? kAlone : kTogether));
    if (cost < best_cost) best_cost = cost, best = warps;
  }
  return best;
}

template <typename Unit, typename Maker>
void launch_planes(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  const size_t shared = plane_shared_bytes<Unit, Maker>(p.k);
  const auto kernel = plane_product<Unit, Maker>;
  allow_shared(kernel, shared);
  RowCut cut = cut_rows(p, 1, segment_count(p.k, true), on.processors);
  cut.warps = plane_team_warps(cut, on.processors);
  cut.per_run = cut.segments / cut.warps;
  for (uint32_t first_row = 0; first_row < p.rows; first_row += Unit::kOutputs)
    launch(on, kernel, dim3(on.processors), kRowThreads, shared, step, p, cut, first_row);
}

}  // namespace stet::cuda
