#include "weights/synth_deepseek_v4.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "weights/synth.h"

namespace stet {
namespace {

std::vector<float> floats_of(const TensorSource& source, const std::string& name) {
  const TensorInfo* t = source.find(name);
  STET_CHECK(t != nullptr && t->format == Format::f32);
  std::vector<float> x(t->elements());
  source.read(*t, 0, std::as_writable_bytes(std::span(x)));
  return x;
}

uint64_t bytes_of(const TensorSource& source) {
  uint64_t all = 0;
  for (const TensorInfo& t : source.tensors()) all += t.bytes;
  return all;
}

// Different experts that 8 tokens of the table choose, on average.
double distinct_of_table(const std::string& name) {
  const auto source = SynthDeepseekV4::create(name, false);
  const std::vector<float> ids = floats_of(*source, "blk.1.ffn_experts_of_token.weight");
  size_t all = 0, groups = 0;
  for (size_t i = 0; i + 48 <= 48 * 2000; i += 48, ++groups)
    all +=
        std::set<float>(ids.begin() + static_cast<ptrdiff_t>(i), ids.begin() + static_cast<ptrdiff_t>(i) + 48).size();
  return static_cast<double>(all) / static_cast<double>(groups);
}

TEST(SynthDeepseekV4, HasTheSizeOfThePublishedCheckpoint) {
  const auto source = SynthDeepseekV4::create("synth:deepseek-v4-flash-k160", false);
  // 93.871 GiB without the draft's block, where scales of FP8 cover 128 rows; here each row has its own.
  EXPECT_NEAR(static_cast<double>(bytes_of(*source)) / (1 << 30), 93.871, 0.15);
  const auto with_draft = SynthDeepseekV4::create("synth:deepseek-v4-flash-k160-mtp", true);
  EXPECT_NEAR(static_cast<double>(bytes_of(*with_draft)) / (1 << 30), 96.022, 0.15);
  EXPECT_EQ(bytes_of(*SynthDeepseekV4::create("synth:deepseek-v4-flash-k160-mtp", false)), bytes_of(*source));
  EXPECT_NE(SynthDeepseekV4::create("synth:deepseek-v4-mini-mtp", false)->identity(),
            SynthDeepseekV4::create("synth:deepseek-v4-mini-mtp", true)->identity());
}

TEST(SynthDeepseekV4, TablesChooseAsManyExpertsAsTheirRouterSays) {
  EXPECT_NEAR(distinct_of_table("synth:deepseek-v4-flash-k160:uniform"), 42.1, 0.5);
  EXPECT_NEAR(distinct_of_table("synth:deepseek-v4-flash-k160:skewed"), 26.0, 1.5);
}

TEST(SynthDeepseekV4, AnyRangeReadsTheSame) {
  const auto source = SynthDeepseekV4::create("synth:deepseek-v4-mini-dspark:skewed:7", true);
  for (const TensorInfo& t : source->tensors()) {
    std::vector<std::byte> whole(t.bytes), part(t.bytes);
    source->read(t, 0, whole);
    for (uint64_t at = 0; at < t.bytes; at += 1013)
      source->read(t, at, std::span(part).subspan(at, std::min<uint64_t>(1013, t.bytes - at)));
    ASSERT_EQ(whole, part) << t.name;
  }
}

TEST(SynthDeepseekV4, SeedsAndRoutersDiffer) {
  const auto one = SynthDeepseekV4::create("synth:deepseek-v4-mini", false);
  const auto two = SynthDeepseekV4::create("synth:deepseek-v4-mini:uniform:2", false);
  const auto skewed = SynthDeepseekV4::create("synth:deepseek-v4-mini:skewed", false);
  EXPECT_NE(floats_of(*one, "blk.0.attn_norm.weight"), floats_of(*two, "blk.0.attn_norm.weight"));
  EXPECT_EQ(floats_of(*one, "blk.0.attn_norm.weight"), floats_of(*skewed, "blk.0.attn_norm.weight"));
  EXPECT_NE(floats_of(*one, "blk.3.ffn_router_bias"), floats_of(*skewed, "blk.3.ffn_router_bias"));
  EXPECT_NE(one->identity(), skewed->identity());
}

TEST(SynthDeepseekV4, WrongNamesAreRefusedWithWhatThereIs) {
  for (const auto& [name, says] : {std::pair{"synth:deepseek-v4-maxi", "deepseek-v4-mini"},
                                   {"synth:deepseek-v4-mini:round", "skewed"},
                                   {"synth:deepseek-v4-mini:skewed:x", "seed"},
                                   {"synth:deepseek-v4-mini:skewed:1:2", "ROUTER"},
                                   {"synth:nothing:q8_0", "deepseek-v4-flash-k160"}}) {
    try {
      open_synthetic(name);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kUsage);
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace stet
