// A pass, over and over: as it is, and with the ends of its stages written down.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "lab/profile/clock.h"
#include "lab/profile/profile.h"

namespace stet {
namespace {

constexpr double kSeconds = 2;
constexpr uint32_t kFewest = 20, kMost = 400, kFewestOfDevice = 5, kMostOfDevice = 21;

struct Run {
  double seconds = 0;
  std::vector<double> stages;  // of a watched run
};

// The fastest quarter: what others do on the machine only ever makes a run slower.
std::vector<Run> fastest(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.seconds < b.seconds; });
  runs.resize((runs.size() + 3) / 4);
  return runs;
}

double mean_seconds(const std::vector<Run>& runs) {
  return std::accumulate(runs.begin(), runs.end(), 0.0, [](double sum, const Run& r) { return sum + r.seconds; }) /
         static_cast<double>(runs.size());
}

class PassTimer {
 public:
  PassTimer(Engine::Parts& engine, const ProfileOptions& options)
      : engine_(engine), options_(options), decoder_(*engine.decoder) {
    if (options.context > 0) decoder_.forward(profile_tokens(engine.desc, options.context), 0, 1);
    marks_.marks.reserve(1u << 16);
    plain();  // a first run also makes what later ones find
  }

  PassProfile on_processor() {
    const uint32_t repeats = repeats_for(plain().seconds, kFewest, kMost);
    std::vector<Run> plain_runs, watched_runs;
    for (uint32_t i = 0; i < repeats; ++i) {
      if (options_.progress) options_.progress("timing the stages of a pass", i, repeats);
      // A-B-B-A, so that a drift of the machine meets both.
      if (i % 2 == 0) plain_runs.push_back(plain());
      watched_runs.push_back(watched());
      if (i % 2 != 0) plain_runs.push_back(plain());
    }
    PassProfile out = describe();
    out.how = "the ends of the stages of replayed lists, by the clock of the first thread";
    out.repeats = repeats;
    const std::vector<Run> kept = fastest(std::move(watched_runs));
    for (size_t s = 0; s < out.stages.size(); ++s)
      for (const Run& run : kept) out.stages[s].seconds += run.stages[s] / static_cast<double>(kept.size());
    out.watched = mean_seconds(kept);
    out.outside = out.watched - out.sum();
    out.whole = {mean_seconds(fastest(std::move(plain_runs))), out.watched};
    return out;
  }

  PassProfile on_device() {
    // A graph of every prefix of the lists: quadratic in the stages, so fewer repeats.
    const uint32_t repeats = options_.repeats == 0 ? std::clamp(static_cast<uint32_t>(0.02 / plain().seconds),
                                                                kFewestOfDevice, kMostOfDevice)
                                                   : options_.repeats;
    if (options_.progress) options_.progress("timing every prefix of the lists", 0, 0);
    const Decoder::ListTimes times = decoder_.time_lists(options_.rows, options_.context, repeats);
    PassProfile out;
    out.how = "differences between the prefixes of a list, each a graph, by the device's clock";
    out.repeats = repeats;
    for (const auto& [list, seconds] : times.lists)
      for (size_t s = 0; s < list->stages.size(); ++s) {
        StageTime stage = stage_time(*list, list->stages[s]);
        stage.seconds = seconds[s + 1] - seconds[s];
        out.stages.push_back(std::move(stage));
      }
    // What the buffers hold was lost.
    if (options_.context > 0) decoder_.forward(profile_tokens(engine_.desc, options_.context), 0, 1);
    std::vector<Run> plain_runs;
    for (uint32_t i = 0, n = repeats_for(plain().seconds, kFewest, kMost); i < n; ++i) plain_runs.push_back(plain());
    out.outside = times.fetch;
    out.whole = {mean_seconds(fastest(std::move(plain_runs))), out.sum() + out.outside};
    return out;
  }

 private:
  uint32_t repeats_for(double seconds, uint32_t fewest, uint32_t most) const {
    if (options_.repeats != 0) return options_.repeats;
    return static_cast<uint32_t>(
        std::clamp(kSeconds / 2 / seconds, static_cast<double>(fewest), static_cast<double>(most)));
  }

  Run plain() {
    const std::vector<int32_t> tokens = profile_tokens(engine_.desc, options_.rows, 31 * turn_++);
    const ProfileClock::time_point start = ProfileClock::now();
    decoder_.forward(tokens, options_.context, std::min(options_.rows, kNarrowRows));
    return {seconds_between(start, ProfileClock::now()), {}};
  }

  Run watched() {
    marks_.marks.clear();
    decoder_.set_marks(&marks_);
    Run run = plain();
    decoder_.set_marks(nullptr);
    for (size_t i = 1; i < marks_.marks.size(); ++i)
      if (marks_.marks[i].stage != nullptr)
        run.stages.push_back(seconds_between(marks_.marks[i - 1].when, marks_.marks[i].when));
    return run;
  }

  StageTime stage_time(const LoweredList& list, const Stage& stage) const {
    const uint32_t rows = list.list->rows == RowSet::head ? std::min(options_.rows, kNarrowRows) : options_.rows;
    return {stage_name(stage), stage_kind_name(stage), 0, stage_reads(stage, rows, options_.context)};
  }

  // The stages of the last watched run, without times.
  PassProfile describe() const {
    PassProfile out;
    for (const StageMarks::Mark& mark : marks_.marks)
      if (mark.stage != nullptr) out.stages.push_back(stage_time(*mark.list, *mark.stage));
    return out;
  }

  Engine::Parts& engine_;
  const ProfileOptions& options_;
  Decoder& decoder_;
  StageMarks marks_;
  uint32_t turn_ = 0;
};

}  // namespace

PassProfile profile_pass(Engine::Parts& engine, const ProfileOptions& options) {
  PassTimer timer(engine, options);
  return engine.cuda ? timer.on_device() : timer.on_processor();
}

}  // namespace stet
