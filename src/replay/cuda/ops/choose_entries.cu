#include "kernels/entries/entries_cuda.h"
#include "replay/cuda/row_op_cuda.h"

namespace stet {

void launch_choose_entries(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  CudaChoose c;
  c.spec = std::get<ChooseSpec>(op.spec);
  c.q = op.in;
  c.weight = op.in2;
  c.chosen = op.out;
  c.rows = op.rows;
  c.head = op.head;
  c.context = op.context;
  c.scores = reinterpret_cast<uint32_t*>(op.scratch);
  launch_choose(on, step, c);
}

}  // namespace stet
