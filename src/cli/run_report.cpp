#include "cli/run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/sampling_flags.h"
#include "text/unicode.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownDigest = 16;

std::string shown_acceptance(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares) text += fmt::format("{}{:.0f}", text.empty() ? "" : " ", 100.0 * share);
  return text;
}

}  // namespace

std::string figures_line(const Generation& g, const EngineInfo& info, const Request& request) {
  std::string line;
  if (info.synthetic) line += "synthetic model: ";
  line += fmt::format("prompt {} tokens", g.prompt_tokens);
  if (g.cached_tokens > 0) line += fmt::format(" ({} cached)", g.cached_tokens);
  if (!g.tokens.empty()) line += fmt::format(" at {:.0f} tokens/s", g.prefill_tokens_per_second());
  line += fmt::format("; answer {} tokens", g.tokens.size());
  if (g.decode_tokens_per_second() > 0)
    line += fmt::format(" at {:.1f} tokens/s{}", g.decode_tokens_per_second(),
                        info.history_accelerated ? " (history-accelerated)" : "");
  if (info.draft != "none") {
    line += fmt::format("; draft {}: {:.2f} tokens a cycle", info.draft, g.tokens_per_cycle());
    const std::string acceptance = shown_acceptance(g.acceptance_by_position());
    if (!acceptance.empty()) line += fmt::format(", accepted by position {} %", acceptance);
  }
  line += fmt::format("; digest {}", g.digest().substr(0, kShownDigest));
  if (is_sampled(request.sampling)) line += fmt::format(", seed {}", request.sampling.seed);
  return line + fmt::format("; finish {}", finish_name(g.finish));
}

std::string run_json(const Generation& g, const EngineInfo& info, const Request& request) {
  Json j;
  j["model"] = info.model_name;
  j["synthetic"] = info.synthetic;
  j["text"] = replace_invalid_utf8(g.text);
  j["token_ids"] = g.tokens;
  j["digest"] = g.digest();
  j["finish"] = finish_name(g.finish);
  j["prompt_tokens"] = g.prompt_tokens;
  j["cached_tokens"] = g.cached_tokens;
  j["output_tokens"] = g.tokens.size();
  j["prefill_tokens_per_second"] = g.prefill_tokens_per_second();
  j["decode_tokens_per_second"] = g.decode_tokens_per_second();
  j["first_token_seconds"] = g.first_token_seconds;
  j["total_seconds"] = g.total_seconds;
  j["draft"] = info.draft;
  j["draft_depth"] = info.draft_depth;
  j["history_accelerated"] = info.history_accelerated;
  j["tokens_per_cycle"] = g.tokens_per_cycle();
  j["acceptance"] = g.acceptance_by_position();
  j["temperature"] = request.sampling.temperature;
  j["seed"] = is_sampled(request.sampling) ? Json(request.sampling.seed) : Json(nullptr);
  j["profile"] = info.profile;
  j["activations"] = info.activations;
  j["kv"] = info.kv;
  j["context"] = info.context;
  j["isa"] = info.isa;
  j["threads"] = info.threads;
  j["device"] = info.device;
  j["device_name"] = info.device_name;
  j["pack"] = info.pack_key;
  j["weights"] = info.weights_place;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stet
