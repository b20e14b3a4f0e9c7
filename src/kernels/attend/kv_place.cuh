// Where the elements of a position lie: in a chunk of the cache (kv_layout.h), or in its copy in shared memory.
#pragma once

#include "kernels/attend/kv_layout.h"
#include "kernels/quantize/block_cuda.cuh"

namespace stet::cuda {

// An element of a rotated head. Its neighbour of the pair is in the neighbouring lane; rope: cosines, then signed
// sines.
__device__ __forceinline__ float rotate(float x, const float* rope, uint32_t rope_dim, uint32_t d) {
  const float other = __shfl_xor_sync(kAll, x, 1);
  return d >= rope_dim ? x : __fadd_rn(__fmul_rn(x, rope[d]), __fmul_rn(other, rope[rope_dim + d]));
}

template <KvFormat kFormat>
struct KvElement {
  using Type = uint8_t;
};
template <>
struct KvElement<KvFormat::f16> {
  using Type = uint16_t;
};
template <>
struct KvElement<KvFormat::f32> {
  using Type = float;
};

__device__ __forceinline__ float as_float(float x) { return x; }
__device__ __forceinline__ float as_float(uint16_t x) { return f16_value(x); }
__device__ __forceinline__ void put(float* to, float x) { *to = x; }
__device__ __forceinline__ void put(uint16_t* to, float x) { *to = f16_bits(x); }

// One KV head of one chunk. group_stride: elements from one group of 16 slots of keys to the next.
template <KvFormat kFormat>
struct KvPlace {
  using Type = typename KvElement<kFormat>::Type;
  uint8_t *keys, *values;
  uint32_t dim, group_stride;

  __device__ uint32_t value_stride() const { return (dim + 15) / 16 * 16; }
  __device__ uint32_t key_element(uint32_t slot, uint32_t d) const {
    const uint32_t group = slot / kSlotGroup * group_stride, s = slot % kSlotGroup;
    return group + (kFormat == KvFormat::q8 ? d / 4 * 64 + s * 4 + d % 4 : d * kSlotGroup + s);
  }
  __device__ float* key_scales() const { return reinterpret_cast<float*>(keys + kSlots / kSlotGroup * group_stride); }
  __device__ float* value_scales() const { return reinterpret_cast<float*>(values + kSlots * value_stride()); }

  __device__ void put_key(uint32_t slot, uint32_t d, float x) const {
    if constexpr (kFormat != KvFormat::q8) put(reinterpret_cast<Type*>(keys) + key_element(slot, d), x);
  }
  __device__ void put_value(uint32_t slot, uint32_t d, float x) const {
    if constexpr (kFormat != KvFormat::q8) put(reinterpret_cast<Type*>(values) + slot * value_stride() + d, x);
  }
  // q8: by a warp, lane i with element i of a block.
  __device__ void put_key_block(uint32_t slot, uint32_t block, const QuantizedLane& q) const {
    const uint32_t lane = threadIdx.x % kWarp;
    keys[key_element(slot, block * 32 + lane)] = static_cast<uint8_t>(q.code + 128);
    if (lane == 0) key_scales()[(slot / kSlotGroup * (dim / 32) + block) * kSlotGroup + slot % kSlotGroup] = q.d;
  }
  __device__ void put_value_block(uint32_t slot, uint32_t block, const QuantizedLane& q) const {
    const uint32_t lane = threadIdx.x % kWarp;
    values[slot * value_stride() + block * 32 + lane] = static_cast<uint8_t>(q.code);
    if (lane == 0) value_scales()[slot * (dim / 32) + block] = q.d;
  }
};

// The place of a head of a chunk in the cache.
template <KvFormat kFormat>
__device__ __forceinline__ KvPlace<kFormat> cache_place(const KvLayout& l, uint8_t* layer, uint32_t chunk,
                                                        uint32_t head) {
  constexpr uint32_t kSize = sizeof(typename KvElement<kFormat>::Type), kScales = kFormat == KvFormat::q8 ? 4 : 0;
  const uint32_t dim = l.head_dim, stride = (dim + 15) / 16 * 16;
  const uint32_t key_bytes = kSlots * (dim * kSize + dim / 32 * kScales),
                 value_bytes = kSlots * (stride * kSize + dim / 32 * kScales);
  uint8_t* keys = layer + size_t{chunk} * l.chunk_stride + size_t{head} * (key_bytes + value_bytes);
  return {keys, keys + key_bytes, dim, dim * kSlotGroup};
}

}  // namespace stet::cuda
