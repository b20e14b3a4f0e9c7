// Plans and packets that never ran, for the tests of the judge.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lab/compare/plan.h"
#include "lab/packet/packet.h"

namespace stet {

inline ComparePlan suite_plan(size_t prompts = 12) {
  ComparePlan plan;
  plan.label = "test";
  plan.created = "2026-11-30T00:00:00Z";
  plan.a_kind = plan.b_kind = ArmKind::serve;
  plan.a_shown = "serve:--model m.gguf";
  plan.b_shown = "serve:--model m.gguf --draft ngram";
  plan.suite_id = "test-v1";
  plan.suite_version = 1;
  plan.suite_sha256 = std::string(64, '5');
  for (size_t i = 0; i < prompts; ++i) plan.steps.push_back({fmt::format("p{}", i), i % 2 == 0 ? "code" : "prose"});
  plan.figures = {{"rate_100", true}};
  plan.equal = Equal::ids;
  plan.witnesses = {{"--draft", "proposed"}};
  plan.bootstrap.seed = 1;
  return plan;
}

// The rate of a prompt in a leg, in tokens a second.
using RateOf = std::function<double(const Leg& leg, size_t prompt)>;

constexpr uint32_t kAnswerTokens = 120;

inline int32_t answer_token(size_t prompt, uint32_t i) {
  return static_cast<int32_t>((prompt * 7919 + i * 104729 + i * i) % 30011);
}

// An answer at a rate: one token first, then cycles of `depth` + 1 tokens.
inline RequestRecord request_of(const Leg& leg, size_t prompt, double rate, uint32_t depth, int64_t begin_ns) {
  RequestRecord r;
  r.arm = std::string(1, leg.arm);
  r.start = leg.start;
  r.index = static_cast<uint32_t>(prompt);
  r.step_id = fmt::format("p{}", prompt);
  r.step_class = prompt % 2 == 0 ? "code" : "prose";
  r.id = fmt::format("{}-{}-{}", r.arm, r.start, r.step_id);
  r.prompt = fmt::format(R"([{{"role":"user","content":"prompt {}"}}])", prompt);
  r.max_tokens = kAnswerTokens;
  r.sent_ns = begin_ns;
  r.http_status = 200;
  for (uint32_t i = 0; i < kAnswerTokens;) {
    const uint32_t n = i == 0 ? 1 : std::min(depth + 1, kAnswerTokens - i);
    ChunkEvent c;
    c.client_ns = begin_ns + 50'000'000 + static_cast<int64_t>(1e9 * i / rate);
    c.text = "word ";
    c.token_ids.emplace();
    for (uint32_t k = 0; k < n; ++k) c.token_ids->push_back(answer_token(prompt, i + k));
    c.depth = i == 0 ? 0 : depth;
    c.accepted = n - 1;
    r.chunks.push_back(std::move(c));
    i += n;
  }
  r.end_ns = r.chunks.back().client_ns + 1000;
  r.finish_reason = "length";
  r.usage = {10, kAnswerTokens, 0};
  r.complete = true;
  return r;
}

inline Packet packet_of(const ComparePlan& plan, const RateOf& rate, uint32_t depth_of_b = 1) {
  Packet packet;
  packet.plan_json = plan_json(plan);
  packet.identity_json = "{}";
  int64_t now = 1'000'000'000;
  for (const Leg& leg : legs_of(plan)) {
    StartRecord start{std::string(1, leg.arm), leg.start, true,
                      R"({"engine":{"draft":")" + std::string(leg.arm == 'B' ? "ngram" : "none") + R"("}})", now};
    packet.starts.push_back(start);
    for (size_t p = 0; p < plan.steps.size(); ++p) {
      packet.requests.push_back(request_of(leg, p, rate(leg, p), leg.arm == 'B' ? depth_of_b : 0, now));
      now = packet.requests.back().end_ns + 1'000'000;
    }
    now += 1'000'000'000;
  }
  return packet;
}

// The start of an arm loses a tenth of the processor to others.
inline void disturb(Packet& packet, const std::string& arm, uint32_t start) {
  for (RequestRecord& r : packet.requests) {
    if (r.arm != arm || r.start != start) continue;
    r.before.cpu_ticks = 1000;
    r.before.steal_ticks = 0;
    r.after.cpu_ticks = 2000;
    r.after.steal_ticks = 100;
    return;
  }
}

// Once more the start of an arm, behind itself: those after it have the next numbers.
inline void repeat_start(Packet& packet, const std::string& arm, uint32_t start) {
  const auto later = [&](const auto& record) { return record.arm == arm && record.start > start; };
  for (StartRecord& s : packet.starts) s.start += later(s);
  for (RequestRecord& r : packet.requests) {
    if (!later(r)) continue;
    r.start += 1;
    r.id = fmt::format("{}-{}-{}", r.arm, r.start, r.step_id);
  }
  const auto is = [&](const auto& record) { return record.arm == arm && record.start == start; };
  const auto at = std::find_if(packet.starts.begin(), packet.starts.end(), is);
  StartRecord again = *at;
  again.start += 1;
  packet.starts.insert(at + 1, again);
  std::vector<RequestRecord> answers;
  auto end = packet.requests.begin();
  for (auto r = packet.requests.begin(); r != packet.requests.end(); ++r) {
    if (!is(*r)) continue;
    answers.push_back(*r);
    answers.back().start += 1;
    answers.back().id = fmt::format("{}-{}-{}", arm, start + 1, r->step_id);
    end = r + 1;
  }
  packet.requests.insert(end, answers.begin(), answers.end());
}

}  // namespace stet
