#include "server/api/openai_face.h"
#include "server/api/token_text.h"

namespace stet {
namespace {

using OrderedJson = nlohmann::ordered_json;

class ChatFace : public OpenAiFace {
 public:
  using OpenAiFace::OpenAiFace;

 private:
  std::string_view object(bool chunk) const override { return chunk ? "chat.completion.chunk" : "chat.completion"; }

  std::optional<OrderedJson> first_delta() const override {
    return OrderedJson{{"delta", {{"role", "assistant"}, {"content", ""}}}};
  }

  OrderedJson delta(const std::string& text) const override {
    OrderedJson content = OrderedJson::object();
    if (!text.empty()) content["content"] = text;
    return {{"delta", content}};
  }

  OrderedJson whole(const std::string& text) const override {
    return {{"message", {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}}}};
  }

  OrderedJson logprobs(const Piece& piece) override {
    OrderedJson content = OrderedJson::array();
    for (const PositionLogprobs& position : piece.logprobs) {
      OrderedJson entry = token_entry(position.chosen);
      entry["top_logprobs"] = OrderedJson::array();
      for (const TokenLogprob& top : position.top) entry["top_logprobs"].push_back(token_entry(top));
      content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  OrderedJson token_entry(const TokenLogprob& token) const {
    const Engine& engine = *context().engine;
    OrderedJson entry;
    entry["token"] = token_text(engine, token.token);
    entry["logprob"] = token.logprob;
    entry["bytes"] = OrderedJson::array();
    for (const char c : token_bytes(engine, token.token)) entry["bytes"].push_back(static_cast<unsigned char>(c));
    return entry;
  }
};

}  // namespace

std::unique_ptr<Face> make_chat_face(FaceContext context) { return std::make_unique<ChatFace>(std::move(context)); }

}  // namespace stet
