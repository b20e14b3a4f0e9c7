#include "kernels/quantize/prepare_cuda.h"

#include "base/fp.h"
#include "kernels/attend/join_cuda.cuh"
#include "kernels/cuda/activations.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/quantize/block_cuda.cuh"
#include "kernels/quantize/plane_codes_cuda.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 1024;

// The factor of a row: 1 / sqrt(mean of squares + eps), in the order of kernels/rmsnorm. The row is in shared memory.
__device__ float norm_factor(const float* row, uint32_t k, float eps) {
  __shared__ float lanes[kNormLanes];
  if (threadIdx.x < kNormLanes) {
    float sum = 0.0f;
    for (uint32_t i = threadIdx.x; i < k; i += kNormLanes) sum = __fmaf_rn(row[i], row[i], sum);
    lanes[threadIdx.x] = sum;
  }
  __syncthreads();
  return inverse_root_of_mean(fold_norm_lanes(lanes), k, eps);
}

// The blocks of a row to their places among the records: eight lanes a block, four elements a lane. The row is in shared memory.
__device__ void write_blocks(const CudaPrepare& p, uint32_t row, const float* x) {
  const uint32_t i = threadIdx.x % 8, blocks = p.width / 32, column = row % kCudaGroup;
  uint8_t* group = p.i8 + size_t{row / kCudaGroup} * blocks * kCudaRecord;
  // Every lane of a warp goes round as often as the first: the last blocks are done twice rather than not together.
  for (uint32_t first = threadIdx.x / kWarp * 4; first < blocks; first += kThreads / 8) {
    const uint32_t b = min(first + threadIdx.x % kWarp / 8, blocks - 1);
    const QuantizedQuad q = quantize_quad(*reinterpret_cast<const float4*>(x + b * 32 + i * 4));
    const int32_t quarter = q.code[0] + q.code[1] + q.code[2] + q.code[3];
    int32_t half = quarter + __shfl_xor_sync(kAll, quarter, 1);
    half += __shfl_xor_sync(kAll, half, 2);
    const int32_t other = __shfl_xor_sync(kAll, half, 4), sum = half + other;
    uint8_t* record = group + size_t{b} * kCudaRecord;
    const uint32_t word = packed_codes(q);
    *reinterpret_cast<uint32_t*>(record + column * 32 + i % 4 * 8 + i / 4 * 4) = word;
    uint8_t* scales = record + 256 + column / 2 * 16 + column % 2 * 4;
    if (i == 0) *reinterpret_cast<float*>(scales) = q.d;
    if (i == 1) *reinterpret_cast<int32_t*>(scales + 8) = sum;
    if (i == 2) *reinterpret_cast<float*>(record + 320 + column * 4) = __fmul_rn(q.d, static_cast<float>(sum));
    if (i == 4) *reinterpret_cast<int32_t*>(record + 352 + column * 4) = half;  // of the lanes 4 .. 7: the codes 16 .. 31
  }
}

// Where a row of planes lies.
struct PlaneRow {
  uint8_t* codes;
  float* scales;
  __device__ PlaneRow(const CudaPrepare& p, uint32_t row)
      : codes(p.planes + row * cuda_plane_row(p.width)), scales(reinterpret_cast<float*>(codes + p.width)) {}
};

// A group of 128 by a warp; x: the row.
template <ActKind kKind>
__device__ void write_group(const PlaneRow& to, uint32_t group, const float* x, uint32_t width) {
  const uint32_t quad = group * kWarp + threadIdx.x % kWarp;
  const bool there = quad < width / 4;
  const PlaneCodes c = plane_codes<kKind>(there ? reinterpret_cast<const float4*>(x)[quad] : float4{});
  if (!there) return;
  reinterpret_cast<uint32_t*>(to.codes)[quad] = c.codes;
  if (quad % 8 == 0) to.scales[quad / 8] = c.dx;
}

__device__ void write_planes(const CudaPrepare& p, uint32_t row, const float* x) {
  const PlaneRow to(p, row);
  for (uint32_t group = threadIdx.x / kWarp; group * kPlaneGroup < p.width; group += kThreads / kWarp)
    p.planes_of == ActKind::i8 ? write_group<ActKind::i8>(to, group, x, p.width)
                               : write_group<ActKind::e4m3>(to, group, x, p.width);
}

constexpr uint32_t kGroupThreads = 128;

// Planes of rows as they are: no group waits for another.
template <ActKind kKind>
__global__ void __launch_bounds__(kGroupThreads)
    prepare_groups(const CudaStep* step, const __grid_constant__ CudaPrepare p) {
  release_next();
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head), row = p.first_row + blockIdx.y;
  const uint32_t group = (blockIdx.x * kGroupThreads + threadIdx.x) / kWarp;
  if (row >= rows || group * kPlaneGroup >= p.width) return;
  const float* in = p.in + size_t{row + (p.from_head ? step->head_first : 0)} * p.width;
  write_group<kKind>(PlaneRow(p, row), group, in, p.width);
}

bool only_planes(const CudaPrepare& p) {
  return p.planes != nullptr && p.weight == nullptr && p.parts == nullptr && p.i8 == nullptr && p.f32 == nullptr &&
         p.out == nullptr;
}

__global__ void __launch_bounds__(kThreads, 1) prepare_rows(const CudaStep* step, const __grid_constant__ CudaPrepare p) {
  auto* const x = reinterpret_cast<float*>(dynamic_shared());  // the row
  release_next();
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head), row = p.first_row + blockIdx.x;
  if (row >= rows) return;
  if (p.parts != nullptr) {
    const uint32_t chunks = (step->position + row) / kSlots + 1;
    const size_t stride = part_floats(p.head_dim);
    for (uint32_t i = threadIdx.x; i < p.width; i += kThreads)
      x[i] = join_parts(p.parts + (size_t{blockIdx.x} * p.heads + i / p.head_dim) * p.part_chunks * stride, stride, chunks, i % p.head_dim);
  } else {
    const float* in = p.in + size_t{row + (p.from_head ? step->head_first : 0)} * p.width;
    for (uint32_t i = threadIdx.x; i < p.width; i += kThreads) x[i] = in[i];
  }
  __syncthreads();
  if (p.weight != nullptr) {
    const float r = norm_factor(x, p.width, p.eps);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < p.width; i += kThreads) {
      const float y = __fmul_rn(__fmul_rn(x[i], r), p.weight[i]);
      x[i] = rounded_if(p.rounded, y);
    }
    __syncthreads();
  }
  if (p.i8 != nullptr) write_blocks(p, row, x);
  if (p.planes != nullptr) write_planes(p, row, x);
  if (p.f32 != nullptr) {
    const uint32_t group = row / kCudaGroup, columns = cuda_float_columns(p.rows);
    float* to = reinterpret_cast<float*>(p.f32) + size_t{group} * kCudaGroup * p.width + row % kCudaGroup;
    for (uint32_t i = threadIdx.x; i < p.width; i += kThreads) to[size_t{i} * columns] = x[i];
  }
  if (p.out != nullptr)
    for (uint32_t i = threadIdx.x; i < p.width; i += kThreads) p.out[size_t{row} * p.width + i] = x[i];
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_prepare(const CudaLaunch& on, const CudaStep* step, const CudaPrepare& p) {
  if (cuda::only_planes(p)) {
    const uint32_t warps = cuda::kGroupThreads / cuda::kWarp, groups = (p.width + kPlaneGroup - 1) / kPlaneGroup;
    const auto kernel = p.planes_of == ActKind::i8 ? cuda::prepare_groups<ActKind::i8> : cuda::prepare_groups<ActKind::e4m3>;
    return cuda::launch(on, kernel, dim3((groups + warps - 1) / warps, p.rows), cuda::kGroupThreads, 0, step, p);
  }
  const size_t shared = size_t{p.width} * sizeof(float);
  if (shared > 200 * 1024) fail_cuda_shape("elements of a row", p.width, "use --device cpu");
  cuda::allow_shared(cuda::prepare_rows, shared);
  cuda::launch(on, cuda::prepare_rows, dim3(p.rows), cuda::kThreads, shared, step, p);
}

}  // namespace stet
