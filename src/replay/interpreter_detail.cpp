#include "replay/interpreter_detail.h"

#include "kernels/common/activations.h"

namespace stet::detail {
namespace {

void grow(size_t& size, size_t bytes) { size = std::max(size, bytes); }

void add_command(const Command& c, uint32_t width, unsigned workers, Sizes& s) {
  if (c.op == Op::rmsnorm) grow(s.row_bytes, size_t{c.in->width} * 4);
  if (c.op == Op::matvec) {
    const uint32_t k = c.matrix.cols;
    const auto all = [&](uint32_t rows) {
      size_t bytes = 0;
      for (const ActKind kind : {ActKind::f32, ActKind::i8, ActKind::e4m3})
        bytes += round64(activation_bytes(kind, rows, k));
      return bytes;
    };
    grow(s.row_bytes, size_t{k} * 4);
    grow(s.narrow_activations, all(std::min(width, kNarrowRows)));
    grow(s.shared_activations, all(width));
  }
  if (c.op == Op::attend) {
    grow(s.q_bytes, size_t{c.shape->queries()} * c.shape->layout.head_dim * 4);
    // The parts of a narrow pass, then one row of parts a worker.
    grow(s.parts, size_t{c.shape->heads} * (kNarrowRows * kMaxRuns + workers) * sizeof(AttendPart));
  }
}

}  // namespace

Sizes scratch_sizes(const std::vector<const CommandList*>& lists, unsigned workers) {
  Sizes s;
  for (const CommandList* list : lists) {
    s.width = std::max(s.width, list->width);
    for (const Command& c : list->commands) add_command(c, list->width, workers, s);
  }
  return s;
}

}  // namespace stet::detail
