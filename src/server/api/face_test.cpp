#include "server/api/face.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "server/loop/loop_test_util.h"
#include "text/unicode.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

const Engine& engine() {
  static const Engine the_engine(test::tiny_options());
  return the_engine;
}

FaceContext context() {
  FaceContext c;
  c.id = "x-1";
  c.created = 1700000000;
  c.model = "m";
  c.fingerprint = "f";
  c.engine = &engine();
  return c;
}

using Make = std::unique_ptr<Face> (*)(FaceContext);

// What a client gets: each face is asked for both forms of the same answer.
struct Both {
  std::vector<std::string> events;
  Json body;

  Both(Make make, const FaceContext& c, const std::vector<Piece>& pieces, const AnswerEnd& end) {
    const auto streamed = make(c), whole = make(c);
    const Face::Send send = [this](std::string_view data) { events.emplace_back(data); };
    streamed->open(send);
    for (const Piece& piece : pieces) {
      streamed->piece(piece, send);
      whole->keep(piece);
    }
    streamed->close(end, send);
    body = Json::parse(whole->body(end));
  }
  std::vector<Json> chunks() const {
    std::vector<Json> out;
    for (const std::string& event : events)
      if (event != "[DONE]") out.push_back(Json::parse(event));
    return out;
  }
};

std::string chat_text(const std::vector<Json>& chunks) {
  std::string text;
  for (const Json& chunk : chunks)
    if (!chunk["choices"].empty()) text += chunk["choices"][0]["delta"].value("content", "");
  return text;
}
std::string completion_text(const std::vector<Json>& chunks) {
  std::string text;
  for (const Json& chunk : chunks)
    if (!chunk["choices"].empty()) text += chunk["choices"][0]["text"].get<std::string>();
  return text;
}

const AnswerEnd kEnd = {
    .finish = Finish::stop, .prompt_tokens = 7, .cached_tokens = 3, .output_tokens = 2, .seed = {}, .digest = "d"};

TEST(Face, ChatChunksHaveOpenAisForm) {
  const int32_t ids[] = {76, 77};
  const Both both(make_chat_face, context(),
                  {{.text = "Hi", .tokens = ids, .logprobs = {}}, {.text = "", .tokens = ids, .logprobs = {}}}, kEnd);
  const auto chunks = both.chunks();
  ASSERT_EQ(chunks.size(), 3u) << "a cycle without text sends nothing unless it is asked to";
  EXPECT_EQ(both.events.back(), "[DONE]");
  for (const Json& chunk : chunks) {
    EXPECT_EQ(chunk["id"], "x-1");
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["created"], 1700000000);
    EXPECT_EQ(chunk["model"], "m");
    EXPECT_EQ(chunk["system_fingerprint"], "f");
    EXPECT_EQ(chunk["choices"].size(), 1u);
    EXPECT_EQ(chunk["choices"][0]["index"], 0);
    EXPECT_FALSE(chunk.contains("usage"));
  }
  EXPECT_EQ(chunks[0]["choices"][0]["delta"], Json::parse(R"({"role": "assistant", "content": ""})"));
  EXPECT_EQ(chunks[1]["choices"][0]["delta"], Json::parse(R"({"content": "Hi"})"));
  EXPECT_EQ(chunks[1]["choices"][0]["finish_reason"], nullptr);
  EXPECT_EQ(chunks[2]["choices"][0]["delta"], Json::object());
  EXPECT_EQ(chunks[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(chunks[2]["stet"], Json::parse(R"({"finish": "stop", "seed": null, "digest": "d"})"));
}

TEST(Face, BodiesHaveOpenAisForm) {
  const int32_t ids[] = {76, 77};
  AnswerEnd end = kEnd;
  end.finish = Finish::context;
  end.seed = 5;
  const std::vector<Piece> pieces = {{.text = "H", .tokens = ids, .logprobs = {}},
                                     {.text = "i", .tokens = {}, .logprobs = {}}};
  const Json chat = Both(make_chat_face, context(), pieces, end).body;
  EXPECT_EQ(chat["object"], "chat.completion");
  EXPECT_EQ(chat["choices"],
            Json::parse(R"([{"index": 0, "message": {"role": "assistant", "content": "Hi", "refusal": null},
                                              "logprobs": null, "finish_reason": "length"}])"));
  EXPECT_EQ(chat["usage"], Json::parse(R"({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
                                           "prompt_tokens_details": {"cached_tokens": 3}})"));
  EXPECT_EQ(chat["stet"], Json::parse(R"({"finish": "context", "seed": 5, "digest": "d"})"));
  const Json completion = Both(make_completion_face, context(), pieces, end).body;
  EXPECT_EQ(completion["object"], "text_completion");
  EXPECT_EQ(completion["choices"],
            Json::parse(R"([{"index": 0, "text": "Hi", "logprobs": null, "finish_reason": "length"}])"));
  EXPECT_EQ(completion["usage"], chat["usage"]);
}

TEST(Face, UsageComesInALastChunkWithoutChoices) {
  FaceContext c = context();
  c.include_usage = true;
  for (const Make make : {make_chat_face, make_completion_face}) {
    const auto chunks = Both(make, c, {{.text = "Hi", .tokens = {}, .logprobs = {}}}, kEnd).chunks();
    for (size_t i = 0; i + 1 < chunks.size(); ++i) EXPECT_EQ(chunks[i].at("usage"), nullptr);
    EXPECT_EQ(chunks.back()["choices"], Json::array());
    EXPECT_EQ(chunks.back()["usage"]["total_tokens"], 9);
  }
}

TEST(Face, TokenIdsComeWithEveryCycle) {
  FaceContext c = context();
  c.return_token_ids = true;
  c.prompt = {1, 2, 3};
  const int32_t first[] = {76, 77}, second[] = {3};
  const std::vector<Piece> pieces = {{.text = "", .tokens = first, .logprobs = {}},
                                     {.text = "x", .tokens = second, .logprobs = {}}};
  for (const Make make : {make_chat_face, make_completion_face}) {
    const Both both(make, c, pieces, kEnd);
    TokenIds ids;
    size_t prompts = 0;
    for (const Json& chunk : both.chunks()) {
      prompts += chunk.contains("prompt_token_ids");
      if (chunk["choices"][0].contains("token_ids")) {
        for (const int32_t id : chunk["choices"][0]["token_ids"]) ids.push_back(id);
      }
    }
    EXPECT_THAT(ids, ElementsAre(76, 77, 3));
    EXPECT_EQ(prompts, 1u);
    EXPECT_THAT(both.chunks().front()["prompt_token_ids"], ElementsAre(1, 2, 3));
    EXPECT_THAT(both.body["choices"][0]["token_ids"], ElementsAre(76, 77, 3));
    EXPECT_THAT(both.body["prompt_token_ids"], ElementsAre(1, 2, 3));
  }
}

TEST(Face, CycleEventsSayWhatACycleDid) {
  FaceContext c = context();
  c.cycle_events = true;
  const int32_t ids[] = {76, 77};
  const std::vector<Piece> pieces = {{.text = "",
                                      .tokens = ids,
                                      .logprobs = {},
                                      .cycle = 4,
                                      .proposed = 3,
                                      .accepted = 1,
                                      .server_ns = 9007199254740993}};
  for (const Make make : {make_chat_face, make_completion_face}) {
    const auto chunks = Both(make, c, pieces, kEnd).chunks();
    EXPECT_EQ(chunks[chunks.size() - 2]["stet"],
              Json::parse(
                  R"({"cycle": 4, "depth": 3, "accepted": 1, "token_ids": [76, 77], "server_ns": 9007199254740993})"));
  }
}

TEST(Face, KeepAliveIsAnEmptyDelta) {
  for (const Make make : {make_chat_face, make_completion_face}) {
    std::vector<Json> chunks;
    make(context())->keep_alive(JobStage::prefill, 128, 1000,
                                [&](std::string_view data) { chunks.push_back(Json::parse(data)); });
    ASSERT_EQ(chunks.size(), 1u);
    EXPECT_EQ(chunks[0]["stet"], Json::parse(R"({"stage": "prefill", "done": 128, "total": 1000})"));
    EXPECT_EQ(chunks[0]["choices"][0]["finish_reason"], nullptr);
    const Json& choice = chunks[0]["choices"][0];
    EXPECT_TRUE(choice.contains("delta") ? choice["delta"].empty() : choice["text"] == "");
  }
}

PositionLogprobs position(int32_t token, float logprob, std::vector<TokenLogprob> top = {}) {
  return {{token, logprob}, std::move(top)};
}

// Of a synthetic model: id 4 + b is byte b, ids below 4 are control tokens.
TEST(Face, ChatLogprobs) {
  FaceContext c = context();
  c.logprobs = true;
  const std::vector<PositionLogprobs> first = {position(4 + 'A', -0.5f, {{4 + 'A', -0.5f}, {4 + 0xc3, -1.0f}})};
  const std::vector<PositionLogprobs> second = {position(4 + 0xc3, -0.25f), position(4 + 0xa9, -0.125f),
                                                position(3, -2.0f)};
  const Both both(
      make_chat_face, c,
      {{.text = "A", .tokens = {}, .logprobs = first}, {.text = "\u00e9", .tokens = {}, .logprobs = second}}, kEnd);
  const Json content = both.body["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0], Json::parse(R"({"token": "A", "logprob": -0.5, "bytes": [65], "top_logprobs": [
      {"token": "A", "logprob": -0.5, "bytes": [65]}, {"token": "bytes:\\xc3", "logprob": -1.0, "bytes": [195]}]})"));
  EXPECT_EQ(content[1]["bytes"], Json::parse("[195]"));
  EXPECT_EQ(content[3]["token"], "<|im_end|>") << "the end token counts as one";
  Json streamed = Json::array();
  for (const Json& chunk : both.chunks()) {
    const Json& logprobs = chunk["choices"][0]["logprobs"];
    if (!logprobs.is_null()) streamed.insert(streamed.end(), logprobs["content"].begin(), logprobs["content"].end());
  }
  EXPECT_EQ(streamed, content);
}

TEST(Face, CompletionLogprobsHaveTextOffsetsInCharacters) {
  FaceContext c = context();
  c.logprobs = true;
  const std::vector<PositionLogprobs> first = {position(4 + 'A', -0.5f, {{4 + 'B', -0.4f}}),
                                               position(4 + 0xc3, -0.25f)};
  const std::vector<PositionLogprobs> second = {position(4 + 0xa9, -0.125f), position(4 + 0xff, -1.0f),
                                                position(4 + 'z', -1.0f), position(3, -2.0f)};
  const Both both(
      make_completion_face, c,
      {{.text = "A", .tokens = {}, .logprobs = first}, {.text = "\u00e9\xffz", .tokens = {}, .logprobs = second}},
      kEnd);
  const Json logprobs = both.body["choices"][0]["logprobs"];
  EXPECT_THAT(logprobs["tokens"], ElementsAre("A", "bytes:\\xc3", "bytes:\\xa9", "bytes:\\xff", "z", "<|im_end|>"));
  EXPECT_THAT(logprobs["text_offset"], ElementsAre(0, 1, 1, 2, 3, 4));
  EXPECT_THAT(logprobs["token_logprobs"], ElementsAre(-0.5, -0.25, -0.125, -1.0, -1.0, -2.0));
  EXPECT_EQ(logprobs["top_logprobs"][0], (Json{{"B", -0.4f}, {"A", -0.5f}})) << "the chosen token is always there";
  EXPECT_EQ(both.body["choices"][0]["text"], "A\u00e9\uFFFDz");
  Json streamed = Json::array();
  for (const Json& chunk : both.chunks()) {
    const Json& part = chunk["choices"][0]["logprobs"];
    if (!part.is_null()) streamed.insert(streamed.end(), part["text_offset"].begin(), part["text_offset"].end());
  }
  EXPECT_EQ(streamed, logprobs["text_offset"]);
}

// The joined chunks are the text of the body, whatever bytes the tokens hold, as long as no piece ends inside a
// character.
TEST(Face, StreamedTextIsTheTextOfTheBody) {
  std::mt19937 random(1);
  const std::string bytes = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\x80\xed\"\\\n\x01";
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts;
    std::string pending;
    for (int i = 0; i < 30; ++i) {
      pending += bytes[random() % bytes.size()];
      const size_t complete = pending.size() - incomplete_utf8_suffix(pending);
      texts.push_back(pending.substr(0, complete));
      pending.erase(0, complete);
    }
    texts.push_back(pending);
    std::vector<Piece> pieces;
    for (const std::string& text : texts) pieces.push_back({.text = text, .tokens = {}, .logprobs = {}});
    const Both chat(make_chat_face, context(), pieces, kEnd), completion(make_completion_face, context(), pieces, kEnd);
    ASSERT_EQ(chat_text(chat.chunks()), chat.body["choices"][0]["message"]["content"].get<std::string>());
    ASSERT_EQ(completion_text(completion.chunks()), completion.body["choices"][0]["text"].get<std::string>());
    ASSERT_EQ(completion_text(completion.chunks()), chat_text(chat.chunks()));
  }
}

}  // namespace
}  // namespace stet
