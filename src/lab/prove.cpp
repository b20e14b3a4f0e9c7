#include "lab/prove.h"

#include <algorithm>
#include <chrono>

#include "lab/cover.h"
#include "lab/prove_run.h"

namespace stet {
namespace {

const char* mode_name(ReplayMode mode) {
  return mode == ReplayMode::eager ? "eager" : mode == ReplayMode::recorded ? "recorded" : "replayed";
}

struct Factors {
  std::vector<Isa> isas;
  std::vector<unsigned> threads;
  std::vector<uint32_t> prompt_rows = {kWideRows, 1, 7, kNarrowRows, kNarrowRows + 1};
  std::vector<ReplayMode> modes = {ReplayMode::replayed, ReplayMode::recorded, ReplayMode::eager};
  std::vector<std::string> drafts;
  std::vector<uint32_t> depths = {4, 1, 2, 7, kMaxDepth};
  std::vector<std::string> histories = {"fresh", "requests", "rollbacks"};
  std::vector<bool> cuda = {false};

  std::vector<uint32_t> levels() const {
    const auto n = [](const auto& v) { return static_cast<uint32_t>(v.size()); };
    return {n(isas), n(threads), n(prompt_rows), n(modes), n(drafts), n(depths), n(histories), n(cuda), 2, 2};
  }
  ProveSetting setting(const std::vector<uint32_t>& l) const {
    return {isas[l[0]], threads[l[1]], prompt_rows[l[2]], modes[l[3]], drafts[l[4]], depths[l[5]], histories[l[6]], l[8] == 1, l[9] == 1, cuda[l[7]]};
  }
};

Factors make_factors(const Engine::Parts& engine, const ProveRunner& runner) {
  Factors f;
  const std::vector<Isa> all = available_isas();
  // The scalar reference has rows of its own, on fewer tokens; where there is nothing else, it is the base.
  for (auto isa = all.rbegin(); isa != all.rend(); ++isa)
    if (*isa != Isa::scalar || all.size() == 1) f.isas.push_back(*isa);
  const unsigned own = engine.pool->threads();
  f.threads = {own};
  for (unsigned t : {1u, 2u, 3u})
    if (t != own) f.threads.push_back(t);
  f.drafts = runner.drafts();
  if (engine.cuda) f.cuda.push_back(true);
  return f;
}

// The base points, greedy and sampled, then each factor alone.
std::vector<ProveSetting> make_settings(const Factors& f) {
  const std::vector<uint32_t> levels = f.levels();
  std::vector<ProveSetting> out;
  std::vector<uint32_t> base(levels.size(), 0);
  out.push_back(f.setting(base));
  base.back() = 1;
  out.push_back(f.setting(base));
  base.back() = 0;
  for (size_t factor = 0; factor + 1 < levels.size(); ++factor)
    for (uint32_t level = 1; level < levels[factor]; ++level) {
      std::vector<uint32_t> one = base;
      one[factor] = level;
      if (factor == 5) one[4] = 3;  // a depth means nothing without a draft: "mixed"
      out.push_back(f.setting(one));
    }
  for (const std::string& draft : f.drafts) {
    if (draft != "mixed" && !is_own_draft(draft)) continue;
    for (uint32_t depth = 1; depth <= kMaxDepth; ++depth) {
      ProveSetting s = f.setting(base);
      s.draft = draft;
      s.depth = depth;
      out.push_back(s);
    }
  }
  return out;
}

// Every pair of levels together, on fewer tokens.
std::vector<ProveSetting> make_pairs(const Factors& f) {
  std::vector<ProveSetting> out;
  for (const auto& row : cover_pairs(f.levels())) out.push_back(f.setting(row));
  return out;
}

class Proof {
 public:
  Proof(Engine::Parts& engine, const ProveOptions& options)
      : options_(options), runner_(engine, options), factors_(make_factors(engine, runner_)), settings_(make_settings(factors_)), pairs_(make_pairs(factors_)) {
    total_ = settings_.size() + pairs_.size() + kNarrowRows * factors_.cuda.size() + 2;
  }

  ProveReport run() {
    for (const ProveSetting& s : settings_)
      if (!run_setting(s, options_.tokens)) return report_;
    for (const ProveSetting& s : pairs_)
      if (!run_setting(s, std::min(options_.tokens, kPairTokens))) return report_;
    for (const bool cuda : factors_.cuda)
      for (uint32_t width = 1; width <= kNarrowRows; ++width)
        if (!run_width(width, cuda)) return report_;
    run_scalar();
    return report_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

  void add(ProveRow row) {
    report_.rows.push_back(std::move(row));
    if (options_.progress) options_.progress(report_.rows.back(), report_.rows.size(), total_);
  }

  std::vector<int32_t> timeline(const ProveTimeline& t) const {
    std::vector<int32_t> all = options_.prompt;
    all.insert(all.end(), t.tokens.begin(), t.tokens.end());
    return all;
  }

  bool run_setting(const ProveSetting& s, uint32_t tokens) {
    const bool is_base = base_[s.sampled].tokens.empty();
    if (!is_base && s.text().find(options_.only) == std::string::npos) return true;
    const Clock::time_point start = Clock::now();
    const ProveTimeline t = runner_.run(s, tokens);
    if (is_base) {
      base_[s.sampled] = t;
      base_setting_[s.sampled] = s;
      runner_.set_answer(s.sampled, t.tokens);
    }
    const ProveTimeline& want = base_[s.sampled];
    const bool equal = std::equal(t.tokens.begin(), t.tokens.end(), want.tokens.begin()) &&
                       std::equal(t.logits.begin(), t.logits.end(), want.logits.begin());
    add({s.text(), t.digest(tokens), tokens, equal, since(start)});
    if (!equal) explain(s, t, want);
    return equal;
  }

  void explain(const ProveSetting& s, const ProveTimeline& got, const ProveTimeline& want) {
    size_t i = 0;
    while (got.logits[i] == want.logits[i] && got.tokens[i] == want.tokens[i]) ++i;
    const uint32_t position = static_cast<uint32_t>(options_.prompt.size() + i) - 1;
    const std::string command = runner_.first_difference(base_setting_[s.sampled], s, timeline(want), position);
    report_.divergence =
        fmt::format("'{}' differs from '{}' at output token {} ({} instead of {}): {}", s.text(), base_setting_[s.sampled].text(), i,
                    got.tokens[i], want.tokens[i],
                    command.empty() ? "each command alone gives the same bytes, so what differs is what this way of running left behind"
                                    : "first in " + command);
  }

  // The whole timeline in passes of one width: the logits of every position, those of the answer being known from decoding.
  bool run_width(uint32_t width, bool cuda) {
    ProveSetting s = base_setting_[0];
    s.prompt_rows = width;
    s.cuda = cuda;
    const std::string what = fmt::format("{} width={} (whole timeline)", s.text(), width);
    if (what.find(options_.only) == std::string::npos) return true;
    const Clock::time_point start = Clock::now();
    const std::vector<int32_t> all = timeline(base_[0]);
    ProveTimeline t;
    t.tokens.assign(all.begin(), all.end() - 1);
    t.logits = runner_.teacher_forced(s, t.tokens);
    if (forced_.logits.empty()) forced_ = t;
    bool equal = t.logits == forced_.logits;
    for (size_t i = 0; i < base_[0].logits.size(); ++i) equal = equal && t.logits[options_.prompt.size() - 1 + i] == base_[0].logits[i];
    add({what, t.digest(t.tokens.size()), static_cast<uint32_t>(t.tokens.size()), equal, since(start)});
    if (!equal) explain_forced(s, t, what);
    return equal;
  }

  // The scalar reference over the first positions of the timeline.
  void run_scalar() {
    ProveSetting s = base_setting_[0];
    if (s.isa == Isa::scalar) return;
    s.isa = Isa::scalar;
    for (ReplayMode mode : {ReplayMode::eager, ReplayMode::replayed}) {
      s.mode = mode;
      const size_t n = std::min<size_t>(forced_.tokens.size(), kScalarTokens);
      const std::string what = fmt::format("{} (first {} positions)", s.text(), n);
      if (n == 0 || what.find(options_.only) == std::string::npos) continue;
      const Clock::time_point start = Clock::now();
      ProveTimeline t;
      t.tokens.assign(forced_.tokens.begin(), forced_.tokens.begin() + static_cast<ptrdiff_t>(n));
      t.logits = runner_.teacher_forced(s, t.tokens);
      const bool equal = std::equal(t.logits.begin(), t.logits.end(), forced_.logits.begin());
      add({what, t.digest(n), static_cast<uint32_t>(n), equal, since(start)});
      if (equal) continue;
      explain_forced(s, t, what);
      return;
    }
  }

  void explain_forced(const ProveSetting& s, const ProveTimeline& got, const std::string& what) {
    uint32_t p = 0;
    while (p + 1 < got.logits.size() && got.logits[p] == forced_.logits[p]) ++p;
    const std::string command = runner_.first_difference(base_setting_[0], s, got.tokens, p);
    report_.divergence = fmt::format("'{}' differs from '{}' at position {}: first in {}", what, base_setting_[0].text(), p,
                                     command.empty() ? "no single command" : command);
  }

  // A row's digest covers as many tokens as it ran.
  static constexpr size_t kScalarTokens = 4;
  static constexpr uint32_t kPairTokens = 24;

  const ProveOptions& options_;
  ProveRunner runner_;
  Factors factors_;
  std::vector<ProveSetting> settings_, pairs_;
  size_t total_ = 0;
  ProveTimeline base_[2], forced_;
  ProveSetting base_setting_[2];
  ProveReport report_;
};

}  // namespace

std::string ProveSetting::text() const {
  std::string out = fmt::format("{}{} threads={} prompt-rows={} {} draft={}", cuda ? "cuda " : "", isa_name(isa), threads, prompt_rows, mode_name(mode), draft);
  if (draft != "none") out += fmt::format(" depth={}", depth);
  out += fmt::format(" {} {} {}", history, warm ? "warm" : "cold", sampled ? "sampled" : "greedy");
  return out;
}

ProveReport prove(Engine::Parts& engine, const ProveOptions& options) { return Proof(engine, options).run(); }

}  // namespace stet
