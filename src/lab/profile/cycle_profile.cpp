// Cycles of a request: draft, verify, accept, commit, with the phases of the transaction as marks.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "lab/profile/clock.h"
#include "lab/profile/profile.h"

namespace stet {
namespace {

constexpr uint32_t kTracedCycles = 8;
constexpr uint32_t kRounds = 3;  // of A-B-B-A

// When the phases of a cycle began; `accept` with the first row that was sampled.
struct CycleMarks {
  ProfileClock::time_point begin, draft, verify, accept, commit, end;
  uint32_t position = 0, proposed = 0, tokens = 0;  // position: of the verify pass
  bool sampled = false;

  void enter(Txn::Phase phase) {
    const ProfileClock::time_point now = ProfileClock::now();
    if (phase == Txn::Phase::propose) draft = now;
    if (phase == Txn::Phase::verify) verify = now;
    if (phase == Txn::Phase::commit) commit = now;
    if (phase == Txn::Phase::sample && !sampled) accept = now, sampled = true;
  }
  double seconds() const { return seconds_between(begin, end); }
};

class CycleTimer {
 public:
  CycleTimer(Engine::Parts& engine, const ProfileOptions& options)
      : engine_(engine), options_(options), prompt_(profile_tokens(engine.desc, std::max(options.context, 1u))) {
    marks_.marks.reserve(1u << 18);
  }

  CycleProfile run(std::vector<TraceSpan>& trace) {
    std::vector<std::vector<CycleMarks>> plain, watched;
    for (uint32_t round = 0; round < 2 * kRounds; ++round) {
      if (options_.progress) options_.progress("timing cycles", round, 2 * kRounds);
      if (round % 2 == 0) plain.push_back(request(false));
      watched.push_back(request(true));
      if (round % 2 != 0) plain.push_back(request(false));
    }
    add_trace(watched.back(), trace);
    return summary(fastest(plain), fastest(watched));
  }

 private:
  // The same request every time: the same tokens in the same cycles, whatever watches.
  std::vector<CycleMarks> request(bool watch) {
    Session& session = *engine_.session;
    session.begin(prompt_, true);
    Sampler sampler(*engine_.kernels, {}, engine_.desc.vocab);
    if (engine_.draft) engine_.draft->begin({});
    const uint32_t depth = engine_.draft ? engine_.info.draft_depth : 0;
    step(session, sampler,
         {.draft = engine_.draft.get(), .depth = depth, .is_stop = nullptr, .max_tokens = UINT32_MAX, .hook = nullptr});
    if (watch) {
      marks_.marks.clear();
      engine_.decoder->set_marks(&marks_);
    }
    std::vector<CycleMarks> cycles(options_.cycles);
    ProfileClock::time_point last = ProfileClock::now();
    for (CycleMarks& cycle : cycles) {
      cycle.begin = last;
      cycle.position = session.cached_tokens();
      Txn::Hook hook;
      if (watch) hook = [&cycle](Txn::Phase phase) { cycle.enter(phase); };
      const StepResult r = step(session, sampler,
                                {.draft = engine_.draft.get(),
                                 .depth = depth,
                                 .is_stop = nullptr,
                                 .max_tokens = UINT32_MAX,
                                 .hook = std::move(hook)});
      cycle.proposed = r.proposed;
      cycle.tokens = static_cast<uint32_t>(r.tokens.size());
      last = cycle.end = ProfileClock::now();
    }
    engine_.decoder->set_marks(nullptr);
    return cycles;
  }

  // Of every cycle its fastest run, for the reason that pass_profile.cpp has.
  static std::vector<CycleMarks> fastest(const std::vector<std::vector<CycleMarks>>& requests) {
    std::vector<CycleMarks> out = requests[0];
    for (const auto& request : requests)
      for (size_t i = 0; i < out.size(); ++i)
        if (request[i].seconds() < out[i].seconds()) out[i] = request[i];
    return out;
  }

  static CycleProfile summary(const std::vector<CycleMarks>& plain, const std::vector<CycleMarks>& watched) {
    CycleProfile p;
    p.cycles = static_cast<uint32_t>(watched.size());
    const double n = p.cycles;
    for (const CycleMarks& c : watched) {
      p.proposed += c.proposed / n;
      p.tokens += c.tokens / n;
      p.draft += seconds_between(c.draft, c.verify) / n;
      p.verify += seconds_between(c.verify, c.accept) / n;
      p.accept += seconds_between(c.accept, c.commit) / n;
      p.commit += seconds_between(c.commit, c.end) / n;
      p.between += seconds_between(c.begin, c.draft) / n;
      p.watched += c.seconds() / n;
    }
    for (const CycleMarks& c : plain) p.whole.measured += c.seconds() / n;
    p.whole.parts = p.draft + p.verify + p.accept + p.commit + p.between;
    return p;
  }

  void add_trace(const std::vector<CycleMarks>& cycles, std::vector<TraceSpan>& trace) const {
    const size_t shown = std::min<size_t>(cycles.size(), kTracedCycles);
    const ProfileClock::time_point zero = cycles[0].begin, end = cycles[shown - 1].end;
    const auto add = [&](const char* track, std::string name, ProfileClock::time_point from,
                         ProfileClock::time_point to, uint64_t bytes) {
      trace.push_back({track, std::move(name), seconds_between(zero, from), seconds_between(from, to), bytes});
    };
    for (size_t i = 0; i < shown; ++i) {
      const CycleMarks& c = cycles[i];
      add("cycles", "cycle", c.begin, c.end, 0);
      add("phases", "draft", c.draft, c.verify, 0);
      add("phases", "verify", c.verify, c.accept, 0);
      add("phases", "accept", c.accept, c.commit, 0);
      add("phases", "commit", c.commit, c.end, 0);
    }
    size_t cycle = 0;
    for (size_t i = 1; i < marks_.marks.size() && marks_.marks[i].when <= end; ++i) {
      const StageMarks::Mark& mark = marks_.marks[i];
      if (mark.stage == nullptr) continue;
      while (cycles[cycle].end < mark.when) ++cycle;
      const CycleMarks& c = cycles[cycle];
      add("stages", stage_name(*mark.stage), marks_.marks[i - 1].when, mark.when,
          stage_reads(*mark.stage, c.proposed + 1, c.position).total());
    }
  }

  Engine::Parts& engine_;
  const ProfileOptions& options_;
  const std::vector<int32_t> prompt_;
  StageMarks marks_;
};

}  // namespace

CycleProfile profile_cycles(Engine::Parts& engine, const ProfileOptions& options, std::vector<TraceSpan>& trace) {
  return engine.cycles ? profile_device_cycles(engine, options, trace) : CycleTimer(engine, options).run(trace);
}

}  // namespace stet
