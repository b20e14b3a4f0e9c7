// Rotation and the cache rows of a pass of any width: a block of threads a row.
#include "kernels/attend/attend_cuda.h"
#include "kernels/attend/kv_place.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// Whole warps go round, because a rotation takes two lanes: visit(element, there).
template <typename Visit>
__device__ __forceinline__ void for_each_element(uint32_t width, const Visit& visit) {
  for (uint32_t i = threadIdx.x; i / kWarp * kWarp < width; i += kThreads) visit(min(i, width - 1), i < width);
}

template <KvFormat kFormat>
__global__ void __launch_bounds__(kThreads) store_rows(const CudaStep* step, const __grid_constant__ CudaAttend a) {
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.x, dim = a.layout.head_dim, q_width = a.heads * dim, kv_width = a.layout.heads * dim;
  if (row >= step->rows) return;
  const uint32_t position = step->position + row, slot = position % kSlots;
  const float* rope = a.rope + size_t{position} * 2 * a.rope_dim;
  for_each_element(q_width, [&](uint32_t i, bool there) {
    const float x = rotate(__ldcg(a.q + size_t{row} * q_width + i), rope, a.rope_dim, i % dim);
    if (there) a.rotated[size_t{row} * q_width + i] = x;
  });
  for_each_element(kv_width, [&](uint32_t i, bool there) {
    const size_t at = size_t{row} * kv_width + i;
    const uint32_t d = i % dim;
    const float k = rotate(__ldcg(a.k + at), rope, a.rope_dim, d), v = __ldcg(a.v + at);
    const KvPlace<kFormat> place = cache_place<kFormat>(a.layout, a.layer, position / kSlots, i / dim);
    if constexpr (kFormat == KvFormat::q8) {
      // dim is a multiple of 32: a warp never leaves a head.
      place.put_key_block(slot, d / 32, quantize_lane(k));
      place.put_value_block(slot, d / 32, quantize_lane(v));
    } else if (there) {
      place.put_key(slot, d, k);
      place.put_value(slot, d, v);
    }
  });
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_store(const CudaLaunch& on, const CudaStep* step, const CudaAttend& a) {
  const auto launch = [&]<KvFormat kFormat>() {
    cuda::launch(on, cuda::store_rows<kFormat>, dim3(a.rows), cuda::kThreads, 0, step, a);
  };
  switch (a.layout.format) {
    case KvFormat::f16:
      return launch.template operator()<KvFormat::f16>();
    case KvFormat::f32:
      return launch.template operator()<KvFormat::f32>();
    case KvFormat::q8:
      return launch.template operator()<KvFormat::q8>();
    case KvFormat::fp8:  // plan_state refuses it
      break;
  }
}

}  // namespace stet
