#include "replay/row_ops.h"

namespace stet {

RowOp row_op(Op op) {
  switch (op) {
#define ROW_OP(id) \
  case Op::id: return row_##id;
#include "replay/row_ops.def"
#undef ROW_OP
    case Op::matvec:
    case Op::store:
    case Op::attend: return nullptr;
  }
  return nullptr;
}

std::string_view row_op_name(Op op) {
#define ROW_OP(id) \
  if (op == Op::id) return #id;
#include "replay/row_ops.def"
#undef ROW_OP
  return "";
}

}  // namespace stet
