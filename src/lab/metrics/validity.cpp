#include "lab/metrics/validity.h"

#include <fmt/format.h>

#include "lab/metrics/acceptance.h"
#include "lab/metrics/exactness.h"
#include "lab/metrics/repetition.h"
#include "lab/metrics/system.h"

namespace stet {
namespace {

constexpr int kHttpOk = 200;

void judge_end(const RequestRecord& r, const FigureRules& rules, RequestFigures& f) {
  if (!r.error.empty()) f.invalid.push_back("error: " + r.error);
  if (r.http_status != kHttpOk) f.invalid.push_back(fmt::format("error: HTTP status {}", r.http_status));
  if (r.cancelled_by_client) return;
  if (!r.complete) f.invalid.emplace_back("truncated events: the stream did not end as its protocol says");
  const std::string& why = r.finish_reason;
  const bool known = why == "stop" || why == "length" || why == "context";
  if (rules.fixed_length ? why != "length" : !known)
    f.invalid.push_back(
        fmt::format("wrong finish: '{}'{}", why, rules.fixed_length ? " where the length is fixed" : ""));
  if (why == "length" && r.max_tokens > 0 && f.tokens != r.max_tokens)
    f.invalid.push_back(fmt::format("wrong finish: 'length' after {} of {} tokens", f.tokens, r.max_tokens));
}

void judge_counts(const RequestRecord& r, RequestFigures& f) {
  bool tokens_without_ids = false;
  for (const ChunkEvent& chunk : r.chunks) {
    tokens_without_ids =
        tokens_without_ids || (!chunk.token_ids && chunk.channel != Channel::none && !chunk.text.empty());
  }
  if (!ids_known(r) || tokens_without_ids) {
    f.unproven.emplace_back("token ids: not every frame with text has them, so tokens cannot be timed");
  } else if (!r.usage.completion_tokens) {
    if (!r.cancelled_by_client) f.unproven.emplace_back("count: the server reports no completion tokens");
  } else if (*r.usage.completion_tokens != f.tokens) {
    f.invalid.push_back(fmt::format("count mismatch: the server reports {} completion tokens and {} ids came",
                                    *r.usage.completion_tokens, f.tokens));
  }
  if (r.prompt_token_ids && r.usage.prompt_tokens && *r.usage.prompt_tokens != r.prompt_token_ids->size())
    f.invalid.push_back(fmt::format("count mismatch: the server reports {} prompt tokens and {} ids came",
                                    *r.usage.prompt_tokens, r.prompt_token_ids->size()));
}

void judge_cache(const RequestRecord& r, const FigureRules& rules, RequestFigures& f) {
  if (!rules.cold) return;
  if (!r.usage.cached_tokens) {
    if (!r.cancelled_by_client)
      f.unproven.emplace_back("cache unproven: the server does not say how many prompt tokens were cached");
  } else if (*r.usage.cached_tokens > 0) {
    f.invalid.push_back(fmt::format("warm cache: {} prompt tokens were there already", *r.usage.cached_tokens));
  }
}

void judge_text(const RequestRecord& r, const FigureRules& rules, RequestFigures& f) {
  const std::vector<int32_t> ids = r.token_ids();
  if (const auto loop = repetition_loop(ids)) f.invalid.push_back("repetition loop: " + shown(*loop));
  if (std::string wrong = cycle_contradiction(r); !wrong.empty()) f.invalid.push_back(std::move(wrong));
  if (!rules.speculative) return;
  AcceptanceCounts counts;
  counts.add(r);
  if (counts.cycles == 0 && !ids.empty()) f.unproven.emplace_back("acceptance: the server does not report its cycles");
  // A short answer may well accept nothing; a whole run must not (the judges look at the sum).
  const std::string alarm = acceptance_alarm(counts);
  if (alarm.starts_with("flat")) f.invalid.push_back(alarm);
}

}  // namespace

void judge_validity(const RequestRecord& request, const FigureRules& rules, RequestFigures& figures) {
  judge_end(request, rules, figures);
  judge_counts(request, figures);
  judge_cache(request, rules, figures);
  judge_text(request, rules, figures);
  SystemChanges changes = system_changes(request.before, request.after);
  figures.invalid.insert(figures.invalid.end(), changes.faults.begin(), changes.faults.end());
  figures.not_watched = std::move(changes.not_watched);
}

}  // namespace stet
