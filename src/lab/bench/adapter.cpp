#include "lab/bench/adapter.h"

#include <chrono>
#include <thread>

#include "base/error.h"
#include "lab/bench/openai_form.h"
#include "lab/metrics/system.h"

namespace stet {
namespace {

constexpr int kUnauthorized = 401, kForbidden = 403;
constexpr auto kReadyPoll = std::chrono::milliseconds(200);
// A client that leaves before the first token waits so long for the request to be taken up.
constexpr int64_t kLeaveAfterNs = 300'000'000;

// Nobody there, or a key that is refused: said as it is, instead of "of no known kind".
void check_reachable(HttpClient& client) {
  const HttpReplyRecord reply = client.get("/v1/models");
  if (reply.status == 0) fail(Code::kInput, "no server answers at {}: {}", client.endpoint().shown(), reply.error);
  if (reply.status == kUnauthorized || reply.status == kForbidden)
    fail(Code::kInput, "the server at {} refuses the key (status {}): give the right one with --api-key-file",
         client.endpoint().shown(), reply.status);
}

void wait_until_ready(HttpClient& client, const Adapter& adapter, double seconds) {
  const int64_t deadline = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  while (!adapter.ready(client)) {
    if (monotonic_ns() >= deadline)
      fail(Code::kInput, "the server at {} is not ready after {} s", client.endpoint().shown(), seconds);
    std::this_thread::sleep_for(kReadyPoll);
  }
}

// What arrived of an answer that the client wants to leave early.
class Leaving {
 public:
  explicit Leaving(std::optional<uint32_t> after_tokens) : after_tokens_(after_tokens) {}
  bool at(const RequestRecord& record) const {
    if (!after_tokens_) return false;
    if (*after_tokens_ == 0) return !record.chunks.empty();
    size_t tokens = 0;
    for (const ChunkEvent& chunk : record.chunks)
      tokens += chunk.token_ids ? chunk.token_ids->size() : static_cast<size_t>(chunk.channel != Channel::none);
    return tokens >= *after_tokens_;
  }
  bool before_first(int64_t waited_ns) const {
    return after_tokens_ && *after_tokens_ == 0 && waited_ns >= kLeaveAfterNs;
  }

 private:
  std::optional<uint32_t> after_tokens_;
};

void read_stream(HttpClient& client, const HttpCall& call, AnswerReader& reader, const Leaving& leaving,
                 RequestRecord& record) {
  SseParser parser;
  const int64_t began = monotonic_ns();
  const HttpReplyRecord reply = client.post_stream(
      call.path, call.body,
      [&](int64_t arrival_ns, std::string_view bytes) {
        try {
          parser.feed(bytes, [&](const SseEvent& event) { reader.event(arrival_ns, event, record); });
        } catch (const Error& e) {
          record.error = e.what();
        }
        return record.error.empty() && !leaving.at(record);
      },
      [&](int64_t now_ns) { return !leaving.before_first(now_ns - began); });
  record.sent_ns = reply.sent_ns;
  record.end_ns = reply.end_ns;
  record.http_status = reply.status;
  record.cancelled_by_client = reply.left && record.error.empty();
  if (record.error.empty()) record.error = reply.error;
  if (reply.status != 0 && reply.status != kHttpOk) record.error = error_text(reply.body);
  record.complete =
      reply.complete && reply.status == kHttpOk && reader.ended() && parser.at_boundary() && record.error.empty();
  if (reply.complete && reply.status == kHttpOk && !reader.ended() && record.error.empty())
    record.error = "the stream ended without saying that the answer is complete";
}

}  // namespace

bool Adapter::ready(HttpClient&) const { return true; }

std::vector<const Adapter*> adapters() {
  return {
#define ADAPTER(name, function) &function(),
#include "lab/bench/adapters.def"
#undef ADAPTER
  };
}

const Adapter& adapter_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Adapter* adapter : adapters()) {
    if (adapter->facts().name == name) return *adapter;
    names.push_back(adapter->facts().name);
  }
  fail(Code::kUsage, "there is no adapter '{}': choose auto, {}", name, fmt::join(names, ", "));
}

Connected connect_server(HttpClient& client, std::string_view kind, const std::string& model, double ready_seconds) {
  if (kind != "auto") adapter_named(kind);
  check_reachable(client);
  for (const Adapter* adapter : adapters()) {
    if (kind != "auto" && adapter->facts().name != kind) continue;
    std::optional<ServerIdentity> server = adapter->identify(client, model);
    if (!server) continue;
    wait_until_ready(client, *adapter, ready_seconds);
    // A server that was still loading knows its model now.
    return {adapter, adapter->identify(client, model).value_or(*server)};
  }
  if (kind == "auto")
    fail(Code::kInput, "the server at {} is of no known kind: it has no /v1/models that lists a model",
         client.endpoint().shown());
  fail(Code::kInput, "the server at {} is no {}: use --server auto", client.endpoint().shown(), kind);
}

RequestRecord ask_server(HttpClient& client, const Connected& connected, const PlannedRequest& request) {
  RequestRecord record;
  record.step_id = request.step_id;
  record.step_class = request.step_class;
  record.prompt = messages_json(request.messages);
  record.sampling = sampling_json(request);
  record.max_tokens = request.max_tokens;
  record.before = sample_system();
  try {
    const HttpCall call = connected.adapter->call(request, connected.server, client);
    record.prompt_token_ids = call.prompt_ids;
    const std::unique_ptr<AnswerReader> reader = connected.adapter->reader();
    read_stream(client, call, *reader, Leaving(request.cancel_after_tokens), record);
  } catch (const Error& e) {
    if (e.code() == Code::kCancelled) throw;
    record.error = e.what();
    record.sent_ns = record.end_ns = monotonic_ns();
  }
  record.after = sample_system();
  return record;
}

}  // namespace stet
