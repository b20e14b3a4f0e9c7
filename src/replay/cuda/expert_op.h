// From a command's experts to what their kernels are given.
#pragma once

#include "kernels/common/segments.h"
#include "kernels/experts/expert_product.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {

inline const ExpertsSpec& experts_of(const CudaRowOp& op) { return *std::get<std::shared_ptr<const ExpertsSpec>>(op.spec); }

// m: any of the experts' matrices.
inline ExpertProduct expert_product(const CudaRowOp& op, const PackedMatrix& m) {
  const ExpertsSpec& spec = experts_of(op);
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
  p.segments = segment_count(m.cols, m.input != ActKind::f32);
  p.experts = static_cast<uint32_t>(std::max(spec.gate.size(), spec.down.size()));
  p.chosen = spec.chosen;
  p.limit = spec.limit;
  p.rounded = spec.rounded;
  p.head = op.head;
  return p;
}

}  // namespace stet::cuda
