#include "weights/summary.h"

#include <gtest/gtest.h>

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
