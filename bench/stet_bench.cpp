// stet-bench: whole passes of the engine, for the figures of docs/performance.md.
//
//   stet-bench MODEL --context 100 --prompt 128          one JSON object: decode and prefill rates (for stet compare)
//   stet-bench MODEL --widths                            the cost of a pass of every width 1..16, relative to width 1
//   stet-bench MODEL --cycles [--draft ngram]            tokens/s of a whole generation of --context + --tokens tokens
//   stet-bench --bandwidth                               what plain reads of memory reach
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "device/read_ceiling.h"
#include "device/topology.h"
#include "engine/parts.h"
#include "weights/summary.h"

namespace stet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 == 1 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

std::vector<int32_t> bench_tokens(const ModelDesc& desc, uint32_t n) {
  std::vector<int32_t> tokens(n);
  for (uint32_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>((uint64_t{i} * 7919 + 13) % desc.vocab);
  return tokens;
}

// A pass of `width` tokens with all their logits, behind `context` tokens: seconds of each of `repeats` runs.
std::vector<double> time_passes(Decoder& decoder, uint32_t context, uint32_t width, uint32_t repeats) {
  std::vector<double> times;
  for (uint32_t i = 0; i < repeats; ++i) {
    std::vector<int32_t> tokens = bench_tokens(decoder.desc(), width);
    for (int32_t& t : tokens) t = static_cast<int32_t>((static_cast<uint32_t>(t) + i * 31) % decoder.desc().vocab);
    const auto start = Clock::now();
    decoder.forward(tokens, context, width);
    times.push_back(seconds_since(start));
  }
  return times;
}

void fill_context(Decoder& decoder, uint32_t context) {
  if (context > 0) decoder.forward(bench_tokens(decoder.desc(), context), 0, 1);
}

// Passes queued one behind the other, without logits: what the device takes for one body, launches hidden.
double queued_body_seconds(Decoder& decoder, uint32_t context, uint32_t width) {
  constexpr uint32_t kPasses = 200;
  const std::vector<int32_t> tokens = bench_tokens(decoder.desc(), width);
  decoder.forward(tokens, context, 1);
  const auto start = Clock::now();
  for (uint32_t i = 0; i < kPasses; ++i) decoder.forward(tokens, context, 0);
  decoder.forward(tokens, context, 1);
  return seconds_since(start) / (kPasses + 1);
}

struct BenchFlags {
  Options options;
  uint32_t context = 100, prompt = 128, width = 1, repeats = 40;
  uint32_t tokens = 200;
  float temperature = 0.0f, top_p = 1.0f;
  uint32_t top_k = 0;
  bool widths = false, bandwidth = false, cycles = false;
};

nlohmann::json identity(const EngineInfo& info) {
  return {{"model", info.model_name}, {"synthetic", info.synthetic}, {"isa", info.isa}, {"threads", info.threads}, {"kv", info.kv}};
}

void print_rates(Engine::Parts& p, const BenchFlags& f) {
  nlohmann::json out = identity(p.info);
  const std::vector<int32_t> prompt = bench_tokens(p.desc, std::max(f.prompt, 1u));
  std::vector<double> prefill, decode;
  p.decoder->forward(std::span(prompt).first(1), 0, 1);
  for (int i = 0; f.prompt > 0 && i < 5; ++i) {
    const auto start = Clock::now();
    p.decoder->forward(prompt, 0, 1);
    prefill.push_back(seconds_since(start));
  }
  fill_context(*p.decoder, f.context);
  decode = time_passes(*p.decoder, f.context, 1, f.repeats);
  out["decode_tokens_per_second"] = 1.0 / median(decode);
  out["prefill_tokens_per_second"] = f.prompt > 0 ? nlohmann::json(f.prompt / median(prefill)) : nlohmann::json(nullptr);
  out["context"] = f.context;
  out["prompt"] = f.prompt;
  out["device"] = p.info.device;
  if (p.cuda) out["queued_body_us"] = queued_body_seconds(*p.decoder, f.context, f.width) * 1e6;
  // Beside each other, because the machine's bandwidth drifts.
  const double read = median_rate(ReadCeiling(p.info.threads).measure()), weights = static_cast<double>(p.pack->bytes()) / median(decode) / 1e9;
  out["weight_gbps"] = weights;
  out["read_gbps"] = read;
  out["read_share"] = weights / read;
  fmt::print("{}\n", out.dump());
}

// Widths interleaved, so that a drift of the machine meets all of them.
void print_widths(Engine::Parts& p, const BenchFlags& f) {
  fill_context(*p.decoder, f.context);
  std::map<uint32_t, std::vector<double>> ratios, times;
  for (uint32_t i = 0; i < f.repeats; ++i) {
    const double one = time_passes(*p.decoder, f.context, 1, 1)[0];
    for (uint32_t width = 1; width <= kNarrowRows; ++width) {
      const double t = time_passes(*p.decoder, f.context, width, 1)[0];
      times[width].push_back(t);
      ratios[width].push_back(t / one);
    }
  }
  nlohmann::json out = identity(p.info);
  out["context"] = f.context;
  for (auto& [width, r] : ratios) {
    out[fmt::format("pass_{}_ms", width)] = median(times[width]) * 1e3;
    out[fmt::format("pass_{}_over_1", width)] = median(r);
  }
  fmt::print("{}\n", out.dump());
}

// Whole generations behind --context tokens, as a request makes them: draft, pass, sampling and acceptance.
void print_cycles(Engine& engine, const BenchFlags& f) {
  Request request;
  request.prompt = bench_tokens(engine.parts().desc, std::max(f.context, 1u));
  request.max_tokens = f.tokens;
  request.ignore_eos = true;
  request.reuse_prefix = false;
  request.sampling = {.temperature = f.temperature, .top_k = f.top_k, .top_p = f.top_p, .seed = 1};
  std::vector<double> rates, first, cycle, draft;
  Generation g;
  for (int i = 0; i < 6; ++i) {
    g = engine.generate(request);
    if (i == 0) continue;  // warms
    rates.push_back(g.decode_tokens_per_second());
    first.push_back(g.first_token_seconds);
    cycle.push_back((g.cycles.back().seconds - g.cycles.front().seconds) / static_cast<double>(std::max<size_t>(g.cycles.size() - 1, 1)));
    double sum = 0;
    for (size_t c = 1; c < g.cycles.size(); ++c) sum += g.cycles[c].draft_seconds;
    draft.push_back(sum / static_cast<double>(std::max<size_t>(g.cycles.size() - 1, 1)));
  }
  const EngineInfo& info = engine.info();
  nlohmann::json out = identity(info);
  out["device"] = info.device;
  out["draft"] = info.draft;
  out["depth"] = info.draft_depth;
  out["context"] = f.context;
  out["temperature"] = f.temperature;
  out["tokens"] = g.tokens.size();
  out["digest"] = g.digest();
  out["tokens_per_second"] = median(rates);
  out["cycle_us"] = median(cycle) * 1e6;
  out["draft_us"] = median(draft) * 1e6;
  out["tokens_per_cycle"] = g.tokens_per_cycle();
  out["first_token_ms"] = median(first) * 1e3;
  if (const auto& cycles = engine.parts().cycles) out["graph_nodes"] = cycles->graph().nodes;
  fmt::print("{}\n", out.dump());
}

int run(const BenchFlags& f) {
  if (f.bandwidth) {
    nlohmann::json out;
    for (unsigned t = 1; t <= thread_budget().threads; ++t) out[fmt::format("read_gbps_{}_threads", t)] = median_rate(ReadCeiling(t).measure());
    fmt::print("{}\n", out.dump());
    return 0;
  }
  Options options = f.options;
  options.context = f.context + std::max({f.prompt, 2 * kWideRows, f.tokens}) + 1;
  Engine engine(options);
  if (f.cycles) {
    print_cycles(engine, f);
  } else if (f.widths) {
    print_widths(engine.parts(), f);
  } else {
    print_rates(engine.parts(), f);
  }
  return 0;
}

}  // namespace
}  // namespace stet

int main(int argc, char** argv) {
  stet::BenchFlags f;
  CLI::App app("Times whole passes of the engine.");
  app.add_option("model", f.options.model, "a GGUF file or a synthetic model");
  app.add_option("--threads", f.options.threads);
  app.add_option("--isa", f.options.isa);
  app.add_option("--device", f.options.device);
  app.add_option("--kv", f.options.kv);
  app.add_option("--pack", f.options.pack);
  app.add_option("--context", f.context, "tokens before the timed pass");
  app.add_option("--prompt", f.prompt, "tokens of the timed prompt; 0: none");
  app.add_option("--width", f.width)->check(CLI::Range(1u, stet::kWideRows));
  app.add_option("--repeats", f.repeats)->check(CLI::Range(1u, 100000u));
  app.add_option("--tokens", f.tokens, "output tokens of --cycles")->check(CLI::Range(2u, 1u << 20));
  app.add_option("--draft", f.options.draft, "none, ngram, model:FILE");
  app.add_option("--depth", f.options.draft_depth, "proposals a cycle");
  app.add_option("--temperature", f.temperature);
  app.add_option("--top-k", f.top_k);
  app.add_option("--top-p", f.top_p);
  app.add_option("--replay", f.options.replay, "eager, recorded, replayed");
  app.add_flag("--widths", f.widths);
  app.add_flag("--bandwidth", f.bandwidth);
  app.add_flag("--cycles", f.cycles);
  CLI11_PARSE(app, argc, argv);
  try {
    return stet::run(f);
  } catch (const stet::Error& error) {
    fmt::print(stderr, "stet-bench: error: {}\n", error.what());
    return 1;
  }
}
