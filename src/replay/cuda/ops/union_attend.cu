#include "replay/cuda/row_op_cuda.h"
#include "replay/cuda/union_op.h"

namespace stet {

void launch_union_attend(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  CudaUnion u = cuda_union(op);
  u.chosen = op.in2;
  launch_union(on, step, u);
}

}  // namespace stet
