// A body on its way to an ApiRequest: what has to be seen as a whole before it means something.
#pragma once

#include "server/api/api_request.h"

namespace stet {

struct RawRequest {
  ModelLimits limits;
  ApiRequest out;
  std::optional<uint64_t> seed, max_tokens, max_completion_tokens;
  std::optional<bool> logprobs;
  std::optional<uint32_t> top_logprobs;
  bool has_stream_options = false;
  bool no_reasoning = false;  // reasoning_effort says so
};

using RequestFields = std::vector<Field<RawRequest>>;

// The tables. What stands in all of them is in sampling_fields() and common_fields().
RequestFields sampling_fields();
RequestFields common_fields();
const RequestFields& chat_fields();
const RequestFields& completion_fields();

template <typename T>
void add_known(std::vector<KnownField>& out, std::string_view endpoint, const std::vector<Field<T>>& table) {
  for (const Field<T>& field : table) out.push_back({endpoint, field.rule.name, field.rule.kind});
}
void add_known_tokenize_fields(std::vector<KnownField>& out);

}  // namespace stet
