#include "lab/profile/profile.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "device/read_ceiling.h"

namespace stet {
namespace {

// In the same process, before and after, because a machine's bandwidth drifts.
class Ceiling {
 public:
  Ceiling(const Engine::Parts& engine, uint64_t bytes) : engine_(engine), bytes_(bytes) {}
  double measure() {
    if (engine_.cuda) return fastest_rate(cuda_read_ceiling(*engine_.cuda)) * 1e9;
    if (!processor_) processor_.emplace(engine_.info.threads, bytes_);
    return fastest_rate(processor_->measure()) * 1e9;
  }

 private:
  const Engine::Parts& engine_;
  const uint64_t bytes_;
  std::optional<ReadCeiling> processor_;
};

}  // namespace

uint32_t profile_context(const ProfileOptions& o, uint32_t depth) {
  return std::max(o.context + o.rows, o.cycles == 0 ? 0 : std::max(o.context, 1u) + (o.cycles + 2) * (depth + 1)) + 1;
}

std::vector<int32_t> profile_tokens(const ModelDesc& desc, uint32_t n, uint32_t first) {
  std::vector<int32_t> tokens(n);
  for (uint32_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>((uint64_t{first + i} * 7919 + 13) % desc.vocab);
  return tokens;
}

double PassProfile::sum() const {
  double all = 0;
  for (const StageTime& s : stages) all += s.seconds;
  return all;
}

StageReads PassProfile::reads() const {
  StageReads all;
  for (const StageTime& s : stages) all += s.reads;
  return all;
}

std::vector<StageTime> PassProfile::by_kind() const {
  std::vector<StageTime> kinds;
  std::vector<uint32_t> counts;
  for (const StageTime& s : stages) {
    const auto same = [&](const StageTime& k) { return k.kind == s.kind; };
    const auto at = static_cast<size_t>(std::find_if(kinds.begin(), kinds.end(), same) - kinds.begin());
    if (at == kinds.size()) {
      kinds.push_back({"", s.kind, 0, {}});
      counts.push_back(0);
    }
    kinds[at].seconds += s.seconds;
    kinds[at].reads += s.reads;
    counts[at] += 1;
  }
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i].name = std::to_string(counts[i]);
  return kinds;
}

ProfileReport profile(Engine::Parts& engine, const ProfileOptions& options) {
  STET_CHECK(options.rows >= 1 && options.rows <= kWideRows);
  const uint32_t needed = profile_context(options, engine.info.draft_depth);
  if (engine.info.context < needed)
    fail(Code::kUsage,
         "the profile needs a context of {} tokens, and there are {}: choose a smaller --context, --rows or --cycles",
         needed, engine.info.context);
  ProfileReport report;
  Ceiling ceiling(engine, options.ceiling_bytes);
  report.ceiling_before = ceiling.measure();
  report.pass = profile_pass(engine, options);
  if (options.cycles > 0) report.cycle = profile_cycles(engine, options, report.trace);
  report.ceiling_after = ceiling.measure();
  if (engine.cuda) {
    // A GPU's stages have durations, and no clock of their own.
    double at = 0;
    for (const StageTime& s : report.pass.stages) {
      report.trace.push_back(
          {"one pass, stage behind stage (" + report.pass.how + ")", s.name, at, s.seconds, s.reads.total()});
      at += s.seconds;
    }
  }
  return report;
}

}  // namespace stet
