#include "formats/element_cuda.cuh"
#include "kernels/route/route_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct RouteRows {
  const float* logits;  // [row][experts]
  float* out;           // [row][2 * chosen]
  RouteSpec spec;
  const uint8_t* table;  // packed, a row a token; null: the bias chooses
  uint32_t columns;      // of the table
  uint64_t tile_bytes;
  bool head;
};

// kTable: the format of the table, if there is one.
template <Format kTable>
__global__ void __launch_bounds__(kRouteThreads) route_rows(const CudaStep* step, const __grid_constant__ RouteRows p) {
  __shared__ float ids[kMaxChosen], score[kMaxChosen];
  __shared__ uint64_t best[2][kRouteThreads / kWarp];
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.x, n = p.spec.chosen;
  if (row >= live_rows(step, p.head)) return;
  const float* logits = p.logits + size_t{row} * p.spec.experts;
  if (p.table == nullptr) {
    route_best(p.spec, logits, best, ids);
  } else if (threadIdx.x < n) {
    const uint32_t token = static_cast<uint32_t>(step->tokens[row]);
    ids[threadIdx.x] = element<kTable>(p.table + token / kTileRows * p.tile_bytes, p.columns, token % kTileRows, threadIdx.x);
  }
  __syncthreads();
  route_weights(p.spec, logits, ids, score, p.out + size_t{row} * 2 * n);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_route(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const RouteSpec& spec = std::get<RouteSpec>(op.spec);
  cuda::RouteRows p = {op.in, op.out, spec, nullptr, 0, 0, op.head};
  if (spec.bias == nullptr) {
    p.table = op.matrix.data;
    p.columns = op.matrix.cols;
    p.tile_bytes = op.matrix.tile_bytes();
  }
  cuda::with_elements(spec.bias == nullptr ? op.matrix.format : Format::f32, [&]<Format kTable>() {
    cuda::launch(on, cuda::route_rows<kTable>, dim3(op.rows), cuda::kRouteThreads, 0, step, p);
  });
}

}  // namespace stet
