// How an answer looks on the wire. One face for each kind of request; all are fed by one job (answer.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/api/api_request.h"
#include "server/loop/generation_loop.h"

namespace stet {

// What one cycle added.
struct Piece {
  std::string_view text;  // as the engine gives it: perhaps no valid UTF-8, but never cut inside a character
  std::span<const int32_t> tokens;
  std::span<const PositionLogprobs> logprobs;  // one a token, where they were asked for
  uint64_t cycle = 0;                          // from 0
  uint32_t proposed = 0, accepted = 0;
  int64_t server_ns = 0;  // CLOCK_MONOTONIC when it was committed
};

struct AnswerEnd {
  Finish finish = Finish::length;
  uint32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::optional<uint64_t> seed;  // of a sampled answer
  std::string digest;            // Generation::digest()
};

// Not for two threads at once.
class Face {
 public:
  // Takes the data of one server-sent event.
  using Send = std::function<void(std::string_view data)>;

  virtual ~Face() = default;

  // A stream: open, then any of piece and keep_alive, then close. What is cut off instead of closed looks incomplete to
  // a client.
  virtual void open(const Send& send) = 0;
  virtual void keep_alive(JobStage stage, uint32_t done, uint32_t total, const Send& send) = 0;
  virtual bool piece(const Piece& piece, const Send& send) = 0;  // whether there was something to send
  virtual void close(const AnswerEnd& end, const Send& send) = 0;

  // One body: any number of pieces, then the whole.
  virtual void keep(const Piece& piece) = 0;
  virtual std::string body(const AnswerEnd& end) = 0;
};

// What a face says of an answer beside the answer itself.
struct FaceContext {
  std::string id;           // "chatcmpl-5f0c..."
  int64_t created = 0;      // seconds since 1970
  std::string model;        // the id of /v1/models
  std::string fingerprint;  // of everything that the tokens depend on, apart from the request
  const Engine* engine = nullptr;
  bool include_usage = false, return_token_ids = false, cycle_events = false, logprobs = false;
  TokenIds prompt;  // where ids are returned
};

std::unique_ptr<Face> make_chat_face(FaceContext context);
std::unique_ptr<Face> make_completion_face(FaceContext context);

}  // namespace stet
