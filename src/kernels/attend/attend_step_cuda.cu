// The attention of a narrow pass in one kernel: rotation, the cache rows of the pass, one chunk of 128 positions of one
// KV head a block of threads, and where the pass has one row the join of all chunks by whoever comes last.
#include "kernels/attend/attend_cuda.h"
#include "kernels/attend/join_tree_cuda.cuh"

namespace stet::cuda {
namespace {

template <KvFormat kFormat>
struct StepShape {
  static constexpr uint32_t kSize = sizeof(typename KvElement<kFormat>::Type);
  // Groups of keys begin in different banks.
  __host__ __device__ static uint32_t group_stride(uint32_t dim) {
    return dim * kSlotGroup + (kFormat == KvFormat::q8 ? 64 : 32 / kSize);
  }
  __host__ __device__ static uint32_t key_bytes(uint32_t dim) {
    return kSlots / kSlotGroup * group_stride(dim) * kSize + (kFormat == KvFormat::q8 ? kSlots * (dim / 32) * 4 : 0);
  }
  __host__ __device__ static uint32_t value_bytes(uint32_t dim) {
    return kSlots * ((dim + 15) / 16 * 16) * kSize + (kFormat == KvFormat::q8 ? kSlots * (dim / 32) * 4 : 0);
  }
  __host__ static size_t bytes(uint32_t dim, uint32_t chunks, uint32_t rope_dim, uint32_t rows) {
    const size_t rest = sizeof(float) * (kQueries * (dim + 4 * kSlots + kSlots + 2) + kStepThreads / kWarp) +
                        (kFormat == KvFormat::q8 ? kQueries * (dim + dim / 8) : 0) +
                        sizeof(float) * 2 * rope_dim * rows;
    return std::max<size_t>(key_bytes(dim) + value_bytes(dim), join_bytes(chunks)) + rest;
  }
};

template <KvFormat kFormat>
__device__ AttendShared<kFormat> carve(uint8_t* shared, uint32_t dim, uint32_t front, uint32_t rope_floats) {
  using Shape = StepShape<kFormat>;
  AttendShared<kFormat> s;
  s.chunk = {shared, shared + Shape::key_bytes(dim), dim, Shape::group_stride(dim)};
  s.rope = reinterpret_cast<float*>(shared + front);
  s.q = s.rope + rope_floats;
  s.pairs = s.q + dim * kQueries;
  s.p = s.pairs + 4 * kQueries * kSlots;
  s.most = s.p + kQueries * kSlots;
  s.sums = s.most + kStepThreads / kWarp;
  s.dq = s.sums + kQueries * 2;
  s.q8 = reinterpret_cast<int8_t*>(s.dq + kQueries * (dim / 32));
  return s;
}

__device__ void copy_run(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  for (uint32_t i = threadIdx.x * 16; i < bytes; i += kStepThreads * 16) copy_async16(to + i, from + i);
}

// The first n slots of a chunk; of keys whole groups of 16.
template <KvFormat kFormat>
__device__ void request_chunk(const KvPlace<kFormat>& to, const KvPlace<kFormat>& from, uint32_t n) {
  constexpr uint32_t kSize = sizeof(typename KvElement<kFormat>::Type);
  const uint32_t dim = to.dim, groups = (n + kSlotGroup - 1) / kSlotGroup, group_bytes = dim * kSlotGroup * kSize;
  for (uint32_t i = threadIdx.x * 16; i < groups * group_bytes; i += kStepThreads * 16)
    copy_async16(to.keys + i / group_bytes * to.group_stride * kSize + i % group_bytes, from.keys + i);
  copy_run(to.values, from.values, n * to.value_stride() * kSize);
  if constexpr (kFormat == KvFormat::q8) {
    copy_run(reinterpret_cast<uint8_t*>(to.key_scales()), reinterpret_cast<const uint8_t*>(from.key_scales()),
             groups * kSlotGroup * (dim / 32) * 4);
    copy_run(reinterpret_cast<uint8_t*>(to.value_scales()), reinterpret_cast<const uint8_t*>(from.value_scales()),
             (n * (dim / 32) * 4 + 15) / 16 * 16);
  }
  copy_commit();
}

struct RowsOfChunk {
  uint32_t begin, end;  // rows of the pass that lie in a chunk
  __device__ RowsOfChunk(uint32_t chunk, uint32_t position, uint32_t rows)
      : begin(chunk * kSlots > position ? min(rows, chunk * kSlots - position) : 0),
        end(min(rows, (chunk + 1) * kSlots - min((chunk + 1) * kSlots, position))) {}
};

// Keys and values of the pass's own rows, to shared memory and, by one block of each head, to the cache. Whole warps
// work, because a rotation takes two lanes. take() asks for the first of them, put() does the rest.
template <KvFormat kFormat>
class OwnRows {
 public:
  __device__ OwnRows(const CudaAttend& a, uint32_t chunk, uint32_t head, uint32_t position, uint32_t rows)
      : a_(a),
        rows_(chunk, position, rows),
        head_(head),
        position_(position),
        end_((rows_.end - rows_.begin) * a.layout.head_dim) {}
  __device__ void take() {
    if (end_ != 0) take_at(threadIdx.x);
  }
  __device__ void put(const AttendShared<kFormat>& s, const KvPlace<kFormat>& cache, bool keep) {
    for (uint32_t i = threadIdx.x; i / kWarp * kWarp < end_; i += kStepThreads) {
      if (i != threadIdx.x) take_at(i);
      const uint32_t at = min(i, end_ - 1), row = rows_.begin + at / a_.layout.head_dim, d = at % a_.layout.head_dim;
      const float k = rotate(k_, s.rope + row * 2 * a_.rope_dim, a_.rope_dim, d);
      if (i < end_) put_element(s.chunk, cache, keep, (position_ + row) % kSlots, d, k);
    }
  }

 private:
  __device__ void take_at(uint32_t i) {
    const uint32_t at = min(i, end_ - 1), dim = a_.layout.head_dim;
    const size_t place = size_t{rows_.begin + at / dim} * a_.layout.heads * dim + size_t{head_} * dim + at % dim;
    k_ = __ldcg(a_.k + place);
    v_ = __ldcg(a_.v + place);
  }
  // q8: dim is a multiple of 32, so a warp never leaves a row.
  __device__ void put_element(const KvPlace<kFormat>& chunk, const KvPlace<kFormat>& cache, bool keep, uint32_t slot,
                              uint32_t d, float k) const {
    if constexpr (kFormat == KvFormat::q8) {
      const QuantizedLane key = quantize_lane(k), value = quantize_lane(v_);
      chunk.put_key_block(slot, d / 32, key);
      chunk.put_value_block(slot, d / 32, value);
      if (keep) cache.put_key_block(slot, d / 32, key);
      if (keep) cache.put_value_block(slot, d / 32, value);
    } else {
      chunk.put_key(slot, d, k);
      chunk.put_value(slot, d, v_);
      if (keep) cache.put_key(slot, d, k);
      if (keep) cache.put_value(slot, d, v_);
    }
  }

  const CudaAttend& a_;
  const RowsOfChunk rows_;
  const uint32_t head_, position_, end_;
  float k_ = 0.0f, v_ = 0.0f;
};

// A batch of queries of a row, rotated; those beyond repeat the last, and nobody reads what becomes of them. take()
// asks for them, put() leaves them in shared memory.
class Queries {
 public:
  static constexpr uint32_t kMost = 256 * kQueries / kStepThreads;
  __device__ void take(const CudaAttend& a, uint32_t row, uint32_t first, uint32_t queries) {
    const uint32_t dim = a.layout.head_dim;
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      const uint32_t i = min(threadIdx.x + j * kStepThreads, kQueries * dim - 1);
      x_[j] = __ldcg(a.q + (size_t{row} * a.heads + first + min(i / dim, queries - 1)) * dim + i % dim);
    }
  }
  template <KvFormat kFormat>
  __device__ void put(const CudaAttend& a, const AttendShared<kFormat>& s, uint32_t row) const {
    const uint32_t dim = a.layout.head_dim;
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      const uint32_t i = threadIdx.x + j * kStepThreads, query = i / dim, d = i % dim;
      if (i / kWarp * kWarp >= kQueries * dim) continue;
      const float x = rotate(x_[j], s.rope + row * 2 * a.rope_dim, a.rope_dim, d);
      if (i >= kQueries * dim) continue;
      s.q[d * kQueries + query] = x;
      if constexpr (kFormat == KvFormat::q8) {
        const QuantizedLane q = quantize_lane(x);
        s.q8[i] = static_cast<int8_t>(q.code);
        if (d % 32 == 0) s.dq[i / 32] = q.d;
      }
    }
  }

 private:
  float x_[kMost];
};

// What a batch of queries gives over a chunk: the row itself where there is no other chunk, else a part.
template <KvFormat kFormat>
__device__ void leave(const CudaAttend& a, const AttendShared<kFormat>& s, uint32_t n, uint32_t queries, float* parts,
                      size_t apart, float* out) {
  constexpr uint32_t kMost = 256 * kQueries / kStepThreads;
  const uint32_t dim = a.layout.head_dim;
  if (threadIdx.x / kWarp < kQueries) sum_scores(s, n, threadIdx.x / kWarp);
  float o[kMost];
#pragma unroll
  for (uint32_t j = 0; j < kMost; ++j)
    if (const uint32_t i = threadIdx.x + j * kStepThreads; i < queries * dim) o[j] = weigh(s, n, i / dim, i % dim);
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < kMost; ++j) {
    const uint32_t i = threadIdx.x + j * kStepThreads, query = i / dim, d = i % dim;
    if (i >= queries * dim) continue;
    if (out != nullptr) {
      out[i] = __fdiv_rn(o[j], s.sums[query * 2 + 1]);
    } else {
      parts[query * apart + kPartHead + d] = o[j];
    }
  }
  if (out == nullptr && threadIdx.x < 2 * queries) parts[threadIdx.x / 2 * apart + threadIdx.x % 2] = s.sums[threadIdx.x];
}

// Whether this block is the last of `all` to come here for this head.
__device__ bool last_to_come(uint32_t* counter, uint32_t all) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) + 1 == all;
    if (last) *counter = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

__device__ void join_row(const CudaAttend& a, uint8_t* shared, uint32_t first, uint32_t queries, uint32_t chunks) {
  const uint32_t dim = a.layout.head_dim;
  const size_t stride = part_floats(dim), apart = a.part_chunks * stride;
  const JoinShared s = {reinterpret_cast<float2*>(shared),
                        reinterpret_cast<float2*>(shared) + size_t{kQueries} * chunks};
  const float* parts = a.parts + first * apart;
  join_weights(s, parts, stride, apart, chunks, queries);
  for (uint32_t i = threadIdx.x; i < queries * dim; i += kStepThreads) {
    const uint32_t query = i / dim, d = i % dim;
    const float o = join_element(parts + query * apart + kPartHead + d, stride, s.weights + query * chunks, chunks);
    a.joined[size_t{first} * dim + i] = __fdiv_rn(o, s.sums[query * chunks].y);
  }
  __syncthreads();
}

// What a block of threads does at a time: a chunk of one KV head, for every rows_apart-th row of the pass.
struct Item {
  uint32_t chunk, head, row;
};
struct Items {
  uint32_t heads, rows_apart, count;
  __device__ Items(const CudaAttend& a, uint32_t chunks, uint32_t rows)
      : heads(a.layout.heads),
        rows_apart(max(1u, min(rows, gridDim.x / max(1u, chunks * heads)))),
        count(rows == 0 ? 0 : chunks * heads * rows_apart) {}
  __device__ Item operator[](uint32_t i) const {
    return {i / (heads * rows_apart), i / rows_apart % heads, i % rows_apart};
  }
};

template <KvFormat kFormat>
__device__ void attend_item(const CudaAttend& a, const AttendShared<kFormat>& s, const Items& items, Item item,
                            uint32_t position, uint32_t rows, uint32_t chunks) {
  const uint32_t dim = a.layout.head_dim, queries = a.heads / a.layout.heads, begin = item.chunk * kSlots;
  Queries q;
  if (position + item.row >= begin) q.take(a, item.row, item.head * queries, min(kQueries, queries));
  OwnRows<kFormat> own(a, item.chunk, item.head, position, rows);
  own.take();
  copy_wait<0>();
  __syncthreads();
  own.put(s, cache_place<kFormat>(a.layout, a.layer, item.chunk, item.head), item.row == 0);
  for (uint32_t r = item.row; r < rows; r += items.rows_apart) {
    if (position + r < begin) continue;
    const uint32_t n = min(kSlots, position + r + 1 - begin);
    for (uint32_t q0 = 0; q0 < queries; q0 += kQueries) {
      const uint32_t batch = min(kQueries, queries - q0), first = item.head * queries + q0;
      if (r != item.row || q0 != 0) q.take(a, r, first, batch);
      q.put(a, s, r);
      __syncthreads();
      score(s, n, a.scale);
      __syncthreads();
      exp_scores(s, n);
      __syncthreads();
      float* parts = a.parts + ((size_t{r} * a.heads + first) * a.part_chunks + item.chunk) * part_floats(dim);
      float* out = a.joined != nullptr && chunks == 1 ? a.joined + size_t{first} * dim : nullptr;
      leave(a, s, n, batch, parts, a.part_chunks * part_floats(dim), out);
      __syncthreads();
    }
  }
}

template <KvFormat kFormat>
__global__ void __launch_bounds__(kStepThreads, 2)
    attend_step(const CudaStep* step, const __grid_constant__ CudaAttend a, uint32_t front) {
  uint8_t* const shared = dynamic_shared();
  release_next();
  const uint32_t queries = a.heads / a.layout.heads;
  const AttendShared<kFormat> s = carve<kFormat>(shared, a.layout.head_dim, front, 2 * a.rope_dim * a.rows);
  const uint32_t rows = step->rows, position = step->position, chunks = (position + rows + kSlots - 1) / kSlots;
  const Items items(a, chunks, rows);
  // The rows of earlier passes were there before the list began.
  const auto request = [&](Item item) {
    const uint32_t begin = item.chunk * kSlots, old = min(kSlots, position > begin ? position - begin : 0);
    request_chunk(s.chunk, cache_place<kFormat>(a.layout, a.layer, item.chunk, item.head), old);
  };
  if (blockIdx.x < items.count) {
    copy_run(reinterpret_cast<uint8_t*>(s.rope),
             reinterpret_cast<const uint8_t*>(a.rope + size_t{position} * 2 * a.rope_dim),
             rows * 2 * a.rope_dim * sizeof(float));
    request(items[blockIdx.x]);
  }
  wait_for_previous();
  for (uint32_t i = blockIdx.x; i < items.count; i += gridDim.x) {
    const Item item = items[i];
    if (i != blockIdx.x) request(item);
    attend_item(a, s, items, item, position, rows, chunks);
    if (a.joined == nullptr || chunks == 1 || !last_to_come(a.counters + item.head, chunks)) continue;
    for (uint32_t q0 = 0; q0 < queries; q0 += kQueries)
      join_row(a, shared, item.head * queries + q0, min(kQueries, queries - q0), chunks);
  }
}

template <KvFormat kFormat>
void launch_format(const CudaLaunch& on, const CudaStep* step, const CudaAttend& a) {
  using Shape = StepShape<kFormat>;
  const uint32_t dim = a.layout.head_dim, chunks = a.joined != nullptr ? a.part_chunks : 0;
  const size_t shared = std::max(kPairShared, Shape::bytes(dim, chunks, a.rope_dim, a.rows));
  if (dim % 2 != 0 || dim > 256) fail_cuda_shape("elements of an attention head", dim, "use --device cpu");
  if (shared > kMostShared)
    fail_cuda_shape("elements of an attention head, in 128 positions of this KV format,", dim, "use --kv f16 or q8");
  const auto front =
      static_cast<uint32_t>(std::max<size_t>(Shape::key_bytes(dim) + Shape::value_bytes(dim), join_bytes(chunks)));
  allow_shared(attend_step<kFormat>, shared);
  launch(on, attend_step<kFormat>, dim3(on.processors), kStepThreads, shared, step, a, front);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_attend_step(const CudaLaunch& on, const CudaStep* step, const CudaAttend& a) {
  switch (a.layout.format) {
    case KvFormat::f16:
      return cuda::launch_format<KvFormat::f16>(on, step, a);
    case KvFormat::f32:
      return cuda::launch_format<KvFormat::f32>(on, step, a);
    case KvFormat::q8:
      return cuda::launch_format<KvFormat::q8>(on, step, a);
    case KvFormat::fp8:  // plan_state refuses it
      break;
  }
}

}  // namespace stet
