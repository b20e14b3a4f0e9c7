// What union_attend and block_attend have in common on a device.
#pragma once

#include "kernels/union_attend/union_attend_cuda.h"
#include "replay/cuda/row_op_cuda.h"

namespace stet {

inline CudaUnion cuda_union(const CudaRowOp& op) {
  const UnionAttendSpec& spec = std::get<UnionAttendSpec>(op.spec);
  CudaUnion u;
  u.spec = spec.attend;
  u.rope = spec.rope;
  u.q = op.in;
  u.out = op.out;
  u.rows = op.rows;
  u.head = op.head;
  u.context = op.context;
  u.scores = reinterpret_cast<float*>(op.scratch);
  return u;
}

}  // namespace stet
