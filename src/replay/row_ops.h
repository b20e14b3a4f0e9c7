// Ops that work on each row of a pass by itself: any worker may run any row, or part of one, in any order. What one row stores in a
// layer's state another command may read: a barrier lies between.
#pragma once

#include "kernels/kernels.h"
#include "replay/command.h"

namespace stet {

// Computes part `part` (of command.parts) of row `row` of the command's output.
using RowOp = void (*)(const Kernels& kernels, const Command& command, const StepParams& params, uint32_t row, uint32_t part);

// Null for the ops that an interpreter cuts up by other means (matvec, store, attend).
RowOp row_op(Op op);
std::string_view row_op_name(Op op);  // REQUIRES: a row op

// src/replay/ops/<id>.cpp
#define ROW_OP(id) void row_##id(const Kernels& kernels, const Command& command, const StepParams& params, uint32_t row, uint32_t part);
#include "replay/row_ops.def"
#undef ROW_OP

}  // namespace stet
