// stet perplexity: how well a model predicts a text.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/perplexity_score.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "engine/parts.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kDefaultWindow = 512;

struct PerplexityFlags {
  ModelFlags model;
  std::string file;
  uint32_t window = kDefaultWindow;
  bool kl = false, json = false;

  void declare(Flags& flags) {
    model.declare_model(flags);
    flags.section("Text");
    flags.text("-f,--file", "FILE", &file, "the text (- is standard input)");
    flags.count("--ctx", &window, 8, 1u << 20, "tokens of a window (512)");
    flags.toggle("--kl", &kl, "run the float reference path too: KL divergence from it, share of equal first choices");
    model.declare_machine(flags);
    flags.section("Output");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
    flags.toggle("-q,--quiet", &model.quiet, "nothing but errors on standard error");
    flags.footer(
        "The rule is that of llama.cpp's tool: windows of --ctx tokens, each on an empty context; the second half of "
        "a\n"
        "window scores the tokens that follow; what is left of the text is dropped; a text of two windows at least.");
  }
};

struct Score {
  Mean loss, kl, float_loss;
  uint64_t same_first = 0;
};

// Scores every window with `engine`, and against `reference` where there is one.
class Scorer {
 public:
  Scorer(Engine& engine, Engine* reference, const std::vector<int32_t>& text, const Windows& windows)
      : engine_(engine), reference_(reference), text_(text), windows_(windows) {}

  Score run(bool quiet) {
    ProgressLine progress(!quiet);
    for (uint32_t i = 0; i < windows_.count; ++i) {
      progress.show(i == 0 ? fmt::format("window 1 of {}", windows_.count)
                           : fmt::format("window {} of {}: perplexity so far {:.4f}", i + 1, windows_.count,
                                         std::exp(score_.loss.mean())));
      score_window(i);
    }
    return score_;
  }

 private:
  // Calls take(index of the scored position, row, the token that follows).
  template <typename Take>
  void each_scored(Engine& engine, uint32_t window, Take take) {
    const std::vector<int32_t> ids = window_ids(text_, windows_, window);
    engine.logits(ids, [&](uint32_t position, std::span<const float> row) {
      if (interrupts() > 0) fail(Code::kCancelled, "interrupted after {} of {} windows", window, windows_.count);
      const uint32_t first = windows_.first_scored();
      if (position >= first && position < first + windows_.scored()) take(position - first, row, ids[position + 1]);
    });
  }

  void score_window(uint32_t window) {
    if (reference_ != nullptr) {
      rows_.clear();
      each_scored(*reference_, window, [&](uint32_t, std::span<const float> row, int32_t next) {
        rows_.insert(rows_.end(), row.begin(), row.end());
        score_.float_loss.add(negative_log_likelihood(row, next));
      });
    }
    each_scored(engine_, window, [&](uint32_t index, std::span<const float> row, int32_t next) {
      score_.loss.add(negative_log_likelihood(row, next));
      if (reference_ == nullptr) return;
      const auto reference_row = std::span<const float>(rows_).subspan(index * row.size(), row.size());
      score_.kl.add(kl_divergence(reference_row, row));
      score_.same_first += most_likely(reference_row) == most_likely(row);
    });
  }

  Engine& engine_;
  Engine* reference_;
  const std::vector<int32_t>& text_;
  const Windows& windows_;
  std::vector<float> rows_;  // of the reference, of one window
  Score score_;
};

double share(const Score& s) { return static_cast<double>(s.same_first) / static_cast<double>(s.kl.count()); }

std::string report_text(const Score& s, const Windows& w, const EngineInfo& info, bool kl) {
  std::string text = fmt::format(
      "{} windows of {} tokens (the text has {}; {} at its end are not used){}; positions {} to {} of each are scored\n"
      "path {}: perplexity {:.4f} +- {:.4f}, {} tokens scored\n",
      w.count, w.length, w.text_tokens, w.text_tokens - uint64_t{w.count} * w.length,
      w.first_token ? fmt::format(", each begun with token {}", *w.first_token) : "", w.first_scored() + 1,
      w.first_scored() + w.scored(), info.activations, std::exp(s.loss.mean()),
      std::exp(s.loss.mean()) * s.loss.standard_error(), s.loss.count());
  if (kl)
    text += fmt::format(
        "path f32: perplexity {:.4f} +- {:.4f}\n"
        "mean KL(f32 || {}) {:.6f} +- {:.6f}; the same first choice at {:.2f} % of the positions\n",
        std::exp(s.float_loss.mean()), std::exp(s.float_loss.mean()) * s.float_loss.standard_error(), info.activations,
        s.kl.mean(), s.kl.standard_error(), 100.0 * share(s));
  if (info.synthetic) text += "the model is synthetic: these figures mean nothing\n";
  return text;
}

std::string report_json(const Score& s, const Windows& w, const EngineInfo& info, bool kl) {
  const auto null_or = [&](double value) { return kl ? Json(value) : Json(nullptr); };
  Json j;
  j["model"] = info.model_name;
  j["synthetic"] = info.synthetic;
  j["activations"] = info.activations;
  j["kv"] = info.kv;
  j["text_tokens"] = w.text_tokens;
  j["window"] = w.length;
  j["windows"] = w.count;
  j["first_token"] = w.first_token ? Json(*w.first_token) : Json(nullptr);
  j["scored_tokens"] = s.loss.count();
  j["perplexity"] = std::exp(s.loss.mean());
  j["perplexity_standard_error"] = std::exp(s.loss.mean()) * s.loss.standard_error();
  j["float_perplexity"] = null_or(kl ? std::exp(s.float_loss.mean()) : 0.0);
  j["mean_kl"] = null_or(kl ? s.kl.mean() : 0.0);
  j["kl_standard_error"] = null_or(kl ? s.kl.standard_error() : 0.0);
  j["same_first_choice"] = null_or(kl ? share(s) : 0.0);
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<int32_t> first_token(Engine& engine) {
  const Tokenizer& tokenizer = *engine.parts().tokenizer;
  return tokenizer.adds_bos() ? tokenizer.bos() : std::nullopt;
}

}  // namespace

int perplexity_main(std::span<const std::string> arguments) {
  PerplexityFlags flags;
  Flags parser("perplexity", "Measures how well a model predicts a text.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.model.check();
  if (flags.file.empty()) fail(Code::kUsage, "no text given: -f FILE");
  if (flags.kl && flags.model.options.activations == "f32")
    fail(Code::kUsage, "--kl compares with the float reference path: leave out --float and --activations f32");
  const std::string text = read_text_file(flags.file);
  flags.model.options.context = flags.window;
  const std::unique_ptr<Engine> engine = flags.model.load();
  const std::vector<int32_t> ids = engine->tokenize(text);
  const Windows windows = cut_windows(ids.size(), flags.window, first_token(*engine));
  std::unique_ptr<Engine> reference;
  if (flags.kl) {
    ModelFlags exact = flags.model;
    exact.options.activations = "f32";
    reference = exact.load();
  }
  const Score score = Scorer(*engine, reference.get(), ids, windows).run(flags.model.quiet);
  const auto report = flags.json ? report_json : report_text;
  write_out(report(score, windows, engine->info(), flags.kl));
  return kExitOk;
}

}  // namespace stet
