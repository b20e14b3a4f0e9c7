// Products of the experts that a row has chosen, a row of x at a time: what gate and down share. Bits as experts.h.
#pragma once

#include "base/cuda/device.cuh"
#include "base/fp.h"
#include "kernels/experts/experts.h"
#include "kernels/route/route.h"

namespace stet::cuda {

// All experts of a launch have the same shape.
struct ExpertProduct {
  const float *in, *routes, *shared;            // [row][in_width], [row][2 * chosen], [row][n]
  float* out;                                   // [row][out_width]
  const uint8_t *const *first, *const *second;  // [experts]: gate and up, or down and null
  uint64_t tile_bytes;
  uint32_t in_width, out_width;
  uint32_t k, n, tiles;  // of an expert's matrix
  uint32_t segments;     // of k
  uint32_t experts, chosen;
  float limit;
  bool rounded, head;
};

// The matrices of a row's slots, in shared memory.
struct ChosenExperts {
  const uint8_t* matrix[2][kMaxChosen];
};

// By a block of at least 2 * kMaxChosen threads. The ids are read past the first cache: it may still hold those of another layer.
__device__ __forceinline__ void find_chosen(const ExpertProduct& p, uint32_t row, ChosenExperts& chosen) {
  const uint32_t slot = threadIdx.x % kMaxChosen, of = threadIdx.x / kMaxChosen;
  if (slot < p.chosen && of < (p.second == nullptr ? 1 : 2)) {
    const uint32_t expert = expert_index(__ldcg(p.routes + size_t{row} * 2 * p.chosen + slot), p.experts);
    chosen.matrix[of][slot] = (of == 0 ? p.first : p.second)[expert];
  }
  __syncthreads();
}

}  // namespace stet::cuda
