#include "kernels/quantize/prepare_cuda.h"
#include "replay/cuda/row_op_cuda.h"

namespace stet {

// A preparation of which the rows themselves are wanted.
void launch_rmsnorm(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  CudaPrepare p;
  p.in = op.in;
  p.width = op.in_width;
  p.weight = op.weight;
  p.eps = op.eps;
  p.from_head = op.from_head;
  p.rounded = op.rounded;
  p.out = op.out;
  p.rows = op.rows;
  p.head = op.head;
  launch_prepare(on, step, p);
}

}  // namespace stet
