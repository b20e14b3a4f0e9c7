#include "lab/rerun/rerun.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "engine/parts.h"
#include "lab/metrics/exactness.h"
#include "base/strict_json.h"
#include "lab/rerun/recorded_sampling.h"

namespace stet {
namespace {

using RerunOutcome = RerunRequest::Outcome;

constexpr const char* kUnproven = "unproven";

std::string member(const Json& identity, const char* name) {
  if (!identity.is_object() || !identity.contains(name) || !identity[name].is_string()) return kUnproven;
  return identity[name].get<std::string>();
}

class Rerunner {
 public:
  Rerunner(Engine& engine, const Packet& packet) : engine_(engine) {
    for (const StartRecord& s : packet.starts)
      identities_[{s.arm, s.start}] = parse_json(s.identity_json, "the identity of a start");
  }

  RerunRequest run(const RequestRecord& r) {
    RerunRequest out;
    out.id = r.id;
    out.arm = r.arm;
    out.step = r.step_id;
    const std::vector<int32_t> ids = r.token_ids();
    out.tokens = static_cast<uint32_t>(ids.size());
    const RecordedSampling sampling = recorded_sampling(r.sampling);
    std::vector<int32_t> prompt;
    out.why = obstacle(r, sampling, ids);
    if (out.why.empty()) out.why = read_prompt(r, prompt, out.tokenised_here);
    if (!out.why.empty()) return out;
    const auto [known, is_new] = known_.try_emplace({prompt, ids, r.sampling});
    if (is_new) known->second = confirm(prompt, ids, sampling.params);
    std::tie(out.outcome, out.confirmed, out.why) = known->second;
    return out;
  }

 private:
  using Verdict = std::tuple<RerunOutcome, uint32_t, std::string>;

  // Why nothing can be said about a request; empty: something can.
  std::string obstacle(const RequestRecord& r, const RecordedSampling& sampling,
                       const std::vector<int32_t>& ids) const {
    if (ids.empty()) return "the packet has no ids of its answer";
    if (!sampling.problem.empty()) return sampling.problem;
    const Json& identity = identities_.at({r.arm, r.start});
    if (sampling.params.temperature > 0 && member(identity, "program") != "stet")
      return "it was sampled with the noise of another program";
    const EngineInfo& info = engine_.info();
    for (const auto& [name, here, flag] :
         {std::tuple{"kv", info.kv, "--kv"}, std::tuple{"activations", info.activations, "--activations"}}) {
      const std::string there = member(identity, name);
      if (there != kUnproven && there != here)
        return fmt::format("it was answered with {} {}, and here it is {} ({})", name, there, here, flag);
    }
    return "";
  }

  std::string read_prompt(const RequestRecord& r, std::vector<int32_t>& prompt, bool& tokenised_here) const {
    if (r.prompt_token_ids) {
      prompt = *r.prompt_token_ids;
    } else {
      tokenised_here = true;
      try {
        prompt = tokenise(r.prompt);
      } catch (const Error& e) {
        return fmt::format("its prompt has no ids and cannot be tokenised here: {}", e.what());
      }
      if (r.usage.prompt_tokens && *r.usage.prompt_tokens != prompt.size())
        return fmt::format("its prompt has no ids; tokenised here it has {} tokens, and the server counted {}",
                           prompt.size(), *r.usage.prompt_tokens);
    }
    return prompt.empty() ? "its prompt is empty" : "";
  }

  std::vector<int32_t> tokenise(const std::string& prompt) const {
    Json json;
    try {
      json = parse_json(prompt, "the prompt");
    } catch (const Error&) {
      return engine_.tokenize(prompt);  // plain text
    }
    if (json.is_string()) return engine_.tokenize(json.get<std::string>());
    if (!json.is_array()) return engine_.tokenize(prompt);
    std::vector<ChatMessage> messages;
    for (const Json& item : json) {
      StrictObject message(item, "a message of the prompt");
      messages.push_back({message.text("role"), message.text("content")});
    }
    return engine_.tokenize_chat(messages);
  }

  Verdict confirm(const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids, const SamplingParams& params) {
    const uint32_t vocab = engine_.parts().desc.vocab;
    std::vector<int32_t> timeline = prompt;
    timeline.insert(timeline.end(), ids.begin(), ids.end());
    for (size_t i = 0; i < timeline.size(); ++i)
      if (timeline[i] < 0 || static_cast<uint32_t>(timeline[i]) >= vocab)
        return {RerunOutcome::differs, 0,
                fmt::format("id {} at position {} is outside this model's vocabulary of {}", timeline[i], i, vocab)};
    if (timeline.size() - 1 > engine_.info().context)
      return {RerunOutcome::not_confirmed, 0,
              fmt::format("it has {} tokens, and the context here has {} (--ctx)", timeline.size() - 1,
                          engine_.info().context)};
    try {
      return sample_all(timeline, prompt.size(), params);
    } catch (const Error& e) {
      if (e.code() != Code::kUsage) throw;
      return {RerunOutcome::not_confirmed, 0, e.what()};  // parameters that no sampler here takes
    }
  }

  Verdict sample_all(const std::vector<int32_t>& timeline, size_t prompt_tokens, const SamplingParams& params) {
    Sampler sampler(*engine_.parts().kernels, params, engine_.parts().desc.vocab);
    const std::span<const int32_t> all(timeline), prompt = all.first(prompt_tokens);
    uint32_t confirmed = 0;
    std::string why;
    engine_.logits(all.first(all.size() - 1), [&](uint32_t position, std::span<const float> logits) {
      if (position + 1 < prompt_tokens || !why.empty()) return;
      const uint32_t index = position + 1 - static_cast<uint32_t>(prompt_tokens);
      const SampleResult found = sampler.sample(logits.data(), prompt, all.subspan(prompt_tokens, index), position + 1);
      const int32_t expected = timeline[position + 1];
      if (found.ok() && found.token == expected)
        ++confirmed;
      else if (found.ok())
        why = fmt::format("token {} of the answer (position {}) is {} in the packet and {} here", index, position + 1,
                          expected, found.token);
      else
        why =
            fmt::format("the logits for token {} of the answer (position {}) are not finite here", index, position + 1);
    });
    return {why.empty() ? RerunOutcome::confirmed : RerunOutcome::differs, confirmed, why};
  }

  Engine& engine_;
  std::map<std::pair<std::string, uint32_t>, Json> identities_;
  std::map<std::tuple<std::vector<int32_t>, std::vector<int32_t>, std::string>, Verdict> known_;
};

}  // namespace

uint32_t RerunReport::count(RerunRequest::Outcome outcome) const {
  return static_cast<uint32_t>(
      std::count_if(requests.begin(), requests.end(), [&](const RerunRequest& r) { return r.outcome == outcome; }));
}

uint64_t RerunReport::confirmed_tokens() const {
  uint64_t n = 0;
  for (const RerunRequest& r : requests) n += r.confirmed;
  return n;
}

RerunReport rerun(Engine& engine, const Packet& packet, const RerunProgress& progress) {
  RerunReport report;
  Rerunner rerunner(engine, packet);
  for (const RequestRecord& r : packet.requests) {
    if (progress) progress(report.requests.size(), packet.requests.size());
    report.requests.push_back(rerunner.run(r));
  }
  return report;
}

ModelMatch match_model(const Packet& packet, const std::string& engine_identity) {
  const std::string here = member(parse_json(engine_identity, "the identity of the engine"), "model_sha256");
  for (const StartRecord& s : packet.starts) {
    const std::string there = member(parse_json(s.identity_json, "the identity of a start"), "model_sha256");
    if (there == kUnproven) continue;
    const std::string what = fmt::format("{} in the packet, {} here", there, here);
    if (here == kUnproven) return {kUnproven, what};
    if (there != here) return {"other", what};
    return {"same", what};
  }
  return {kUnproven, fmt::format("the packet does not say; {} here", here)};
}

}  // namespace stet
