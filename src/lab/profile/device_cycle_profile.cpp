// Cycles that stay on a GPU: every one reports when its phases began.
#include "base/error.h"
#include "lab/profile/clock.h"
#include "lab/profile/profile.h"

namespace stet {
namespace {

constexpr uint32_t kTracedDeviceCycles = 8;
constexpr uint32_t kDeviceRequests = 6;

struct DeviceCycle {
  DeviceCycles::Marks marks;
  uint32_t proposed = 0, tokens = 0;
};

struct DeviceRequest {
  std::vector<DeviceCycle> cycles;  // the first one is where the clock begins
  double seconds = 0;               // of all others, by the host's clock
};

double seconds_of(uint64_t from_ns, uint64_t to_ns) {
  return static_cast<double>(static_cast<int64_t>(to_ns - from_ns)) * 1e-9;
}

DeviceCycle next_cycle(Engine::Parts& engine) {
  const auto r = engine.cycles->next();
  if (!r)
    fail(Code::kInput,
         "the model produced NaN or infinity behind {} tokens of context: its cycles have no times; stet run says "
         "which command was the first",
         engine.session->committed_tokens());
  return {engine.cycles->marks(), r->proposed, static_cast<uint32_t>(r->tokens.size())};
}

DeviceRequest run_request(Engine::Parts& engine, const std::vector<int32_t>& prompt, uint32_t cycles) {
  engine.session->begin(prompt, true);
  if (engine.draft) engine.draft->begin({});
  engine.cycles->begin(*engine.session, {.sampling = {}, .max_tokens = UINT32_MAX, .stops = false});
  DeviceRequest request;
  request.cycles.push_back(next_cycle(engine));
  const ProfileClock::time_point start = ProfileClock::now();
  for (uint32_t i = 0; i < cycles; ++i) request.cycles.push_back(next_cycle(engine));
  request.seconds = seconds_between(start, ProfileClock::now());
  engine.cycles->stop();
  return request;
}

void add_device_trace(const std::vector<DeviceCycle>& cycles, std::vector<TraceSpan>& trace) {
  const uint64_t zero = cycles[1].marks.draft_ns;
  for (size_t i = 1; i < cycles.size() && i <= kTracedDeviceCycles; ++i) {
    const DeviceCycles::Marks& m = cycles[i].marks;
    const auto add = [&](const char* track, const char* name, uint64_t from, uint64_t to) {
      trace.push_back({track, name, seconds_of(zero, from), seconds_of(from, to), 0});
    };
    add("cycles", "cycle", m.draft_ns, m.end_ns);
    add("phases", "draft", m.draft_ns, m.verify_ns);
    add("phases", "verify", m.verify_ns, m.accept_ns);
    add("phases", "accept", m.accept_ns, m.end_ns);
  }
}

}  // namespace

CycleProfile profile_device_cycles(Engine::Parts& engine, const ProfileOptions& options,
                                   std::vector<TraceSpan>& trace) {
  const std::vector<int32_t> prompt = profile_tokens(engine.desc, std::max(options.context, 1u));
  DeviceRequest best;
  for (uint32_t i = 0; i < kDeviceRequests; ++i) {
    if (options.progress) options.progress("timing cycles", i, kDeviceRequests);
    DeviceRequest request = run_request(engine, prompt, options.cycles);
    if (i == 0 || request.seconds < best.seconds) best = std::move(request);
  }
  add_device_trace(best.cycles, trace);
  CycleProfile p;
  p.cycles = options.cycles;
  const double n = p.cycles;
  for (size_t i = 1; i < best.cycles.size(); ++i) {
    const DeviceCycle& c = best.cycles[i];
    p.proposed += c.proposed / n;
    p.tokens += c.tokens / n;
    p.draft += seconds_of(c.marks.draft_ns, c.marks.verify_ns) / n;
    p.verify += seconds_of(c.marks.verify_ns, c.marks.accept_ns) / n;
    p.accept += seconds_of(c.marks.accept_ns, c.marks.end_ns) / n;
    p.between += seconds_of(best.cycles[i - 1].marks.end_ns, c.marks.draft_ns) / n;
  }
  p.whole = {best.seconds / n, p.draft + p.verify + p.accept + p.between};
  return p;
}

}  // namespace stet
