#include "weights/summary.h"

#include <gtest/gtest.h>

#include "weights/fake_source_test.h"
#include "weights/gguf.h"
#include "weights/gguf_test_bytes.h"
#include "weights/gguf_writer.h"
#include "weights/synth.h"

namespace stet {
namespace {

TEST(Summary, CountsATiedModel) {
  const auto source = SynthSource::create("synth:smollm-135m:q4_1");
  const ModelSummary s = summarize(*source, "m");
  EXPECT_TRUE(s.synthetic);
  EXPECT_EQ(s.parameters, 134515008u);
  EXPECT_EQ(s.weight_bytes, 96576768u);
  EXPECT_EQ(s.bytes_per_token, 96576768u);  // the table is the head: all of it is read
  ASSERT_EQ(s.formats.size(), 3u);
  EXPECT_EQ(s.formats[0].format, "Q8_0");
  EXPECT_EQ(s.formats[0].bytes, 30081024u);
  EXPECT_EQ(s.formats[2].tensors, 210u);
  EXPECT_EQ(s.formats[2].bytes, 66355200u);
}

TEST(Summary, CountsOneRowOfAnUntiedTable) {
  const auto source = SynthSource::create("synth:tiny-gqa:f16");
  const ModelSummary s = summarize(*source, "m");
  EXPECT_EQ(s.weight_bytes - s.bytes_per_token, 96u * 329 * 2);
  EXPECT_EQ(weight_bytes_per_token(*source), s.bytes_per_token);
}

// Three tensors for each of four experts, of which a token is routed to two; a table that names them.
TEST(Summary, CountsTheExpertsThatATokenIsRoutedTo) {
  FakeSource source;
  source.add("token_embd.weight", Format::f32, {8, 10}).add("output.weight", Format::f16, {8, 10});
  source.add("blk.0.ffn_experts_of_token.weight", Format::f32, {2, 10});
  for (int e = 0; e < 4; ++e)
    for (const char* part : {"gate", "up", "down"})
      source.add("blk.0.expert." + std::to_string(e) + "." + part + ".weight", Format::f32, {8, 8});
  const uint64_t expert = 3u * 8 * 8 * 4, others = 8 * 4 + 8 * 10 * 2 + 2 * 4;
  EXPECT_EQ(weight_bytes_per_token(source), others + 4 * expert) << "it is not said how many are used";
  source.set_metadata("general.architecture", "x");
  source.set_count("x.expert_count", 4);
  source.set_count("x.expert_used_count", 2);
  EXPECT_EQ(weight_bytes_per_token(source), others + 2 * expert);
  EXPECT_EQ(summarize(source, "x").weight_bytes, 8u * 10 * 4 + 8 * 10 * 2 + 2 * 10 * 4 + 4 * expert);
}

TEST(Summary, ListsUnsupportedFormats) {
  const GgufBytes b = GgufBytes().header(2, 0).tensor("q", {256, 2}, 12, 0).tensor("odd", {7}, 77, 288).data(320);
  const ModelSummary s = summarize(*GgufFile::parse(b.span(), "m"), "m");
  ASSERT_EQ(s.formats.size(), 2u);
  EXPECT_EQ(s.formats[0].format, "Q4_K");
  EXPECT_FALSE(s.formats[0].supported);
  EXPECT_EQ(s.formats[1].format, "type 77");
  EXPECT_EQ(s.weight_bytes, 288u);
}

// A file that the generator wrote keeps its label.
TEST(Summary, AWrittenSyntheticModelStaysLabelled) {
  const auto source = SynthSource::create("synth:tiny:q8_0");
  std::vector<std::byte> bytes = gguf_header(source->metadata(), source->tensors());
  bytes.resize(bytes.size() + (1 << 20));
  EXPECT_TRUE(summarize(*GgufFile::parse(bytes, "m"), "m").synthetic);
}

}  // namespace
}  // namespace stet
