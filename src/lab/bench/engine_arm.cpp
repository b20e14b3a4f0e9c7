// An engine asked directly: every cycle becomes a frame, with the time at which the listener heard of it.
#include "base/error.h"
#include "lab/bench/arm.h"
#include "lab/metrics/system.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr int kAnswered = 200;

// A model without a chat template reads the messages one after the other.
std::vector<int32_t> prompt_ids(const Engine& engine, const std::vector<SuiteMessage>& messages) {
  if (!engine.has_chat_template()) {
    std::string text;
    for (const SuiteMessage& m : messages) text += m.content + "\n";
    return engine.tokenize(text);
  }
  std::vector<ChatMessage> chat;
  for (const SuiteMessage& m : messages) chat.push_back({m.role, m.content});
  return engine.tokenize_chat(chat);
}

// Whether the client has what it wants.
bool has_enough(const PlannedRequest& request, size_t tokens) {
  return request.cancel_after_tokens && tokens >= *request.cancel_after_tokens;
}

ChunkEvent frame(const CycleEvent& event) {
  ChunkEvent chunk;
  chunk.client_ns = monotonic_ns();
  chunk.server_ns = chunk.client_ns;  // one clock, and no way between
  chunk.channel = event.tokens.empty() ? Channel::none : Channel::content;
  chunk.text = std::string(event.text);
  chunk.token_ids.emplace(event.tokens.begin(), event.tokens.end());
  chunk.depth = event.cycle.proposed;
  chunk.accepted = event.cycle.accepted;
  chunk.draft_ns = static_cast<int64_t>(event.cycle.draft_seconds * 1e9);
  if (event.logprobs.empty()) return chunk;
  chunk.logprobs.emplace();
  for (const PositionLogprobs& p : event.logprobs) chunk.logprobs->push_back(p.chosen.logprob);
  return chunk;
}

void run(Engine& engine, const PlannedRequest& planned, const std::function<bool()>& stop, RequestRecord& record) {
  Request request;
  request.prompt = prompt_ids(engine, planned.messages);
  request.max_tokens = planned.max_tokens;
  request.sampling = planned.sampling;
  request.stop = planned.stop;
  request.ignore_eos = planned.ignore_eos;
  request.reuse_prefix = !planned.cold;
  if (planned.logprobs) request.top_logprobs = 0;
  record.prompt_token_ids = request.prompt;
  size_t tokens = 0;
  bool interrupted = false;
  const auto go_on = [&] { return !(interrupted = interrupted || (stop && stop())); };
  const Generation answer = engine.generate(
      request,
      [&](const CycleEvent& event) {
        record.chunks.push_back(frame(event));
        tokens += event.tokens.size();
        return go_on() && !has_enough(planned, tokens);
      },
      [&](uint32_t, uint32_t) { return go_on() && !has_enough(planned, 0); });
  if (interrupted) fail(Code::kCancelled, "interrupted while the engine answered");
  record.cancelled_by_client = answer.finish == Finish::cancelled;
  record.complete = !record.cancelled_by_client;
  if (record.complete) record.finish_reason = finish_name(answer.finish);
  record.usage = {answer.prompt_tokens, static_cast<uint32_t>(answer.tokens.size()), answer.cached_tokens};
}

}  // namespace

RequestRecord ask_engine(Engine& engine, const PlannedRequest& request, const std::function<bool()>& stop) {
  RequestRecord record;
  record.step_id = request.step_id;
  record.step_class = request.step_class;
  record.prompt = messages_json(request.messages);
  record.sampling = sampling_json(request);
  record.max_tokens = request.max_tokens;
  record.http_status = kAnswered;
  record.before = sample_system();
  record.sent_ns = monotonic_ns();
  try {
    run(engine, request, stop, record);
  } catch (const Error& e) {
    if (e.code() == Code::kCancelled) throw;
    record.error = e.what();
  }
  record.end_ns = monotonic_ns();
  record.after = sample_system();
  return record;
}

std::string options_json(const Options& o) {
  return dump_line({{"model", o.model},
                    {"isa", o.isa},
                    {"device", o.device},
                    {"threads", o.threads},
                    {"pin", o.pin},
                    {"context", o.context},
                    {"kv", o.kv},
                    {"activations", o.activations},
                    {"pack", o.pack},
                    {"cache_dir", o.cache_dir},
                    {"replay", o.replay},
                    {"prompt_rows", o.prompt_rows},
                    {"draft", o.draft},
                    {"draft_depth", o.draft_depth},
                    {"qualify", o.qualify}});
}

Options parse_options(std::string_view text) {
  const Json json = parse_json(text, "the options of an engine");
  StrictObject object(json, "the options of an engine");
  Options o;
  o.model = object.text("model");
  o.isa = object.text("isa");
  o.device = object.text("device");
  o.threads = object.u32("threads");
  o.pin = object.flag("pin");
  o.context = object.u32("context");
  o.kv = object.text("kv");
  o.activations = object.text("activations");
  o.pack = object.text("pack");
  o.cache_dir = object.text("cache_dir");
  o.replay = object.text("replay");
  o.prompt_rows = object.u32("prompt_rows");
  o.draft = object.text("draft");
  o.draft_depth = object.u32("draft_depth");
  o.qualify = object.flag("qualify");
  object.finish();
  return o;
}

}  // namespace stet
