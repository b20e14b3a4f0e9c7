#include "replay/stage_reads.h"

#include <algorithm>

#include "kernels/common/activations.h"

namespace stet {
namespace {

uint64_t rows_bytes(const Buffer* buffer, uint32_t rows) {
  return buffer == nullptr ? 0 : uint64_t{buffer->width} * rows * sizeof(float);
}

uint64_t vector_bytes(const Command& c) { return c.weight == nullptr ? 0 : uint64_t{c.in->width} * sizeof(float); }

// The input of a product before it is prepared: the buffer, or the joined attention.
StageReads source_reads(const Stage& stage, uint32_t rows) {
  StageReads r;
  if (stage.source == Stage::Source::norm) {
    r.activations = rows_bytes(stage.norm->in, rows);
    r.weights = vector_bytes(*stage.norm);
  } else {
    r.activations = rows_bytes(stage.source == Stage::Source::join ? stage.attend->out : stage.input, rows);
  }
  return r;
}

StageReads product_reads(const Stage& stage, uint32_t rows) {
  StageReads r;
  bool seen[kActKinds] = {};
  for (const Command* c : stage.commands) {
    if (c->op != Op::matvec) continue;
    r.weights += c->weight_bytes();
    if (c->accumulate) r.activations += rows_bytes(c->out, rows);
    bool& kind = seen[static_cast<size_t>(c->matrix.input)];
    if (stage.prepared && !kind) r.activations += activation_bytes(c->matrix.input, rows, c->matrix.cols);
    kind = true;
  }
  return stage.prepared ? r : r += source_reads(stage, rows);
}

// Of experts: as if no two rows of the pass chose the same one, but each once.
uint64_t expert_bytes(const ExpertsSpec& spec, uint32_t rows) {
  uint64_t all = 0;
  for (const auto* matrices : {&spec.gate, &spec.up, &spec.down})
    for (const PackedMatrix& m : *matrices) all += m.bytes();
  const uint64_t experts = std::max(spec.gate.size(), spec.down.size());
  return all / experts * std::min<uint64_t>(experts, uint64_t{rows} * spec.chosen);
}

// Rows of state that the last row of the pass reads; the others of the pass read almost the same.
uint64_t state_bytes(const UnionSpec& spec, uint32_t t) {
  const uint64_t seen = spec.entries.width == 0 ? 0 : visible_entries(t, spec.entries.ratio);
  const uint64_t entries = spec.top == 0 ? seen : std::min<uint64_t>(seen, spec.top);
  return std::min<uint64_t>(t + 1, spec.window) * spec.rows.row_bytes() + entries * spec.entries.row_bytes();
}

StageReads row_reads(const Command& c, uint32_t rows, uint32_t position) {
  StageReads r;
  for (const Buffer* in : {c.in, c.in2, c.in3}) r.activations += rows_bytes(in, rows);
  r.weights = vector_bytes(c);
  // An embedding, or a table, gives one row a token.
  if (std::holds_alternative<GroupedSpec>(c.spec)) {
    r.weights += c.matrix.bytes();
  } else if (c.matrix.data != nullptr) {
    r.weights += uint64_t{rows} * c.matrix.tile_bytes() / kTileRows;
  }
  if (const auto* experts = std::get_if<std::shared_ptr<const ExpertsSpec>>(&c.spec)) r.weights += expert_bytes(**experts, rows);
  const uint32_t last = position + rows - 1;
  if (const auto* attend = std::get_if<UnionAttendSpec>(&c.spec)) r.kv += state_bytes(attend->attend, last);
  if (const auto* choose = std::get_if<ChooseSpec>(&c.spec))
    r.kv += uint64_t{visible_entries(last, choose->keys.ratio)} * choose->keys.row_bytes();
  return r;
}

uint64_t cache_bytes(const AttendShape& shape, uint32_t rows, uint32_t position) {
  return uint64_t{position + rows} * shape.layout.token_bytes();
}

std::string joined(const Stage& stage, bool with_layer) {
  std::string name = stage.kind == Stage::Kind::prepare ? "prepare " : "";
  for (size_t i = 0; i < stage.commands.size(); ++i) {
    const std::string& full = stage.commands[i]->name;
    name += (i == 0 ? "" : "+") + (i == 0 && with_layer ? full : full.substr(full.rfind('.') + 1));
  }
  return name;
}

}  // namespace

std::string stage_name(const Stage& stage) { return joined(stage, true); }
std::string stage_kind_name(const Stage& stage) { return joined(stage, false); }

StageReads stage_reads(const Stage& stage, uint32_t rows, uint32_t position) {
  const Command& first = *stage.commands[0];
  switch (stage.kind) {
    case Stage::Kind::prepare:
      return source_reads(stage, rows);
    case Stage::Kind::project:
    case Stage::Kind::gated:
      return product_reads(stage, rows);
    case Stage::Kind::rows:
    case Stage::Kind::store:
      return row_reads(first, rows, position);
    case Stage::Kind::attend_rows:
    case Stage::Kind::attend_runs: {
      StageReads r = row_reads(first, rows, position);
      r.kv = cache_bytes(*first.shape, rows, position);
      return r;
    }
  }
  return {};
}

}  // namespace stet
