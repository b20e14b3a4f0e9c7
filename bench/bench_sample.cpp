// Time from a row of logits to a token, per instruction set: --benchmark_filter=avx512 and so on. The rows are normal
// with standard deviation 3, so that at temperature 1 no block of a row can be skipped: the slowest case.
#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "spec/sampling.h"

namespace stet {
namespace {

std::vector<float> row_of_logits(uint32_t vocab, float spread) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> row(vocab);
  for (float& l : row) l = normal(rng);
  return row;
}

void sample_row(benchmark::State& state, Isa isa, const SamplingParams& params, uint32_t vocab, float spread) {
  const std::vector<float> row = row_of_logits(vocab, spread);
  Sampler sampler(kernels(isa), params, vocab);
  const std::vector<int32_t> prompt(1000, 5);
  std::vector<int32_t> output(1000, 6);
  uint64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(row.data(), prompt, output, position++).token);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * vocab * sizeof(float)));
}

struct Setting {
  const char* name;
  SamplingParams params;
  float spread;
};

const Setting kSettings[] = {
    {"greedy", {}, 3},
    {"temperature", {.temperature = 1}, 3},
    {"temperature_peaked", {.temperature = 1}, 9},
    {"top_k_40", {.temperature = 1, .top_k = 40}, 3},
    {"top_k_20000", {.temperature = 1, .top_k = 20000}, 3},
    {"top_p_0.95", {.temperature = 1, .top_p = 0.95f}, 3},
    {"top_p_0.95_flat", {.temperature = 1, .top_p = 0.95f}, 0.3f},
    {"min_p_0.05", {.temperature = 1, .min_p = 0.05f}, 3},
    {"top_k_40_top_p_0.95_min_p_0.05", {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f}, 3},
    {"penalties", {.temperature = 1, .top_k = 40, .repetition_penalty = 1.1f, .frequency_penalty = 0.1f}, 3},
};

void register_all() {
  for (Isa isa : available_isas())
    for (const Setting& s : kSettings)
      for (uint32_t vocab : {49152u, 128256u})
        benchmark::RegisterBenchmark(
            (std::string(isa_name(isa)) + "/" + s.name + "/" + std::to_string(vocab)).c_str(),
            [isa, &s, vocab](benchmark::State& state) { sample_row(state, isa, s.params, vocab, s.spread); })
            ->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace stet

int main(int argc, char** argv) {
  stet::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
