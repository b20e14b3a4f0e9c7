#include "replay/list_sample.h"

#include <set>
#include <tuple>

namespace stet {
namespace {

// Buffers, not only widths: where two projections have one shape, their places in a layer still differ.
using CommandKey = std::tuple<Op, Format, uint32_t, uint32_t, const Buffer*, const Buffer*, bool>;
using StageKey = std::tuple<Stage::Kind, Stage::Source, bool, std::vector<CommandKey>>;

CommandKey key_of(const Command& c) {
  return {c.op, c.matrix.format, c.matrix.rows, c.matrix.cols, c.in, c.out, c.accumulate};
}

StageKey key_of(const Stage& stage) {
  std::vector<CommandKey> commands;
  for (const Command* c : stage.commands) commands.push_back(key_of(*c));
  return {stage.kind, stage.source, stage.prepared, std::move(commands)};
}

}  // namespace

LoweredList sample_stages(const LoweredList& fused) {
  LoweredList sample{fused.list, fused.fusion, {}};
  std::set<StageKey> seen;
  for (const Stage& stage : fused.stages)
    if (seen.insert(key_of(stage)).second) sample.stages.push_back(stage);
  return sample;
}

LoweredList same_commands(const LoweredList& eager, const LoweredList& sample) {
  std::set<const Command*> wanted;
  for (const Stage& stage : sample.stages) {
    wanted.insert(stage.commands.begin(), stage.commands.end());
    if (stage.norm != nullptr) wanted.insert(stage.norm);
  }
  LoweredList out{eager.list, eager.fusion, {}};
  for (const Stage& stage : eager.stages)
    if (wanted.contains(stage.commands[0])) out.stages.push_back(stage);
  return out;
}

}  // namespace stet
