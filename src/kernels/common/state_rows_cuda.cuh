// Rows of state on a device, in whatever format they are kept: values as state_row_values.h has them. Rows are read in runs of two or four
// elements of a lane: as they are stored first, so that many can be asked for before the first is looked at.
#pragma once

#include "formats/e4m3/e4m3_values.cuh"
#include "kernels/common/state_rows.h"
#include "kernels/cuda/warp_row.cuh"
#include "kernels/quantize/quantize_common.h"

namespace stet::cuda {

// Throws Error(kUnsupported). Runs of four elements are aligned in every row then.
inline void check_state_rows(const StateRows& rows) {
  if (rows.width % 4 != 0) fail_cuda_kernel("elements of a cached row, which are no multiple of 4", rows.width, "use --device cpu");
  if (rows.format == RowFormat::fp8 && rows.rotated % 4 != 0)
    fail_cuda_kernel("rotated elements of a cached row, which are no multiple of 4", rows.rotated, "use --kv f32");
}

__device__ __forceinline__ float bf16_low(uint32_t bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ float bf16_high(uint32_t bits) { return __uint_as_float(bits & 0xffff0000u); }
// As decode_fp8_row takes a group's byte.
__device__ __forceinline__ float fp8_scale(uint8_t byte) { return __uint_as_float(uint32_t{byte} << 23); }

template <typename T>
__device__ __forceinline__ T load_as(const uint8_t* p) {
  return __ldcg(reinterpret_cast<const T*>(p));
}

// Elements d .. d + 3 of a row, d a multiple of 4.
template <RowFormat kFormat>
struct RowQuad;
template <>
struct RowQuad<RowFormat::f32> {
  float4 bits;
  __device__ __forceinline__ void load(const StateRows&, const uint8_t* row, uint32_t d) { bits = load_as<float4>(row + size_t{d} * 4); }
  __device__ __forceinline__ float4 values() const { return bits; }
};
template <>
struct RowQuad<RowFormat::f16> {
  uint2 bits;
  __device__ __forceinline__ void load(const StateRows&, const uint8_t* row, uint32_t d) { bits = load_as<uint2>(row + size_t{d} * 2); }
  __device__ __forceinline__ float4 values() const {
    const float2 a = f16_pair(bits.x), b = f16_pair(bits.y);
    return {a.x, a.y, b.x, b.y};
  }
};
template <>
struct RowQuad<RowFormat::fp8> {
  uint32_t bits, more;  // four codes and their scale, or two times two bf16
  bool coded;
  __device__ __forceinline__ void load(const StateRows& rows, const uint8_t* row, uint32_t d) {
    const Fp8RowShape shape = rows.fp8_shape();
    coded = d < shape.codes;
    const uint8_t* p = coded ? row + d : row + shape.codes + 2 * (d - shape.codes);
    bits = load_as<uint32_t>(p);
    more = coded ? load_as<uint8_t>(row + shape.scales_at() + d / Fp8RowShape::kGroup) : load_as<uint32_t>(p + 4);
  }
  __device__ __forceinline__ float4 values() const {
    if (!coded) return {bf16_low(bits), bf16_high(bits), bf16_low(more), bf16_high(more)};
    const float4 v = e4m3_values(bits);
    const float scale = fp8_scale(static_cast<uint8_t>(more));
    return {__fmul_rn(v.x, scale), __fmul_rn(v.y, scale), __fmul_rn(v.z, scale), __fmul_rn(v.w, scale)};
  }
};

// Elements d and d + 1 of a row, d even. The scale of their group in a row of fp8 is the caller's.
template <RowFormat kFormat>
struct RowPair;
template <>
struct RowPair<RowFormat::f32> {
  float2 bits;
  __device__ __forceinline__ void load(const StateRows&, const uint8_t* row, uint32_t d) { bits = load_as<float2>(row + size_t{d} * 4); }
  __device__ __forceinline__ float2 values(bool, float) const { return bits; }
};
template <>
struct RowPair<RowFormat::f16> {
  uint32_t bits;
  __device__ __forceinline__ void load(const StateRows&, const uint8_t* row, uint32_t d) { bits = load_as<uint32_t>(row + size_t{d} * 2); }
  __device__ __forceinline__ float2 values(bool, float) const { return f16_pair(bits); }
};
template <>
struct RowPair<RowFormat::fp8> {
  uint32_t bits;
  __device__ __forceinline__ void load(const StateRows& rows, const uint8_t* row, uint32_t d) {
    const uint32_t codes = rows.width - rows.rotated;
    bits = d < codes ? load_as<uint16_t>(row + d) : load_as<uint32_t>(row + codes + 2 * (d - codes));
  }
  // coded: d lies before the rotated elements.
  __device__ __forceinline__ float2 values(bool coded, float scale) const {
    if (!coded) return {bf16_low(bits), bf16_high(bits)};
    const float4 v = e4m3_values(bits);
    return {__fmul_rn(v.x, scale), __fmul_rn(v.y, scale)};
  }
};

// The code of x, 2^exponent being its group's scale. What would not come back is stored as NaN, where the processor stops: so the fault
// reaches the logits.
__device__ __forceinline__ uint8_t fp8_code(float x, int exponent) {
  const float scaled = __fmul_rn(x, power_of_two(-exponent));
  const uint8_t code = f32_to_e4m3(scaled);
  return __fmul_rn(e4m3_to_f32(code), power_of_two(exponent)) == x ? code : static_cast<uint8_t>(0x7f);
}
__device__ __forceinline__ uint16_t fp8_rotated(float x) {
  const uint32_t bits = bits_of_float(x);
  return (bits & 0xffffu) == 0 && x == x ? static_cast<uint16_t>(bits >> 16) : static_cast<uint16_t>(0x7fc0);
}

// As encode_fp8_row.
template <uint32_t kRegs>
__device__ __forceinline__ void store_fp8_row(const Fp8RowShape& shape, WarpRow<kRegs>& x, uint8_t* row) {
  constexpr uint32_t kStep = Fp8RowShape::kGroup / kWarp;
  for (uint32_t i = threadIdx.x % kWarp; i < shape.bytes() - shape.scales_at(); i += kWarp)
    if (i >= shape.groups()) row[shape.scales_at() + i] = 0;
#pragma unroll
  for (uint32_t i = 0; i < kRegs; i += kStep) {
    if (i * kWarp >= shape.codes) continue;
    uint32_t most = 0;  // of the finite ones
#pragma unroll
    for (uint32_t j = i; j < i + kStep; ++j)
      if (const uint32_t size = bits_of_float(x.x[j]) & 0x7fffffffu; x.place(j) < shape.codes && size < 0x7f800000u) most = max(most, size);
    const float largest = float_of_bits(__reduce_max_sync(kAll, most));
    const int exponent = exponent_above(largest < kPlaneFloor ? kPlaneFloor : largest, kLargestE4M3);
    if (threadIdx.x % kWarp == 0) row[shape.scales_at() + i / kStep] = static_cast<uint8_t>(exponent + 127);
#pragma unroll
    for (uint32_t j = i; j < i + kStep; ++j)
      if (x.place(j) < shape.codes) row[x.place(j)] = fp8_code(x.x[j], exponent);
  }
  x.each(shape.codes, shape.width(), [&](float v, uint32_t d) {
    *reinterpret_cast<uint16_t*>(row + shape.codes + 2 * (d - shape.codes)) = fp8_rotated(v);
  });
}

// x [width] to row i, rounded to its format.
template <uint32_t kRegs>
__device__ __forceinline__ void store_row(const StateRows& rows, uint32_t i, WarpRow<kRegs>& x) {
  uint8_t* row = rows.at(i);
  if (rows.format == RowFormat::fp8) return store_fp8_row(rows.fp8_shape(), x, row);
  if (rows.format == RowFormat::f32) return x.store(reinterpret_cast<float*>(row));
  x.each([&](float v, uint32_t d) { reinterpret_cast<uint16_t*>(row)[d] = f16_bits(v); });
}

}  // namespace stet::cuda
