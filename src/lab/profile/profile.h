// Where the time of a pass and of a cycle goes: every stage against the read ceiling of the same process, and sums that
// are compared with what was measured while nothing watched.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/parts.h"
#include "lab/profile/trace.h"
#include "replay/stage_reads.h"

namespace stet {

// The share of a measured time that the sum of its parts may miss.
constexpr double kReconciles = 0.03;

struct ProfileOptions {
  uint32_t context = 100;  // tokens before the pass and before the cycles
  uint32_t rows = 1;       // tokens of the pass; the logits of up to kNarrowRows of them
  uint32_t repeats = 0;    // 0: as many as take two seconds, 20 to 400
  uint32_t cycles = 32;    // after the first; 0: none
  uint64_t ceiling_bytes = uint64_t{1} << 30;  // read for the processor's ceiling: far more than its caches hold
  std::function<void(std::string_view what, uint32_t done, uint32_t total)> progress;  // may throw to stop
};

// Tokens of context that a profile needs with drafts of this depth.
uint32_t profile_context(const ProfileOptions& options, uint32_t depth);

// A whole, and what was found of it.
struct Reconciliation {
  double measured = 0;  // seconds, while nothing watched
  double parts = 0;     // the sum

  double gap() const { return measured - parts; }
  bool holds() const { return measured > 0 && gap() <= kReconciles * measured && gap() >= -kReconciles * measured; }
};

struct StageTime {
  std::string name, kind;  // replay/stage_reads.h
  double seconds = 0;
  StageReads reads;

  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(reads.total()) / seconds : 0; }
};

struct PassProfile {
  std::string how;  // how the times of stages came to be
  uint32_t repeats = 0;
  std::vector<StageTime> stages;  // body, then head, in order
  double outside = 0;             // in no stage: the processor's launches; of a GPU, bringing the logits to the host
  double watched = 0;             // the whole pass while the stages were timed; 0 where that is not a pass
  Reconciliation whole;

  double sum() const;  // of the stages
  StageReads reads() const;
  // What watching cost, as a share of the pass.
  double overhead() const { return watched > 0 ? watched / whole.measured - 1 : 0; }
  // One entry a kind, over the layers, in order of first appearance; name: how many there are of it.
  std::vector<StageTime> by_kind() const;
};

// Mean seconds of a cycle.
struct CycleProfile {
  uint32_t cycles = 0;
  double proposed = 0, tokens = 0;  // a cycle; tokens: committed
  // On a GPU sampling is part of verify, and commit of accept.
  double draft = 0, verify = 0, accept = 0, commit = 0;
  double between = 0;  // from the end of a cycle to the beginning of the next
  double watched = 0;  // a whole cycle while phases were timed; 0 where the cycles always time themselves
  Reconciliation whole;
};

struct ProfileReport {
  double ceiling_before = 0, ceiling_after = 0;  // bytes a second
  PassProfile pass;
  CycleProfile cycle;
  std::vector<TraceSpan> trace;

  double ceiling() const { return (ceiling_before + ceiling_after) / 2; }
  bool reconciles() const { return pass.whole.holds() && (cycle.cycles == 0 || cycle.whole.holds()); }
};

// Runs on the engine's decoder, session and draft; nothing of them is kept. Throws Error(kUsage) when the context is
// too short.
ProfileReport profile(Engine::Parts& engine, const ProfileOptions& options);

// The two halves of it. The trace gets the spans of some watched cycles, and of one pass where a GPU's stages have
// times but no clock.
PassProfile profile_pass(Engine::Parts& engine, const ProfileOptions& options);
CycleProfile profile_cycles(Engine::Parts& engine, const ProfileOptions& options, std::vector<TraceSpan>& trace);
// Of cycles that stay on a GPU (spec/device_cycles.h): what they report, by the device's clock; a whole one by the host's.
CycleProfile profile_device_cycles(Engine::Parts& engine, const ProfileOptions& options, std::vector<TraceSpan>& trace);

// Tokens that say nothing.
std::vector<int32_t> profile_tokens(const ModelDesc& desc, uint32_t n, uint32_t first = 0);

}  // namespace stet
