#include "base/error.h"
#include "lab/record/event_lines.h"
#include "base/strict_json.h"

namespace stet {
namespace {

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Json object_of(std::string_view text, const char* what) {
  Json json;
  try {
    json = parse_json(text, what);
  } catch (const Error& e) {
    fail(Code::kInternal, "internal error: {}", e.what());
  }
  if (!json.is_object()) fail(Code::kInternal, "internal error: {}: not a JSON object", what);
  return json;
}

Json sample_json(const SystemSample& sample) {
  Json json = {{"client_ns", sample.client_ns}};
  put(json, "suspended_ns", sample.suspended_ns);
  put(json, "cpu_ticks", sample.cpu_ticks);
  put(json, "steal_ticks", sample.steal_ticks);
  put(json, "swapped_pages", sample.swapped_pages);
  put(json, "throttle_events", sample.throttle_events);
  return json;
}

void check_times(const RequestRecord& r) {
  int64_t last = r.sent_ns;
  for (const ChunkEvent& chunk : r.chunks) {
    if (chunk.client_ns < last)
      fail(Code::kInternal, "internal error: request {}: a frame came {} ns before what was there already", r.id,
           last - chunk.client_ns);
    last = chunk.client_ns;
  }
  if (r.end_ns < last) fail(Code::kInternal, "internal error: request {} ended before its last frame", r.id);
}

}  // namespace

std::string_view channel_name(Channel channel) {
  switch (channel) {
    case Channel::content:
      return "content";
    case Channel::reasoning:
      return "reasoning";
    case Channel::tool:
      return "tool";
    case Channel::none:
      return "none";
  }
  return "";
}

std::string plan_line(std::string_view plan_sha256) {
  return dump_line({{"type", "plan"}, {"sha256", plan_sha256}}) + "\n";
}

std::string start_line(const StartRecord& s) {
  const Json json = {{"type", "start"},          {"arm", s.arm},
                     {"start", s.start},         {"fresh", s.fresh},
                     {"client_ns", s.client_ns}, {"identity", object_of(s.identity_json, "the identity of a start")}};
  return dump_line(json) + "\n";
}

std::string chunk_line(const ChunkEvent& chunk) {
  Json json = {{"type", "chunk"}, {"client_ns", chunk.client_ns}};
  put(json, "server_ns", chunk.server_ns);
  json["channel"] = channel_name(chunk.channel);
  json["text"] = chunk.text;
  put(json, "token_ids", chunk.token_ids);
  put(json, "depth", chunk.depth);
  put(json, "accepted", chunk.accepted);
  put(json, "draft_ns", chunk.draft_ns);
  put(json, "logprobs", chunk.logprobs);
  return dump_line(json) + "\n";
}

std::string request_begin_line(const RequestRecord& r) {
  Json json = {{"type", "request"}, {"id", r.id},        {"arm", r.arm},          {"start", r.start},
               {"index", r.index},  {"step", r.step_id}, {"class", r.step_class}, {"prompt", r.prompt}};
  put(json, "prompt_token_ids", r.prompt_token_ids);
  if (!r.sampling.empty()) json["sampling"] = object_of(r.sampling, "the sampling parameters of a request");
  json["max_tokens"] = r.max_tokens;
  json["before"] = sample_json(r.before);
  json["sent_ns"] = r.sent_ns;
  return dump_line(json) + "\n";
}

std::string request_end_line(const RequestRecord& r) {
  Json usage = Json::object();
  put(usage, "prompt_tokens", r.usage.prompt_tokens);
  put(usage, "completion_tokens", r.usage.completion_tokens);
  put(usage, "cached_tokens", r.usage.cached_tokens);
  const Json json = {{"type", "end"},
                     {"id", r.id},
                     {"end_ns", r.end_ns},
                     {"http_status", r.http_status},
                     {"finish_reason", r.finish_reason},
                     {"usage", usage},
                     {"complete", r.complete},
                     {"cancelled_by_client", r.cancelled_by_client},
                     {"error", r.error},
                     {"after", sample_json(r.after)}};
  return dump_line(json) + "\n";
}

std::string request_lines(const RequestRecord& request) {
  check_times(request);
  std::string lines = request_begin_line(request);
  for (const ChunkEvent& chunk : request.chunks) lines += chunk_line(chunk);
  return lines + request_end_line(request);
}

std::string measure_line(const MeasureRecord& m) {
  if (m.end_ns < m.begin_ns) fail(Code::kInternal, "internal error: measure '{}' ended before it began", m.point);
  const Json json = {{"type", "measure"},
                     {"arm", m.arm},
                     {"start", m.start},
                     {"point", m.point},
                     {"begin_ns", m.begin_ns},
                     {"end_ns", m.end_ns},
                     {"before", sample_json(m.before)},
                     {"after", sample_json(m.after)},
                     {"figures", object_of(m.figures_json, "the figures of a measure")}};
  return dump_line(json) + "\n";
}

std::string note_line(std::string_view name, std::string_view json_object) {
  return dump_line({{"type", "note"}, {"name", name}, {"body", object_of(json_object, "a note")}}) + "\n";
}

}  // namespace stet
