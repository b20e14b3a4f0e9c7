#include "formats/element_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct PoolRows {
  const float *c, *z;  // [row][width]
  float* out;          // [row][2 * width]
  StateRows rows;
  const uint8_t* table;  // packed: a row for each place in an entry
  uint64_t tile_bytes;
  uint32_t places, width;
  bool head;
};

constexpr uint32_t kPoolThreads = 128;

template <Format kFormat>
__global__ void __launch_bounds__(kPoolThreads) pool_rows(const CudaStep* step, const __grid_constant__ PoolRows p) {
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y, d = blockIdx.x * kPoolThreads + threadIdx.x;
  if (row >= (p.head ? step->head_rows : step->rows) || d >= p.width) return;
  const uint32_t t = step->position + row, place = t % p.places;
  const uint8_t* tile = p.table + place / kTileRows * p.tile_bytes;
  const size_t at = size_t{row} * p.width + d;
  const float c = p.c[at], z = __fadd_rn(p.z[at], element<kFormat>(tile, p.width, place % kTileRows, d));
  float *out = p.out + size_t{row} * 2 * p.width, *stored = p.rows.row(t);
  out[d] = stored[d] = c;
  out[p.width + d] = stored[p.width + d] = z;
}

template <Format kFormat>
void launch_format(const CudaLaunch& on, const CudaStep* step, uint32_t rows, const PoolRows& p) {
  if constexpr (!kHasElements<kFormat>) {
    fail_cuda_format("table", static_cast<uint32_t>(kFormat));
  } else {
    launch(on, pool_rows<kFormat>, dim3((p.width + kPoolThreads - 1) / kPoolThreads, rows), kPoolThreads, 0, step, p);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_pool_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const PoolRowSpec& spec = std::get<PoolRowSpec>(op.spec);
  const PackedMatrix& table = spec.position;
  const cuda::PoolRows p = {op.in,      op.in2,     op.out, spec.rows, table.data, table.tile_bytes(),
                            table.rows, table.cols, op.head};
  switch (table.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::launch_format<Format::id>(on, step, op.rows, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
