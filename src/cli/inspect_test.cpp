#include "cli/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "weights/gguf.h"
#include "weights/gguf_test_bytes.h"
#include "weights/synth.h"

namespace stet {
namespace {

using testing::HasSubstr;
using testing::Not;

ModelSummary hostile() {
  GgufBytes b;
  b.header(1, 4).key_string("a\x1b[31mkey", "val\x1b[0mue\nline");
  b.key_string("long", std::string(99, 'x') + "\u00e9" + std::string(500, 'y'));
  b.string("broken").u32(8).string("\xff\xfe");
  b.string("nan").u32(6).number(__builtin_nanf(""));
  b.tensor("t\u202eensor", {4, 3}, 0, 0).data(48);
  return summarize(*GgufFile::parse(b.span(), "m.gguf"), "m.gguf");
}

TEST(InspectText, ShowsControlCharacters) {
  const std::string text = inspect_text(hostile());
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  EXPECT_THAT(text, HasSubstr("a\\x1b[31mkey = \"val\\x1b[0mue\\nline\""));
  EXPECT_THAT(text, HasSubstr("broken = \"\\xff\\xfe\""));
  EXPECT_THAT(text, HasSubstr("t\\u202eensor  4 x 3  F32"));
  EXPECT_THAT(text, HasSubstr("x\"... (601 bytes)"));  // cut before the character that would be halved
}

TEST(InspectText, HasTheFigures) {
  const std::string text =
      inspect_text(summarize(*SynthSource::create("synth:smollm-135m:q4_1"), "synth:smollm-135m:q4_1"));
  EXPECT_THAT(text, HasSubstr("synth:smollm-135m:q4_1  (SYNTHETIC"));
  EXPECT_THAT(text, HasSubstr("parameters       134,515,008\n"));
  EXPECT_THAT(text, HasSubstr("read per token   96,576,768 bytes of weights\n"));
  EXPECT_THAT(text, HasSubstr("llama.attention.layer_norm_rms_epsilon = 1e-05\n"));
  EXPECT_THAT(text, HasSubstr("(49,152 values)"));
  EXPECT_THAT(text, HasSubstr("5.00 bits each"));
}

TEST(InspectJson, IsCompleteAndExact) {
  const auto j = nlohmann::json::parse(inspect_json(hostile()));
  EXPECT_EQ(j["metadata"]["a\x1b[31mkey"], "val\x1b[0mue\nline");
  EXPECT_EQ(j["metadata"]["long"].get<std::string>().size(), 601u);
  EXPECT_EQ(j["metadata"]["broken"], "\ufffd\ufffd");
  EXPECT_TRUE(j["metadata"]["nan"].is_null());
  EXPECT_EQ(j["tensors"][0]["name"], "t\u202eensor");
  EXPECT_EQ(j["tensors"][0]["shape"], nlohmann::json({4, 3}));
  EXPECT_EQ(j["bytes_per_token"], 48);
  EXPECT_EQ(j["files"][0]["gguf_version"], 3);
  EXPECT_EQ(j["synthetic"], false);
  const auto tokens = nlohmann::json::parse(inspect_json(summarize(*SynthSource::create("synth:tiny:f32"), "m")));
  EXPECT_EQ(tokens["metadata"]["tokenizer.ggml.tokens"].size(), 320u);
}

}  // namespace
}  // namespace stet
