// What chat and completion answers have in common: chunks of one choice, and a body of one choice.
#pragma once

#include <nlohmann/json.hpp>

#include "server/api/face.h"

namespace stet {

class OpenAiFace : public Face {
 public:
  explicit OpenAiFace(FaceContext context) : context_(std::move(context)) {}

  void open(const Send& send) override;
  void keep_alive(JobStage stage, uint32_t done, uint32_t total, const Send& send) override;
  bool piece(const Piece& piece, const Send& send) override;
  void close(const AnswerEnd& end, const Send& send) override;
  void keep(const Piece& piece) override;
  std::string body(const AnswerEnd& end) override;

 protected:
  using OrderedJson = nlohmann::ordered_json;

  virtual std::string_view object(bool chunk) const = 0;       // "chat.completion.chunk"
  virtual std::optional<OrderedJson> first_delta() const = 0;  // what a stream says before its first token
  virtual OrderedJson delta(
      const std::string& text) const = 0;  // {"delta": ...} or {"text": ...}; no text: nothing is new
  virtual OrderedJson whole(const std::string& text) const = 0;  // {"message": ...} or {"text": ...}
  virtual OrderedJson logprobs(const Piece& piece) = 0;          // called once a piece, in order

  const FaceContext& context() const { return context_; }

 private:
  OrderedJson head(bool chunk) const;
  // A chunk with one choice: index, then what `content` holds, then log-probabilities and why it ended.
  OrderedJson chunk(OrderedJson content, OrderedJson logprobs = nullptr, OrderedJson finish_reason = nullptr);
  // Sends the chunk behind what all chunks begin with.
  void send_chunk(OrderedJson chunk, const Send& send);

  const FaceContext context_;
  bool prompt_ids_sent_ = false;
  std::string head_;  // of every chunk, with the comma behind it
  // Of a body.
  std::string text_;
  TokenIds tokens_;
  OrderedJson logprobs_;
};

}  // namespace stet
