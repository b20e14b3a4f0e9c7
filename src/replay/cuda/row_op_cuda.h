// The ops of row_ops.def on a device. Each has a function here, in src/replay/cuda/ops/<id>.cu, which puts its kernels on a stream: the
// bits are those of src/replay/ops/<id>.cpp.
#pragma once

#include "base/cuda/launch.h"
#include "replay/command.h"

namespace stet {

// A command with addresses of the device. Buffers are [row][width]; a kernel works on the rows of the step's pass, or, of a head list, on
// those whose logits are wanted (CudaStep).
struct CudaRowOp {
  const float *in = nullptr, *in2 = nullptr, *in3 = nullptr;
  float* out = nullptr;
  uint32_t in_width = 0, in2_width = 0, in3_width = 0, out_width = 0;
  uint32_t rows = 0;       // at most: the launch is shaped for them
  bool head = false;       // works on head_rows of the step, not on rows
  bool from_head = false;  // row 0 of `in` is row head_first of the pass
  bool rounded = false;    // as Command::rounded
  uint32_t parts = 1;
  uint32_t context = 0;  // positions at most: none lies behind
  const float* weight = nullptr;
  float eps = 0.0f;
  PackedMatrix matrix;  // data: of the device
  OpSpec spec;          // every address in it: of the device, but for the matrices of experts
  // Experts: the first byte of each expert's matrix, tables in device memory. gate and up, or down and null.
  const uint8_t *const *experts = nullptr, *const *experts_up = nullptr;
  uint8_t* scratch = nullptr;  // cuda_op_scratch() bytes, zero at first; launches of other ops do not use them
};

// Bytes of scratch that the op's kernels need for `rows` rows and `context` positions.
uint64_t cuda_op_scratch(const Command& command, uint32_t rows, uint32_t context);

// Throws Error(kUnsupported) for a shape that the kernels cannot take.
#define ROW_OP(id) void launch_##id(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op);
#include "replay/row_ops.def"
#undef ROW_OP

}  // namespace stet
