// DeepSeek V4 with quantised weights: products, groups and experts by every kind of input, in every way the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "state/session.h"
#include "state/test_model.h"
#include "weights/fake_source_test.h"
#include "weights/hf/checkpoint.h"

namespace stet {

ModelDesc describe_deepseek_v4(const TensorSource& source);

namespace {

struct QuantisedCase {
  Format weights, experts;
  ActKind input;
};

// The configuration of a golden model with every width a multiple of 128, and random weights: attention and the shared
// expert in one format, the experts in another, what is left BF16.
class QuantisedDeepseek : public FakeSource {
 public:
  QuantisedDeepseek(Format weights, Format experts)
      : FakeSource("quantised"), config_(HfCheckpoint::open("tests/golden/deepseek_v4/mixed")->metadata()) {
    const std::pair<const char*, uint64_t> sizes[] = {
        {"embedding_length", 128},           {"vocab_size", 64},
        {"attention.head_count", 2},         {"attention.key_length", 128},
        {"attention.q_lora_rank", 128},      {"attention.output_lora_rank", 128},
        {"attention.indexer.head_count", 2}, {"attention.indexer.key_length", 128},
        {"expert_feed_forward_length", 128}, {"expert_hash_layers", 0}};
    for (const auto& [key, size] : sizes) config_[std::string("deepseek_v4.") + key].value = size;
    unsigned seed = 1;
    for (const TensorSpec& t : describe_deepseek_v4(*this).tensors) {
      const auto has = [&](const char* part) { return t.name.find(part) != std::string::npos; };
      const bool inner = (has(".attn_") && !has("_hc_")) || has(".ffn_shared_") || has("indexer_q_b");
      const Format format = t.shape.size() == 1 ? Format::f32
                            : has(".expert.")   ? experts
                            : inner             ? weights
                                                : Format::bf16;
      add(t.name, format, t.shape, ++seed);
    }
  }
  const Metadata& metadata() const override { return config_; }

 private:
  Metadata config_;
};

std::vector<float> quantised_logits(const test::TestModel& m, Isa isa, const DecoderOptions& how, size_t piece,
                                    const ArmOptions& arm) {
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.desc, *m.pack, kernels(isa), pool, how, arm);
  const std::vector<int32_t> tokens = test::test_tokens(m.desc, 24);
  std::vector<float> all;
  for (size_t done = 0; done < tokens.size(); done += piece)
    decoder.forward_all(std::span(tokens).subspan(done, std::min(piece, tokens.size() - done)),
                        static_cast<uint32_t>(done),
                        [&](uint32_t, const float* logits) { all.insert(all.end(), logits, logits + m.desc.vocab); });
  return all;
}

// Each case's logits by the scalar reference, token by token; every other way must equal them.
std::vector<float> check_quantised(const QuantisedCase& c) {
  const test::TestModel m(std::make_unique<QuantisedDeepseek>(c.weights, c.experts), false, c.input);
  const std::vector<float> want =
      quantised_logits(m, Isa::scalar, {256, KvFormat::f32, ReplayMode::eager, 1}, 1, test::unqualified());
  for (const float x : want) EXPECT_TRUE(std::isfinite(x));
  for (const Isa isa : available_isas())
    for (const uint32_t rows : {1u, 8u, 128u}) {
      if (isa == Isa::scalar && rows != 8) continue;
      // Qualification holds the kernels against the reference, those of the experts too.
      const bool qualified = isa == available_isas().back() && rows == 8;
      const ArmOptions arm = qualified ? ArmOptions{Qualify::compare, "", nullptr} : test::unqualified();
      const auto got = quantised_logits(m, isa, {256, KvFormat::f32, ReplayMode::replayed, rows}, 24, arm);
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
          << isa_name(isa) << " passes of " << rows << " " << traits(c.weights).name << " by " << act_name(c.input);
    }
  return want;
}

TEST(DeepseekV4Formats, EveryWayGivesTheSameBits) {
  check_quantised({Format::q8_0, Format::q4_0, ActKind::i8});
  const std::vector<float> a8 = check_quantised({Format::e4m3, Format::mxfp4, ActKind::i8});
  const std::vector<float> checkpoint = check_quantised({Format::e4m3, Format::mxfp4, ActKind::e4m3});
  EXPECT_NE(std::memcmp(a8.data(), checkpoint.data(), a8.size() * sizeof(float)), 0)
      << "the modes are different questions";
}

}  // namespace
}  // namespace stet
