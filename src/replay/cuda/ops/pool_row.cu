#include "formats/element_cuda.cuh"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

// An element of c and of z a thread.
template <Format kFormat>
struct PoolRow {
  const float *c, *z;  // [row][width]
  float* out;          // [row][2 * width]
  StateRows rows;
  const uint8_t* table;  // packed: a row for each place in an entry
  uint64_t tile_bytes;
  uint32_t places, width;
  __device__ void operator()(const CudaStep& step, uint32_t row, uint32_t d) const {
    const uint32_t t = step.position + row, place = t % places;
    const uint8_t* tile = table + place / kTileRows * tile_bytes;
    const size_t at = size_t{row} * width + d;
    const float own = c[at], score = __fadd_rn(z[at], element<kFormat>(tile, width, place % kTileRows, d));
    float *to = out + size_t{row} * 2 * width, *stored = rows.row(t);
    to[d] = stored[d] = own;
    to[width + d] = stored[width + d] = score;
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_pool_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const PoolRowSpec& spec = std::get<PoolRowSpec>(op.spec);
  const PackedMatrix& table = spec.position;
  cuda::with_elements(table.format, [&]<Format kFormat>() {
    cuda::launch_elements(on, step, op, table.cols,
                          cuda::PoolRow<kFormat>{op.in, op.in2, op.out, spec.rows, table.data, table.tile_bytes(), table.rows, table.cols});
  });
}

}  // namespace stet
