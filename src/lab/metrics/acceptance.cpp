#include "lab/metrics/acceptance.h"

#include <fmt/format.h>

#include <algorithm>

namespace stet {
namespace {

constexpr uint64_t kEnough = 32;  // proposals, or cycles, before a curve says anything
constexpr size_t kFlatDepth = 3;

// More positions than any draft proposes: a record that claims more is not counted beyond them.
constexpr uint32_t kMaxPositions = 1024;

bool is_cycle(const ChunkEvent& chunk) {
  return chunk.depth && chunk.accepted && chunk.token_ids && !chunk.token_ids->empty();
}

}  // namespace

void AcceptanceCounts::add(const RequestRecord& request) {
  for (const ChunkEvent& chunk : request.chunks) {
    if (!is_cycle(chunk)) continue;
    const uint32_t depth = std::min(*chunk.depth, kMaxPositions), kept = std::min(*chunk.accepted, depth);
    ++cycles;
    emitted += chunk.token_ids->size();
    proposed += depth;
    accepted += kept;
    if (depth == 0) continue;
    if (proposed_at.size() < depth)
      for (auto* list : {&proposed_at, &accepted_at, &any_of, &all_of, &of_depth}) list->resize(depth);
    for (uint32_t i = 0; i < depth; ++i) {
      ++proposed_at[i];
      accepted_at[i] += i < kept ? 1 : 0;
    }
    ++of_depth[depth - 1];
    any_of[depth - 1] += kept > 0 ? 1 : 0;
    all_of[depth - 1] += kept == depth ? 1 : 0;
  }
}

std::vector<double> AcceptanceCounts::by_position() const {
  std::vector<double> share;
  for (size_t i = 0; i < proposed_at.size(); ++i)
    share.push_back(static_cast<double>(accepted_at[i]) / static_cast<double>(proposed_at[i]));
  return share;
}

std::string acceptance_alarm(const AcceptanceCounts& counts) {
  if (counts.proposed >= kEnough && counts.accepted == 0)
    return fmt::format("zero acceptance: {} proposals and none accepted", counts.proposed);
  for (size_t depth = kFlatDepth; depth <= counts.of_depth.size(); ++depth) {
    const uint64_t any = counts.any_of[depth - 1], all = counts.all_of[depth - 1];
    if (counts.of_depth[depth - 1] >= kEnough && any >= kEnough && 100 * all >= 98 * any)
      return fmt::format("flat acceptance: of {} cycles of depth {} that accepted anything, {} accepted everything",
                         any, depth, all);
  }
  return "";
}

std::string cycle_contradiction(const RequestRecord& request) {
  for (size_t i = 0; i < request.chunks.size(); ++i) {
    const ChunkEvent& chunk = request.chunks[i];
    if (!chunk.depth || !chunk.accepted) continue;
    const size_t emitted = chunk.token_ids ? chunk.token_ids->size() : 0;
    if (*chunk.accepted > *chunk.depth)
      return fmt::format("cycle events: frame {} accepted {} of {} proposals", i, *chunk.accepted, *chunk.depth);
    if (chunk.token_ids && emitted > size_t{*chunk.accepted} + 1)
      return fmt::format("cycle events: frame {} has {} tokens from {} accepted proposals", i, emitted,
                         *chunk.accepted);
  }
  return "";
}

}  // namespace stet
