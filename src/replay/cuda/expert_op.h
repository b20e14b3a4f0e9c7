// From a command's experts to what their kernels are given.
#pragma once

#include "kernels/experts/expert_product.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {

// m: any of the experts' matrices.
inline ExpertProduct expert_product(const CudaRowOp& op, const ExpertsSpec& spec, const PackedMatrix& m) {
  ExpertProduct p = {};
  p.in = op.in;
  p.routes = op.in2;
  p.shared = op.in3;
  p.out = op.out;
  p.first = op.experts;
  p.second = op.experts_up;
  p.tile_bytes = m.tile_bytes();
  p.in_width = op.in_width;
  p.out_width = op.out_width;
  p.k = m.cols;
  p.n = m.rows;
  p.tiles = m.tiles();
  p.experts = static_cast<uint32_t>(std::max(spec.gate.size(), spec.down.size()));
  p.chosen = spec.chosen;
  p.segments = segment_count(m.cols, m.input != ActKind::f32);
  p.chunks = chunk_count(m.cols);
  p.limit = spec.limit;
  p.rounded = spec.rounded;
  p.head = op.head;
  return p;
}

// tasks: of a row. One block of threads a processor and row; two kernels fit on a processor (kPairShared).
template <typename Kernel>
void launch_expert(const CudaLaunch& on, Kernel kernel, uint32_t tasks, uint32_t rows, size_t shared, const CudaStep* step, const ExpertProduct& p) {
  constexpr size_t kMost = 220 * 1024;
  if (shared > kMost) fail_cuda_shape("columns of an expert's matrix", p.k, "use --device cpu");
  allow_shared(kernel, kMost);
  launch(on, kernel, dim3(std::min(on.processors, tasks), rows), kRowThreads, std::max(shared, kPairShared), step, p);
}

}  // namespace stet::cuda
