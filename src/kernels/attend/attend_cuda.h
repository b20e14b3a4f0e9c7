// Rotation, the KV cache and attention on a device, bits as attend.h. The cache has the layout of kv_layout.h.
#pragma once

#include "kernels/attend/kv_layout.h"
#include "base/cuda/launch.h"

namespace stet {

struct CudaAttend {
  KvLayout layout;
  uint8_t* layer = nullptr;
  uint32_t heads = 0;  // query heads
  float scale = 1.0f;
  uint32_t rope_dim = 0;
  const float* rope = nullptr;     // RopeTable
  const float* q = nullptr;        // store: as projected; attend: rotated. [row][heads * head_dim]
  const float* k = nullptr;        // [row][kv heads * head_dim]
  const float* v = nullptr;
  float* rotated = nullptr;        // of store
  float* parts = nullptr;          // of attend: [row - first_row][head][part_chunks][part_floats(head_dim)]
  uint32_t part_chunks = 0;        // chunks that the context has
  float* joined = nullptr;         // attend_step of one row: [heads * head_dim]; null: only parts
  uint32_t* counters = nullptr;    // [kv heads], zero between launches; of attend_step with `joined`
  uint32_t first_row = 0, rows = 0;  // of the pass: the rows of this launch, at most
};

size_t cuda_part_bytes(uint32_t heads, uint32_t head_dim, uint32_t chunks);  // of one row

// Rotates q to `rotated`; rotates k and stores k and v at their positions. Of all rows of the pass.
void launch_store(const CudaLaunch& on, const CudaStep* step, const CudaAttend& attend);
// Both for a narrow pass, q, k and v as projected.
void launch_attend_step(const CudaLaunch& on, const CudaStep* step, const CudaAttend& attend);
void launch_attend(const CudaLaunch& on, const CudaStep* step, const CudaAttend& attend);

}  // namespace stet
