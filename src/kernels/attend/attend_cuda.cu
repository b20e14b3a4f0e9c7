// Attention of a pass: a block of threads takes one chunk of 128 positions of one KV head, brings it into shared memory once, and
// attends it for rows and query heads one after the other.
#include "kernels/attend/attend_cuda.h"

#include "kernels/attend/join_cuda.cuh"
#include "kernels/attend/kv_place.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kQueries = 4;            // attended together
constexpr uint32_t kHalf = kQueries / 2;    // of a thread: threads 128 .. 255 have the other half

struct Shared {
  uint8_t *keys, *values;        // of the chunk
  float* q;                      // [kQueries][head_dim]
  int8_t* q8;                    // [kQueries][head_dim], q8 only
  float* dq;                     // [kQueries][head_dim / 32]
  float* p;                      // [kQueries][kSlots]
  float* sums;                   // [kQueries][2]: m, l
};

__device__ void copy(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  for (uint32_t i = threadIdx.x * 16; i < bytes; i += kThreads * 16) copy_async16(to + i, from + i);
}

// The first n slots of a chunk; whole groups of 16.
template <KvFormat kFormat>
__device__ void request_keys(const KvLayout& l, const uint8_t* keys, uint32_t n, uint8_t* to) {
  const uint32_t groups = (n + kSlotGroup - 1) / kSlotGroup;
  copy(to, keys, groups * kSlotGroup * l.head_dim * static_cast<uint32_t>(sizeof(typename KvElement<kFormat>::Type)));
  if constexpr (kFormat == KvFormat::q8) copy(to + kSlots * l.head_dim, keys + kSlots * l.head_dim, groups * kSlotGroup * (l.head_dim / 32) * 4);
}
template <KvFormat kFormat>
__device__ void request_values(const KvLayout& l, uint32_t stride, const uint8_t* values, uint32_t n, uint8_t* to) {
  copy(to, values, n * stride * static_cast<uint32_t>(sizeof(typename KvElement<kFormat>::Type)));
  if constexpr (kFormat == KvFormat::q8) copy(to + kSlots * stride, values + kSlots * stride, (n * (l.head_dim / 32) * 4 + 15) / 16 * 16);
}

// q . k of one slot for kHalf queries, before the scale.
template <KvFormat kFormat>
__device__ void dots(const Shared& s, uint32_t dim, uint32_t first, uint32_t slot, float (&out)[kHalf]) {
  const auto* keys = reinterpret_cast<const typename KvElement<kFormat>::Type*>(s.keys) + slot / kSlotGroup * dim * kSlotGroup + slot % kSlotGroup;
  float partial[kHalf][8] = {};
  const uint32_t whole = dim / 8 * 8;
  for (uint32_t d = 0; d < whole; d += 8) {
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      const float k = as_float(keys[(d + i) * kSlotGroup]);
#pragma unroll
      for (uint32_t j = 0; j < kHalf; ++j) partial[j][i] = __fmaf_rn(s.q[(first + j) * dim + d + i], k, partial[j][i]);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    if (whole + i >= dim) continue;
    const float k = as_float(keys[(whole + i) * kSlotGroup]);
#pragma unroll
    for (uint32_t j = 0; j < kHalf; ++j) partial[j][i] = __fmaf_rn(s.q[(first + j) * dim + whole + i], k, partial[j][i]);
  }
#pragma unroll
  for (uint32_t j = 0; j < kHalf; ++j) {
    const float* x = partial[j];
    out[j] = __fadd_rn(__fadd_rn(__fadd_rn(x[0], x[1]), __fadd_rn(x[2], x[3])), __fadd_rn(__fadd_rn(x[4], x[5]), __fadd_rn(x[6], x[7])));
  }
}
template <>
__device__ void dots<KvFormat::q8>(const Shared& s, uint32_t dim, uint32_t first, uint32_t slot, float (&out)[kHalf]) {
  const uint32_t blocks = dim / 32, group = slot / kSlotGroup, of_group = slot % kSlotGroup;
  const float* scales = reinterpret_cast<const float*>(s.keys + kSlots * dim);
#pragma unroll
  for (uint32_t j = 0; j < kHalf; ++j) out[j] = 0.0f;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t* codes = reinterpret_cast<const uint32_t*>(s.keys + group * dim * kSlotGroup + b * 512) + of_group;
    int32_t sum[kHalf] = {};
#pragma unroll
    for (uint32_t w = 0; w < 8; ++w) {
      const int32_t k = static_cast<int32_t>(codes[w * kSlotGroup] ^ 0x80808080u);
#pragma unroll
      for (uint32_t j = 0; j < kHalf; ++j) sum[j] = __dp4a(k, *reinterpret_cast<const int32_t*>(s.q8 + (first + j) * dim + b * 32 + w * 4), sum[j]);
    }
    const float dk = scales[(group * blocks + b) * kSlotGroup + of_group];
#pragma unroll
    for (uint32_t j = 0; j < kHalf; ++j) out[j] = __fmaf_rn(__fmul_rn(s.dq[(first + j) * blocks + b], dk), static_cast<float>(sum[j]), out[j]);
  }
}

template <KvFormat kFormat>
__device__ __forceinline__ float value_of(const Shared& s, uint32_t dim, uint32_t stride, uint32_t slot, uint32_t d) {
  if constexpr (kFormat == KvFormat::q8) {
    const float scale = reinterpret_cast<const float*>(s.values + kSlots * stride)[slot * (dim / 32) + d / 32];
    return __fmul_rn(static_cast<float>(static_cast<int8_t>(s.values[slot * stride + d])), scale);
  } else {
    return as_float(reinterpret_cast<const typename KvElement<kFormat>::Type*>(s.values)[slot * stride + d]);
  }
}

// The queries of a batch into shared memory; those beyond `queries` repeat the last, and are not stored.
template <KvFormat kFormat>
__device__ void load_queries(const Shared& s, const float* q, uint32_t dim, uint32_t queries) {
  for (uint32_t i = threadIdx.x; i < kQueries * dim; i += kThreads) {
    const float x = q[min(i / dim, queries - 1) * dim + i % dim];
    s.q[i] = x;
    if constexpr (kFormat == KvFormat::q8) {
      const QuantizedLane quantized = quantize_lane(x);
      s.q8[i] = static_cast<int8_t>(quantized.code);
      if (i % 32 == 0) s.dq[i / 32] = quantized.d;
    }
  }
}

// m and l of each query: a warp a query.
__device__ void sum_scores(const Shared& s, uint32_t n) {
  const uint32_t query = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (query >= kQueries) return;
  float* p = s.p + query * kSlots;
  float m = p[0];
  for (uint32_t j = lane; j < n; j += kWarp) m = larger(m, p[j]);
  for (uint32_t width = kWarp / 2; width >= 1; width /= 2) m = larger(m, __shfl_xor_sync(kAll, m, width));
  for (uint32_t j = lane; j < n; j += kWarp) p[j] = exp_exact(__fsub_rn(p[j], m));
  __syncwarp();
  float l = 0.0f;
  for (uint32_t j = lane % 16; j < n; j += 16) l = __fadd_rn(l, p[j]);
  for (uint32_t width = 8; width >= 1; width /= 2) l = __fadd_rn(l, __shfl_down_sync(kAll, l, width));
  if (lane == 0) s.sums[query * 2] = m, s.sums[query * 2 + 1] = l;
}

template <KvFormat kFormat>
__device__ void attend_batch(const CudaAttend& a, const Shared& s, uint32_t n, uint32_t stride, float* parts, uint32_t queries) {
  const uint32_t dim = a.layout.head_dim, first = threadIdx.x / kSlots * kHalf;
  for (uint32_t j = threadIdx.x % kSlots; j < n; j += kSlots) {
    float dot[kHalf];
    dots<kFormat>(s, dim, first, j, dot);
#pragma unroll
    for (uint32_t i = 0; i < kHalf; ++i) s.p[(first + i) * kSlots + j] = __fmul_rn(dot[i], a.scale);
  }
  __syncthreads();
  sum_scores(s, n);
  __syncthreads();
  const size_t part = size_t{a.part_chunks} * part_floats(dim);
  for (uint32_t d = threadIdx.x % kSlots; d < dim; d += kSlots) {
    float o[kHalf] = {};
#pragma unroll 4
    for (uint32_t j = 0; j < n; ++j) {
      const float v = value_of<kFormat>(s, dim, stride, j, d);
#pragma unroll
      for (uint32_t i = 0; i < kHalf; ++i) o[i] = __fmaf_rn(s.p[(first + i) * kSlots + j], v, o[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kHalf; ++i)
      if (first + i < queries) parts[(first + i) * part + kPartHead + d] = o[i];
  }
  if (threadIdx.x < queries) {
    parts[threadIdx.x * part] = s.sums[threadIdx.x * 2];
    parts[threadIdx.x * part + 1] = s.sums[threadIdx.x * 2 + 1];
  }
  __syncthreads();
}

// Rows that share a block of threads: more where chunks and heads alone fill the device.
__device__ uint32_t row_step(const CudaAttend& a, uint32_t chunks, uint32_t rows, uint32_t processors) {
  return max(1u, min(rows, 2 * processors / (chunks * a.layout.heads)));
}

template <KvFormat kFormat>
__global__ void __launch_bounds__(kThreads)
    attend_chunks(const CudaStep* step, const __grid_constant__ CudaAttend a, uint32_t processors) {
  uint8_t* const shared = dynamic_shared();
  release_next();
  wait_for_previous();
  const KvLayout& l = a.layout;
  const uint32_t dim = l.head_dim, stride = (dim + 15) / 16 * 16, queries = a.heads / l.heads, head = blockIdx.y;
  if (step->rows <= a.first_row) return;
  const uint32_t rows = min(a.rows, step->rows - a.first_row), position = step->position + a.first_row;
  const uint32_t chunks = (position + rows - 1) / kSlots + 1, rows_apart = row_step(a, chunks, rows, processors);
  if (blockIdx.z >= rows_apart) return;
  constexpr uint32_t kSize = sizeof(typename KvElement<kFormat>::Type), kScales = kFormat == KvFormat::q8 ? 4 : 0;
  const uint32_t key_bytes = kSlots * (dim * kSize + dim / 32 * kScales), value_bytes = kSlots * (stride * kSize + dim / 32 * kScales);
  Shared s;
  s.keys = shared;
  s.values = shared + key_bytes;
  s.q = reinterpret_cast<float*>(s.values + value_bytes);
  s.p = s.q + kQueries * dim;
  s.sums = s.p + kQueries * kSlots;
  s.dq = s.sums + kQueries * 2;
  s.q8 = reinterpret_cast<int8_t*>(s.dq + kQueries * (dim / 32));
  for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
    const uint32_t begin = c * kSlots;
    const uint32_t last = position + rows - 1, there = min(kSlots, last + 1 - begin);
    const uint8_t* keys = a.layer + c * l.chunk_stride + head * (key_bytes + value_bytes);
    request_keys<kFormat>(l, keys, there, s.keys);
    request_values<kFormat>(l, stride, keys + key_bytes, there, s.values);
    copy_commit();
    bool waiting = true;
    for (uint32_t r = blockIdx.z; r < rows; r += rows_apart) {
      if (position + r < begin) continue;
      const uint32_t n = min(kSlots, position + r + 1 - begin);
      for (uint32_t q0 = 0; q0 < queries; q0 += kQueries) {
        const uint32_t in_batch = min(kQueries, queries - q0), first = head * queries + q0;
        load_queries<kFormat>(s, a.q + (size_t{a.first_row + r} * a.heads + first) * dim, dim, in_batch);
        if (waiting) copy_wait<0>();
        waiting = false;
        __syncthreads();
        float* parts = a.parts + ((size_t{r} * a.heads + first) * a.part_chunks + c) * part_floats(dim);
        attend_batch<kFormat>(a, s, n, stride, parts, in_batch);
      }
    }
    copy_wait<0>();
    __syncthreads();
  }
}

template <KvFormat kFormat>
void launch_format(const CudaLaunch& on, const CudaStep* step, const CudaAttend& a) {
  const KvLayout& l = a.layout;
  const size_t shared = l.key_bytes() + l.value_bytes() + kQueries * (l.head_dim * 5 + kSlots * 4 + 8 + l.blocks() * 4);
  if (shared > 224 * 1024)
    fail_cuda_shape("elements of an attention head, in 128 positions of this KV format,", l.head_dim, "use --kv f16 or q8");
  allow_shared(attend_chunks<kFormat>, shared);
  const uint32_t blocks = std::clamp(4 * on.processors / (l.heads * a.rows), 1u, a.part_chunks);
  launch(on, attend_chunks<kFormat>, dim3(blocks, l.heads, a.rows), kThreads, shared, step, a, on.processors);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

size_t cuda_part_bytes(uint32_t heads, uint32_t head_dim, uint32_t chunks) {
  return size_t{heads} * chunks * cuda::part_floats(head_dim) * sizeof(float);
}

void launch_attend(const CudaLaunch& on, const CudaStep* step, const CudaAttend& a) {
  switch (a.layout.format) {
    case KvFormat::f16: return cuda::launch_format<KvFormat::f16>(on, step, a);
    case KvFormat::f32: return cuda::launch_format<KvFormat::f32>(on, step, a);
    case KvFormat::q8: return cuda::launch_format<KvFormat::q8>(on, step, a);
    case KvFormat::fp8:  // plan_state refuses it
      break;
  }
}

}  // namespace stet
