#include "kernels/entries/entries_cuda.h"
#include "kernels/union_attend/union_attend_cuda.h"
#include "replay/cuda/row_op_cuda.h"

namespace stet {

uint64_t cuda_op_scratch(const Command& command, uint32_t rows, uint32_t context) {
  if (const auto* attend = std::get_if<UnionAttendSpec>(&command.spec)) return union_attend_scratch(attend->attend, rows, context);
  if (const auto* choose = std::get_if<ChooseSpec>(&command.spec)) return choose_entries_scratch(*choose, rows, context);
  return 0;
}

}  // namespace stet
