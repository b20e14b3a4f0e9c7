// The GPU against the processor: the same logits and the same KV rows, whatever the format, the width and the mode.
#include <gtest/gtest.h>

#include <cstring>

#include "models/draft_desc.h"
#include "state/draft_passes.h"
#include "state/test_model.h"

namespace stet {
namespace {

struct Result {
  std::vector<float> logits;
  uint64_t kv;
};

Result run_all(const test::TestModel& m, const DecoderOptions& options, uint32_t tokens) {
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.desc, *m.pack, kernels(available_isas().back()), pool, options, test::unqualified());
  Result r;
  decoder.forward_all(test::test_tokens(m.desc, tokens), 0, [&](uint32_t, const float* logits) {
    r.logits.insert(r.logits.end(), logits, logits + m.desc.vocab);
  });
  r.kv = decoder.kv_hash(tokens);
  return r;
}

// Where the first difference is, for people.
std::string difference(const Result& got, const Result& want, uint32_t vocab) {
  for (size_t i = 0; i < want.logits.size(); ++i)
    if (std::memcmp(&got.logits[i], &want.logits[i], 4) != 0)
      return fmt::format("logit {} of position {}: {} instead of {}", i % vocab, i / vocab, got.logits[i],
                         want.logits[i]);
  return got.kv == want.kv ? "" : "KV rows";
}

class CudaDecoder : public testing::TestWithParam<std::tuple<const char*, KvFormat, bool>> {
 protected:
  void SetUp() override {
    devices_ = cuda_devices();
    if (devices_.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices_.why_none << ")";
  }
  CudaDevices devices_;
};

TEST_P(CudaDecoder, HasTheBitsOfTheProcessor) {
  const auto [name, kv, dequantize] = GetParam();
  const test::TestModel m(name, dequantize);
  constexpr uint32_t kTokens = 300;  // into a third chunk of the cache
  const Result want = run_all(m, {320, kv, ReplayMode::replayed, kWideRows}, kTokens);
  for (const uint32_t rows : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 16u, 17u, 100u, 128u})
    for (const ReplayMode mode : {ReplayMode::replayed, ReplayMode::recorded, ReplayMode::eager}) {
      if (mode != ReplayMode::replayed && rows != 5 && rows != 128) continue;
      const Result got = run_all(m, {320, kv, mode, rows, &devices_.devices[0]}, kTokens);
      EXPECT_EQ(difference(got, want, m.desc.vocab), "") << "rows " << rows << " mode " << static_cast<int>(mode);
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaDecoder,
                         testing::Combine(testing::Values("synth:tiny:q4_0", "synth:tiny-gqa:q4_1",
                                                          "synth:tiny-gqa:q8_0", "synth:tiny-256:q6_k",
                                                          "synth:tiny-gqa:f16", "synth:tiny-gqa:bf16",
                                                          "synth:tiny:f32"),
                                          testing::Values(KvFormat::f16), testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(Caches, CudaDecoder,
                         testing::Combine(testing::Values("synth:tiny-gqa:q4_0"),
                                          testing::Values(KvFormat::f32, KvFormat::q8), testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(Float, CudaDecoder,
                         testing::Combine(testing::Values("synth:tiny-gqa:q4_1"), testing::Values(KvFormat::f16),
                                          testing::Values(true)));

// More chunks of all heads than the GPU has processors: each takes several, and the join has every level.
TEST_P(CudaDecoder, HasTheBitsBehindALongContext) {
  const auto [name, kv, dequantize] = GetParam();
  const test::TestModel m(name, dequantize);
  constexpr uint32_t kContext = 12000, kBefore = 11900;
  const std::vector<int32_t> tokens = test::test_tokens(m.desc, kBefore + 16);
  const auto logits = [&](const CudaDeviceInfo* device) {
    WorkerPool pool(test::pool_options(2));
    DecoderOptions options{kContext, kv};
    options.cuda = device;
    Decoder decoder(m.desc, *m.pack, kernels(available_isas().back()), pool, options, test::unqualified());
    const auto all = std::span<const int32_t>(tokens);
    decoder.forward(all.first(kBefore), 0, 0);
    std::vector<float> out;
    uint32_t position = kBefore;
    for (const uint32_t rows : {1u, 1u, 3u, 8u}) {
      const float* row = decoder.forward(all.subspan(position, rows), position, rows);
      out.insert(out.end(), row, row + size_t{rows} * m.desc.vocab);
      position += rows;
    }
    return out;
  };
  const std::vector<float> want = logits(nullptr), got = logits(&devices_.devices[0]);
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0);
}

// What every start does before lists run: all widths, on the processor and on the GPU, compared.
TEST_P(CudaDecoder, IsQualified) {
  const auto [name, kv, dequantize] = GetParam();
  const test::TestModel m(name, dequantize);
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.desc, *m.pack, kernels(available_isas().back()), pool,
                  {320, kv, ReplayMode::replayed, kWideRows, &devices_.devices[0]});
  EXPECT_EQ(decoder.life(), LifeState::armed);
  EXPECT_EQ(decoder.qualification().how, Qualification::How::now);
  EXPECT_GT(decoder.device_bytes(), m.pack->bytes());
}

// ---- DeepSeek V4: states instead of a cache, and a draft of its own

struct ModeCase {
  const char *model, *activations;
  KvFormat kv;
};

class CudaDeepseek : public testing::TestWithParam<ModeCase> {
 protected:
  void SetUp() override {
    devices_ = cuda_devices();
    if (devices_.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices_.why_none << ")";
    model_.emplace(GetParam().model, GetParam().activations);
  }
  const CudaDeviceInfo* device() const { return &devices_.devices[0]; }

  CudaDevices devices_;
  std::optional<test::ModeModel> model_;
};

TEST_P(CudaDeepseek, HasTheBitsOfTheProcessor) {
  constexpr uint32_t kTokens = 300;  // rings wrap, and entries close
  const Result want = run_all(*model_, {512, GetParam().kv, ReplayMode::replayed, kWideRows}, kTokens);
  for (const uint32_t rows : {1u, 3u, 8u, 16u, 100u, 128u})
    for (const ReplayMode mode : {ReplayMode::replayed, ReplayMode::recorded, ReplayMode::eager}) {
      if (mode != ReplayMode::replayed && rows != 3 && rows != 128) continue;
      const Result got = run_all(*model_, {512, GetParam().kv, mode, rows, device()}, kTokens);
      EXPECT_EQ(difference(got, want, model_->desc.vocab), "") << "rows " << rows << " mode " << static_cast<int>(mode);
    }
}

TEST_P(CudaDeepseek, IsQualified) {
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(model_->desc, *model_->pack, kernels(available_isas().back()), pool,
                  {512, GetParam().kv, ReplayMode::replayed, kWideRows, device()});
  EXPECT_EQ(decoder.qualification().how, Qualification::How::now);
}

// What its draft is asked behind a prompt, and behind a rollback.
std::vector<float> draft_answers(const test::TestModel& m, const DecoderOptions& options) {
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.desc, *m.pack, kernels(available_isas().back()), pool, options, test::unqualified());
  const std::vector<int32_t> tokens = test::test_tokens(m.desc, 300);
  decoder.forward(tokens, 0, 1);
  std::vector<float> all;
  const auto keep = [&](const float* row) { all.insert(all.end(), row, row + m.desc.vocab); };
  const auto as_mtp = [&](uint32_t end) {
    MtpPasses passes(decoder, {});
    const auto behind = std::span(tokens).first(end);
    passes.rows(behind.subspan(1), 0);
    keep(passes.first(7, end - 1));
    for (uint32_t i = 0; i < 3; ++i) keep(passes.next(static_cast<int32_t>(11 + i), end + i));
  };
  const auto as_dspark = [&](uint32_t end) {
    DSparkPasses passes(decoder, {});
    passes.block(7, 5, end);
    for (uint32_t i = 0; i < 5; ++i) {
      const DSparkPasses::Choice choice = passes.choose(i, static_cast<int32_t>(11 + i));
      keep(choice.logits);
      all.push_back(choice.confidence);
    }
  };
  for (const uint32_t end : {300u, 290u}) m.desc.draft->kind == "mtp" ? as_mtp(end) : as_dspark(end);
  return all;
}

TEST_P(CudaDeepseek, DraftsWithTheBitsOfTheProcessor) {
  if (model_->desc.draft == nullptr) GTEST_SKIP() << "skipped: no draft";
  const std::vector<float> want = draft_answers(*model_, {512, GetParam().kv});
  for (const ReplayMode mode : {ReplayMode::replayed, ReplayMode::recorded, ReplayMode::eager}) {
    DecoderOptions options{512, GetParam().kv, mode};
    options.cuda = device();
    const std::vector<float> got = draft_answers(*model_, options);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0) << "mode " << static_cast<int>(mode);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CudaDeepseek,
                         testing::Values(ModeCase{"synth:deepseek-v4-mini", "f32", KvFormat::f32},
                                         ModeCase{"synth:deepseek-v4-mini", "a8", KvFormat::f16},
                                         ModeCase{"synth:deepseek-v4-mini", "checkpoint", KvFormat::f16},
                                         ModeCase{"synth:deepseek-v4-mini", "checkpoint", KvFormat::fp8},
                                         ModeCase{"synth:deepseek-v4-mini-mtp", "checkpoint", KvFormat::fp8},
                                         ModeCase{"synth:deepseek-v4-mini-mtp", "f32", KvFormat::f32},
                                         ModeCase{"synth:deepseek-v4-mini-dspark", "checkpoint", KvFormat::f16},
                                         ModeCase{"synth:deepseek-v4-mini-dspark", "a8", KvFormat::f32}));

}  // namespace
}  // namespace stet
