// Raw events: what a client saw of each request, before anything is computed from it. Times are nanoseconds of the
// monotonic clock of the process that took them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

enum class Channel : uint8_t { content, reasoning, tool, none };  // none: a frame without generated tokens

// One frame of an answer as it arrived.
struct ChunkEvent {
  int64_t client_ns = 0;
  std::optional<int64_t> server_ns;  // when the server committed it, by the server's clock
  Channel channel = Channel::content;
  std::string text;
  std::optional<std::vector<int32_t>> token_ids;
  std::optional<uint32_t> depth, accepted;  // of the cycle that it belongs to
  std::optional<int64_t> draft_ns;          // of that cycle: policy and draft, until its verify pass began
  std::optional<std::vector<double>> logprobs;  // the target's, one for each of token_ids
};

struct UsageEvent {
  std::optional<uint32_t> prompt_tokens, completion_tokens, cached_tokens;
};

// What the machine did around a request; absent where the system does not say.
struct SystemSample {
  int64_t client_ns = 0;
  std::optional<int64_t> suspended_ns;  // boot-time clock less monotonic clock
  std::optional<uint64_t> cpu_ticks, steal_ticks, swapped_pages, throttle_events;
};

struct RequestRecord {
  std::string id;                   // unique in the packet
  std::string arm;                  // "A", "B", "teacher"
  uint32_t start = 0;               // which fresh start of the arm's process
  uint32_t index = 0;               // order within the start
  std::string step_id, step_class;  // of the suite
  std::string prompt;               // canonical JSON of what was sent: messages or prompt text
  std::optional<std::vector<int32_t>> prompt_token_ids;
  std::string sampling;  // JSON object of what was sent: {"temperature":0,"seed":1}; empty: not recorded
  uint32_t max_tokens = 0;
  SystemSample before, after;
  int64_t sent_ns = 0, end_ns = 0;
  int http_status = 0;
  std::vector<ChunkEvent> chunks;
  std::string finish_reason;  // "" where none came
  UsageEvent usage;
  bool complete = false;             // the stream ended as its protocol says
  bool cancelled_by_client = false;  // as the suite asks for
  std::string error;

  std::vector<int32_t> token_ids() const;  // of all chunks; empty where the server gives none
  std::string text() const;                // content channel
};

// A start of a process, or the first contact with an endpoint that runs already.
struct StartRecord {
  std::string arm;
  uint32_t start = 0;
  bool fresh = false;         // this run started the process
  std::string identity_json;  // what the process said of itself: a JSON object
  int64_t client_ns = 0;
};

// A figure that another program measured and printed (an arm that is a command): one JSON object of numbers.
struct MeasureRecord {
  std::string arm;
  uint32_t start = 0;
  std::string point;  // "context 100, prompt 128"
  std::string figures_json;
  int64_t begin_ns = 0, end_ns = 0;
  SystemSample before, after;
};

}  // namespace stet
