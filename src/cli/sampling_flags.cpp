#include "cli/sampling_flags.h"

#include "base/error.h"
#include "cli/terminal.h"

namespace stet {
namespace {

constexpr uint32_t kMostNewTokens = 1u << 30;

// "42=-1.5"
std::pair<int32_t, float> parse_bias(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) fail(Code::kUsage, "--logit-bias is '{}': write ID=VALUE, such as 42=-1.5", text);
  const uint64_t id = parse_whole("the token id of --logit-bias", text.substr(0, equals), 0, INT32_MAX);
  return {static_cast<int32_t>(id), parse_number("the value of --logit-bias", text.substr(equals + 1))};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void SamplingFlags::declare(Flags& flags) {
  flags.section("Answer");
  flags.count("-n,--max-tokens", &max_tokens, 1, kMostNewTokens, "end after so many tokens (what the context holds)");
  flags.texts("--stop", "TEXT", &stops,
              "end before this text; repeatable; \\n, \\t, \\r, \\\\ and \\xHH are understood");
  flags.toggle("--ignore-eos", &ignore_eos, "do not end at the model's end token");
  flags.section("Sampling");
  flags.number("-t,--temperature", &params.temperature, "0 is greedy: the most likely token, always (0)");
  flags.count("--top-k", &params.top_k, 0, INT32_MAX, "among the K most likely; 0 is off (0)");
  flags.number("--top-p", &params.top_p, "among the most likely that together have this probability; 1 is off (1)");
  flags.number("--min-p", &params.min_p, "among those at least this likely, relative to the first; 0 is off (0)");
  flags.number("--repetition-penalty", &params.repetition_penalty, "for tokens of prompt and answer; 1 is off (1)");
  flags.number("--presence-penalty", &params.presence_penalty, "once for each token of the answer; 0 is off (0)");
  flags.number("--frequency-penalty", &params.frequency_penalty, "for each time a token occurs in the answer (0)");
  flags.texts("--logit-bias", "ID=VALUE", &biases, "add VALUE to the logit of a token; repeatable");
  flags.seed("--seed", &seed, "of the noise, when the temperature is above 0 (drawn, and printed)");
}

Request SamplingFlags::request() const {
  Request request;
  request.max_tokens = max_tokens;
  request.ignore_eos = ignore_eos;
  request.sampling = params;
  for (const std::string& bias : biases) {
    const auto [id, value] = parse_bias(bias);
    if (!request.sampling.logit_bias.emplace(id, value).second)
      fail(Code::kUsage, "--logit-bias names token {} twice", id);
  }
  for (const std::string& stop : stops) {
    request.stop.push_back(unescape("--stop", stop));
    if (request.stop.back().empty()) fail(Code::kUsage, "--stop is empty: give the text to stop at");
  }
  request.sampling.validate(INT32_MAX);  // the ranges, before a model is loaded
  if (is_sampled(params)) {
    request.sampling.seed = seed ? *seed : draw_seed();
  } else if (params.top_k != 0 || params.top_p != 1.0f || params.min_p != 0.0f) {
    say("note: --top-k, --top-p and --min-p play no part at temperature 0 (greedy); give --temperature too");
  }
  return request;
}

bool is_sampled(const SamplingParams& params) { return params.temperature > 0.0f; }

std::string unescape(std::string_view flag, std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char c = ++i < text.size() ? text[i] : '\0';
    if (c == 'n' || c == 't' || c == 'r' || c == '\\') {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : '\\';
    } else if (c == 'x' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      fail(Code::kUsage,
           "{} is '{}': after a backslash there may be n, t, r, x and two hexadecimal digits, or a second "
           "backslash",
           flag, text);
    }
  }
  return out;
}

}  // namespace stet
