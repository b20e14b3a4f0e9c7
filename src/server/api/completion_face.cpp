#include "server/api/openai_face.h"
#include "server/api/token_text.h"
#include "text/unicode.h"

namespace stet {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Where each token begins in the text of the answer, in characters.
class TextOffset {
 public:
  uint64_t here() const { return characters_; }

  void pass(std::string_view bytes) {
    pending_ += bytes;
    const size_t complete = pending_.size() - incomplete_utf8_suffix(pending_);
    for (const char c : replace_invalid_utf8(std::string_view(pending_).substr(0, complete)))
      characters_ += (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // the first byte of a character
    pending_.erase(0, complete);
  }

 private:
  uint64_t characters_ = 0;
  std::string pending_;  // a character that is not complete
};

class CompletionFace : public OpenAiFace {
 public:
  using OpenAiFace::OpenAiFace;

 private:
  std::string_view object(bool) const override { return "text_completion"; }
  std::optional<OrderedJson> first_delta() const override { return std::nullopt; }
  OrderedJson delta(const std::string& text) const override { return {{"text", text}}; }
  OrderedJson whole(const std::string& text) const override { return {{"text", text}}; }

  OrderedJson logprobs(const Piece& piece) override {
    const Engine& engine = *context().engine;
    OrderedJson tokens = OrderedJson::array(), chosen = OrderedJson::array(), tops = OrderedJson::array(),
                offsets = OrderedJson::array();
    for (const PositionLogprobs& position : piece.logprobs) {
      const int32_t token = position.chosen.token;
      tokens.push_back(token_text(engine, token));
      chosen.push_back(position.chosen.logprob);
      tops.push_back(top_of(position));
      offsets.push_back(offset_.here());
      if (engine.has_vocabulary())
        offset_.pass(engine.detokenize({&token, 1}));  // control tokens are no part of the text
    }
    OrderedJson out;
    out["text_offset"] = std::move(offsets);
    out["token_logprobs"] = std::move(chosen);
    out["tokens"] = std::move(tokens);
    out["top_logprobs"] = std::move(tops);
    return out;
  }

  // The most probable tokens, and the chosen one where it is not among them, by text.
  OrderedJson top_of(const PositionLogprobs& position) const {
    OrderedJson out = OrderedJson::object();
    for (const TokenLogprob& top : position.top) out.emplace(token_text(*context().engine, top.token), top.logprob);
    out.emplace(token_text(*context().engine, position.chosen.token), position.chosen.logprob);
    return out;
  }

  TextOffset offset_;
};

}  // namespace

std::unique_ptr<Face> make_completion_face(FaceContext context) {
  return std::make_unique<CompletionFace>(std::move(context));
}

}  // namespace stet
