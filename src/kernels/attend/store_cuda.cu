#include "kernels/attend/attend.h"
#include "kernels/attend/attend_cuda.h"
#include "base/cuda/device.cuh"
#include "kernels/quantize/block_cuda.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// Element d of a rotated head.
__device__ float rotate(const float* x, const float* rope, uint32_t rope_dim, uint32_t d) {
  if (d >= rope_dim) return x[d];
  return __fadd_rn(__fmul_rn(x[d], rope[d]), __fmul_rn(x[d ^ 1u], rope[rope_dim + d]));
}

// The cache addresses of kernels/attend/kv_element.h.
struct Place {
  const KvLayout& l;
  uint8_t *keys, *values;
  uint32_t slot;
  __device__ Place(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position) : l(layout), slot(position % kSlots) {
    const size_t codes = size_t{kSlots} * l.head_dim * element_bytes(), value_codes = size_t{kSlots} * value_stride() * element_bytes();
    const size_t scales = l.format == KvFormat::q8 ? size_t{kSlots} * (l.head_dim / 32) * 4 : 0;
    keys = layer + position / kSlots * l.chunk_stride + head * (codes + value_codes + 2 * scales);
    values = keys + codes + scales;
  }
  __device__ uint32_t element_bytes() const { return l.format == KvFormat::f32 ? 4 : l.format == KvFormat::f16 ? 2 : 1; }
  __device__ uint32_t value_stride() const { return (l.head_dim + 15) / 16 * 16; }
  __device__ uint32_t group_element(uint32_t d) const {
    const size_t group = size_t{slot / kSlotGroup} * l.head_dim * kSlotGroup;
    return static_cast<uint32_t>(group + (l.format == KvFormat::q8 ? d / 4 * 64 + slot % kSlotGroup * 4 + d % 4 : d * kSlotGroup + slot % kSlotGroup));
  }
  __device__ void put(uint8_t* base, uint32_t element, float x) const {
    if (l.format == KvFormat::f32) {
      reinterpret_cast<float*>(base)[element] = x;
    } else {
      reinterpret_cast<uint16_t*>(base)[element] = f16_bits(x);
    }
  }
  __device__ void put_key(uint32_t d, float x) const { put(keys, group_element(d), x); }
  __device__ void put_value(uint32_t d, float x) const { put(values, slot * value_stride() + d, x); }
  // By a warp, lane i with element i of a block.
  __device__ void put_key_block(uint32_t block, float x) const {
    const QuantizedLane q = quantize_lane(x);
    const uint32_t lane = threadIdx.x % kWarp, blocks = l.head_dim / 32;
    keys[group_element(block * 32 + lane)] = static_cast<uint8_t>(q.code + 128);
    float* scales = reinterpret_cast<float*>(keys + size_t{kSlots} * l.head_dim);
    if (lane == 0) scales[(slot / kSlotGroup * blocks + block) * kSlotGroup + slot % kSlotGroup] = q.d;
  }
  __device__ void put_value_block(uint32_t block, float x) const {
    const QuantizedLane q = quantize_lane(x);
    const uint32_t lane = threadIdx.x % kWarp, blocks = l.head_dim / 32;
    values[slot * value_stride() + block * 32 + lane] = static_cast<uint8_t>(q.code);
    float* scales = reinterpret_cast<float*>(values + size_t{kSlots} * value_stride());
    if (lane == 0) scales[slot * blocks + block] = q.d;
  }
};

// A block of threads a row.
__global__ void __launch_bounds__(kThreads) store_rows(const CudaStep* step, const __grid_constant__ CudaAttend a) {
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.x, dim = a.layout.head_dim, q_width = a.heads * dim, kv_width = a.layout.heads * dim;
  if (row >= step->rows) return;
  const uint32_t position = step->position + row;
  const float* rope = a.rope + size_t{position} * 2 * a.rope_dim;
  const float *q = a.q + size_t{row} * q_width, *k = a.k + size_t{row} * kv_width, *v = a.v + size_t{row} * kv_width;
  for (uint32_t i = threadIdx.x; i < q_width; i += kThreads)
    a.rotated[size_t{row} * q_width + i] = rotate(q + i / dim * dim, rope, a.rope_dim, i % dim);
  if (a.layout.format == KvFormat::q8) {
    // dim is a multiple of 32: a warp never leaves a head.
    for (uint32_t i = threadIdx.x; i < kv_width; i += kThreads) {
      const Place place(a.layout, a.layer, i / dim, position);
      place.put_key_block(i % dim / 32, rotate(k + i / dim * dim, rope, a.rope_dim, i % dim));
      place.put_value_block(i % dim / 32, v[i]);
    }
    return;
  }
  for (uint32_t i = threadIdx.x; i < kv_width; i += kThreads) {
    const Place place(a.layout, a.layer, i / dim, position);
    place.put_key(i % dim, rotate(k + i / dim * dim, rope, a.rope_dim, i % dim));
    place.put_value(i % dim, v[i]);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_store(const CudaLaunch& on, const CudaStep* step, const CudaAttend& attend) {
  cuda::launch(on, cuda::store_rows, dim3(attend.rows), cuda::kThreads, 0, step, attend);
}

}  // namespace stet
