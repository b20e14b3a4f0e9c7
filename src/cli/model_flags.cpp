#include "cli/model_flags.h"

#include "base/error.h"

namespace stet {
namespace {

constexpr uint32_t kMostThreads = 1024, kMostContext = 1u << 30, kMostDepth = 15;

}  // namespace

void ModelFlags::declare_model(Flags& flags) {
  flags.section("Model");
  flags.text("-m,--model", "MODEL", &options.model, "a GGUF file, a folder from Hugging Face, smollm2-135m, or synth:GEOMETRY:FORMAT");
  flags.choice("--activations", &options.activations, {"auto", "a8", "f32", "checkpoint"},
               "what activations are rounded to: what the file declares, else a8 (auto); each has other numbers");
  flags.preset("--float", &options.activations, "f32",
               "--activations f32: dequantised weights too, the float reference path; slower");
  flags.choice("--kv", &options.kv, {"f16", "f32", "q8", "fp8"}, "format of the KV cache (f16); fp8: of DeepSeek V4's published mode, without loss");
}

void ModelFlags::declare_context(Flags& flags) {
  flags.count("--ctx", &options.context, 1, kMostContext,
              "context in tokens (what fits into 80 % of memory, at most the trained length)");
}

void ModelFlags::declare_threads(Flags& flags) {
  flags.section("Machine (none of these changes the output)");
  flags.count("--threads", &options.threads, 1, kMostThreads, "threads (from affinity, CPU quota and physical cores)");
  flags.choice("--pack", &options.pack, {"cache", "mapped", "none"},
               "packed weights: kept in the cache directory and loaded into huge pages, kept and mapped, or in memory only");
}

void ModelFlags::declare_machine(Flags& flags) {
  declare_threads(flags);
  flags.toggle("--pin", &options.pin, "bind each thread to a processor");
  flags.choice("--isa", &options.isa, {"auto", "scalar", "avx2", "avxvnni", "avx512"},
               "instruction set (auto: the last that the processor has)");
  flags.choice("--device", &options.device, {"cpu", "cuda", "auto"},
               "where lists run: the processor, the first NVIDIA GPU, or that where there is one (cpu)");
  flags.choice("--replay", &options.replay, {"eager", "recorded", "replayed"}, "how command lists run (replayed)");
}

void ModelFlags::declare_draft(Flags& flags) {
  flags.section("Speculation (changes the speed, never the output)");
  flags.text("--draft", "none|ngram|mtp|dspark|model:FILE", &options.draft,
             "who proposes tokens: nobody, the text so far, the checkpoint's own blocks, or a smaller model (none)");
  flags.count("--draft-depth", &options.draft_depth, 1, kMostDepth, "proposals a step (the draft's own)");
}

void ModelFlags::check() const {
  if (options.model.empty())
    fail(Code::kUsage, "no model given: name one with -m: a GGUF file, a folder from Hugging Face, smollm2-135m, or synth:GEOMETRY:FORMAT");
  if (options.draft_depth != 0 && options.draft == "none")
    fail(Code::kUsage, "--draft-depth is {} without a draft: add --draft ngram, mtp, dspark or model:FILE",
         options.draft_depth);
}

std::unique_ptr<Engine> ModelFlags::load() const {
  std::unique_ptr<Engine> engine = load_silently();
  if (!quiet) say(load_line(engine->info()));
  return engine;
}

std::unique_ptr<Engine> ModelFlags::load_silently() const {
  check();
  LoadProgress progress(quiet);
  Options with_progress = options;
  with_progress.progress = [&](std::string_view phase, uint64_t done, uint64_t total) { progress(phase, done, total); };
  auto engine = std::make_unique<Engine>(with_progress);
  progress.clear();
  return engine;
}

std::string shown_bytes(uint64_t bytes) {
  constexpr double kMib = 1 << 20, kGib = 1 << 30;
  const double n = static_cast<double>(bytes);
  return n >= kGib ? fmt::format("{:.2f} GiB", n / kGib) : fmt::format("{:.1f} MiB", n / kMib);
}

std::string load_line(const EngineInfo& info) {
  std::string line = fmt::format("{}{}: {} of weights {} ({}, {}); context {} tokens, {} of {} when full ({}); {}, {}",
                                 info.model_name, info.synthetic ? " (synthetic)" : "", shown_bytes(info.weight_bytes), info.weights_place,
                                 info.architecture, info.activations, info.context, shown_bytes(info.kv_bytes), info.kv,
                                 info.memory_why, info.threads_why, info.isa);
  if (info.device == "cuda") {
    line += fmt::format("; on {}, {} of its memory ({})", info.device_name, shown_bytes(info.device_bytes), info.device_why);
  } else if (!info.device_why.empty()) {
    line += fmt::format("; on the processor, {}", info.device_why);
  }
  if (info.draft != "none") line += fmt::format("; draft {}, depth {}", info.draft, info.draft_depth);
  return line;
}

}  // namespace stet
