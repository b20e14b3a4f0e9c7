// Sampling, drafting and acceptance on the GPU against the processor's: the kernels alone, on rows and timelines made
// for them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spec/cuda/cycle_cuda.h"
#include "spec/draft.h"
#include "spec/sampling_test_util.h"
#include "state/test_model.h"

namespace stet {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// What a cycle sees, on the device.
class Bench {
 public:
  Bench(const CudaDeviceInfo& device, uint32_t vocab, uint32_t context)
      : device_(device),
        vocab_(vocab),
        stream_(device),
        step_(sizeof(CudaStep), "a step"),
        cycle_(sizeof(CudaCycle), "a cycle"),
        sampling_(sizeof(CudaSampling), "parameters"),
        tokens_((context + kCudaSampleRows) * sizeof(int32_t), "tokens"),
        stops_(8 * sizeof(int32_t), "stop tokens"),
        counts_(vocab * sizeof(uint32_t), "counts"),
        bias_(vocab * sizeof(float), "bias"),
        logits_(uint64_t{vocab} * kCudaSampleRows * sizeof(float), "logits"),
        scratch_(cuda_sample_bytes(vocab, cuda_sample_blocks(device.processors)), "scratch"),
        mailbox_memory_(sizeof(CycleMailbox)),
        mailbox(*reinterpret_cast<CycleMailbox*>(mailbox_memory_.data())) {
    s_.vocab = vocab;
    s_.blocks = cuda_sample_blocks(device.processors);
    place_cuda_sample(s_, scratch_.data());
    cycle = reinterpret_cast<CudaCycle*>(cycle_.data());
    s_.sampling = reinterpret_cast<CudaSampling*>(sampling_.data());
    s_.timeline = &cycle->timeline;
    s_.logits = reinterpret_cast<float*>(logits_.data());
    s_.bias = reinterpret_cast<float*>(bias_.data());
    s_.counts = reinterpret_cast<uint32_t*>(counts_.data());
    m_ = {cycle,
          reinterpret_cast<int32_t*>(tokens_.data()),
          reinterpret_cast<int32_t*>(stops_.data()),
          reinterpret_cast<uint32_t*>(counts_.data()),
          s_.sampling,
          &mailbox};
    mailbox = {};
  }

  void send(const SamplingParams& p, const std::vector<int32_t>& prompt, const std::vector<int32_t>& output) {
    CudaSampling s;
    s.temperature = p.temperature;
    s.repetition = p.repetition_penalty, s.presence = p.presence_penalty, s.frequency = p.frequency_penalty;
    s.top_k = p.top_k;
    s.min_weight = static_cast<uint32_t>(p.min_p * 0x1p31f);
    if (p.top_p < 1) s.top_p = std::max<uint64_t>(1, static_cast<uint64_t>(double{p.top_p} * 0x1p32));
    s.seed = p.seed;
    s.biased = !p.logit_bias.empty();
    s.penalised = p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0;
    stream_.to_device(sampling_.data(), &s, sizeof s);
    std::vector<uint32_t> counts(vocab_);
    for (int32_t id : prompt) counts[static_cast<size_t>(id)] |= kCudaInPrompt;
    for (int32_t id : output) ++counts[static_cast<size_t>(id)];
    stream_.to_device(counts_.data(), counts.data(), counts.size() * 4);
    std::vector<float> bias(vocab_);
    for (const auto& [id, b] : p.logit_bias) bias[static_cast<size_t>(id)] = b;
    stream_.to_device(bias_.data(), bias.data(), bias.size() * 4);
  }

  CudaCycle fresh(uint32_t committed, uint32_t end, uint32_t depth) {
    CudaCycle c;
    c.timeline.committed = committed;
    c.end = end, c.depth = depth, c.finished = 0;
    c.request = ++request_;
    return c;
  }

  // Samples the rows behind `committed` tokens and the proposals, and accepts.
  CycleRecord accept(CudaCycle c, const std::vector<float>& rows, const std::vector<int32_t>& proposals, bool pdl) {
    const auto n = static_cast<uint32_t>(proposals.size());
    c.timeline.proposals = n;
    std::copy(proposals.begin(), proposals.end(), c.timeline.proposed);
    CudaStep step = {n + 1, c.timeline.committed - 1, 0, n + 1, {}};
    stream_.to_device(cycle_.data(), &c, sizeof c);
    stream_.to_device(step_.data(), &step, sizeof step);
    stream_.to_device(logits_.data(), rows.data(), rows.size() * 4);
    const CudaLaunch on = {stream_.get(), pdl && device_.dependent_launch(), device_.processors};
    launch_sample(on, device_step(), s_, n + 1);
    launch_accept(on, m_, device_step(), s_);
    stream_.wait();
    const CycleRecord& r = mailbox.records[0];
    EXPECT_EQ(r.number, uint64_t{request_} << 32);
    return r;
  }

  // What a cycle proposes behind these tokens.
  CudaStep propose(CudaCycle c, const std::vector<int32_t>& tokens, CudaDraft draft) {
    stream_.to_device(cycle_.data(), &c, sizeof c);
    stream_.to_device(tokens_.data(), tokens.data(), tokens.size() * 4);
    launch_begin_cycle({stream_.get(), false, device_.processors}, m_, device_step(), draft);
    CudaStep step;
    stream_.to_host(&step, step_.data(), sizeof step);
    stream_.wait();
    return step;
  }

  void send_stops(const std::vector<int32_t>& stops) {
    stream_.to_device(stops_.data(), stops.data(), stops.size() * 4);
  }

 private:
  CudaStep* device_step() const { return reinterpret_cast<CudaStep*>(step_.data()); }

  const CudaDeviceInfo& device_;
  const uint32_t vocab_;
  CudaStream stream_;
  CudaMemory step_, cycle_, sampling_, tokens_, stops_, counts_, bias_, logits_, scratch_;
  PinnedMemory mailbox_memory_;
  CudaSample s_;
  CudaCycleMemory m_;
  uint32_t request_ = 0;

 public:
  CycleMailbox& mailbox;
  CudaCycle* cycle;
};

class CudaSampler : public testing::Test {
 protected:
  void SetUp() override {
    devices_ = cuda_devices();
    if (devices_.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices_.why_none << ")";
  }
  const CudaDeviceInfo& device() const { return devices_.devices[0]; }
  CudaDevices devices_;
};

std::vector<SamplingParams> parameters(bool few) {
  std::vector<SamplingParams> grid;
  for (float temperature : {0.0f, 0.01f, 0.7f, 1.7f})
    for (uint32_t top_k : {0u, 1u, 20u, 1500u})
      for (float top_p : {1.0f, 0.3f, 0.95f, 1e-30f})
        for (float min_p : {0.0f, 0.05f})
          for (int other = 0; other < 4; ++other) {
            if (temperature == 0.0f && (top_k != 0 || top_p != 1.0f || min_p != 0.0f)) continue;
            if (few && (grid.size() + static_cast<size_t>(other)) % 11 != 0 && temperature != 0.0f) {
              grid.push_back({.seed = 0});
              continue;
            }
            SamplingParams p = {.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p};
            p.seed = 0x9e3779b97f4a7c15ull * (grid.size() + 1);
            if (other == 1) p.repetition_penalty = 1.3f;
            if (other == 2) p.repetition_penalty = 0.8f, p.presence_penalty = 0.5f, p.frequency_penalty = 0.25f;
            if (other >= 2) p.logit_bias = {{0, 1.5f}, {1, -1000.0f}, {2, 3.25f}};
            grid.push_back(p);
          }
  if (few) std::erase_if(grid, [](const SamplingParams& p) { return p.seed == 0; });
  return grid;
}

// Kinds of rows that have gone wrong somewhere.
constexpr uint32_t kKinds = 7;
std::vector<float> row_of_kind(uint32_t kind, uint32_t vocab, uint32_t seed) {
  auto row = test::row_of_logits(vocab, kind == 1 ? 0.05f : 3.0f, seed, kind == 2 ? 0.5f : 0.0f);
  for (uint32_t i = 0; i < vocab; ++i) {
    if (kind == 3) row[i] = 0.25f;                                   // all equal
    if (kind == 4) row[i] = (i * 7 + seed) % 3 == 0 ? 0.0f : -0.0f;  // two zeros
    if (kind == 5) row[i] = row[i] * 2e37f;                          // differences overflow
    if (kind == 6) row[i] = row[i] * 1e-39f;                         // subnormal
  }
  return row;
}

struct Want {
  std::vector<int32_t> tokens;
  uint32_t accepted = 0;
  bool finite = true;
};

// As Txn::verify.
Want want_of(const SamplingParams& p, uint32_t vocab, const std::vector<float>& rows,
             const std::vector<int32_t>& prompt, std::vector<int32_t> output, const std::vector<int32_t>& proposals) {
  Sampler sampler(kernels(available_isas().back()), p, vocab);
  Want w;
  for (size_t i = 0; i <= proposals.size(); ++i) {
    const SampleResult r = sampler.sample(rows.data() + i * vocab, prompt, output, prompt.size() + output.size());
    if (!r.ok()) return {{}, 0, false};
    w.tokens.push_back(r.token);
    if (i == proposals.size() || r.token != proposals[i]) return w;
    ++w.accepted;
    output.push_back(r.token);
  }
  return w;
}

std::vector<int32_t> some_tokens(uint32_t n, uint32_t vocab, uint32_t seed) {
  std::vector<int32_t> out(n);
  for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<int32_t>(philox4x32({{i, seed, 0, 0}}, 1, 2).word[0] % vocab);
  return out;
}

void compare_all(const CudaDeviceInfo& device, uint32_t vocab, uint32_t kinds, bool few) {
  Bench bench(device, vocab, 1000);
  uint32_t seed = 0;
  for (uint32_t kind = 0; kind < kinds; ++kind)
    for (const SamplingParams& p : parameters(few)) {
      ++seed;
      const uint32_t n = vocab > 10000 ? seed % 3 : seed % 16;
      const auto prompt = some_tokens(1 + seed % 9, std::min(vocab, 40u), seed),
                 output = some_tokens(seed % 5, std::min(vocab, 40u), seed + 1);
      std::vector<float> rows;
      for (uint32_t i = 0; i <= n; ++i) {
        const auto row = row_of_kind(kind, vocab, seed * 16 + i);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      // Proposals that are right, but for one in some cases.
      std::vector<int32_t> proposals;
      while (proposals.size() < n) {
        auto w = want_of(p, vocab, rows, prompt, output, proposals);
        proposals.push_back(w.tokens.back());
      }
      if (seed % 3 == 0 && n > 0) proposals[seed % n] = (proposals[seed % n] + 1) % static_cast<int32_t>(vocab);
      const Want want = want_of(p, vocab, rows, prompt, output, proposals);
      bench.send(p, prompt, output);
      const auto committed = static_cast<uint32_t>(prompt.size() + output.size());
      const CycleRecord got = bench.accept(bench.fresh(committed, 1000, n), rows, proposals, seed % 2 == 0);
      ASSERT_EQ(got.state, CycleState::running);
      ASSERT_EQ(got.emitted, want.tokens.size()) << "vocab " << vocab << " kind " << kind << " case " << seed;
      ASSERT_EQ(std::vector<int32_t>(got.tokens, got.tokens + got.emitted), want.tokens)
          << "vocab " << vocab << " kind " << kind << " case " << seed;
      ASSERT_EQ(got.accepted, want.accepted);
      ASSERT_EQ(got.proposed, n);
    }
}

TEST_F(CudaSampler, HasTheTokensOfTheProcessor) {
  for (uint32_t vocab : {3u, 320u, 2003u}) compare_all(device(), vocab, kKinds, false);
}
TEST_F(CudaSampler, HasThemOverLargeVocabularies) {
  for (uint32_t vocab : {49152u, 128256u, 262144u}) compare_all(device(), vocab, 5, true);
}

TEST_F(CudaSampler, ALogitThatIsNotFiniteCommitsNothing) {
  const uint32_t vocab = 5000;
  Bench bench(device(), vocab, 100);
  for (float bad : {std::nanf(""), kInf, -kInf, -std::nanf("")})
    for (uint32_t at : {0u, 30u, 4999u})
      for (const SamplingParams& p :
           {SamplingParams{}, SamplingParams{.temperature = 1}, SamplingParams{.temperature = 1, .top_k = 2},
            SamplingParams{.temperature = 1, .top_p = 0.5f}, SamplingParams{.repetition_penalty = 2}}) {
        auto rows = test::row_of_logits(vocab, 1, 1), second = rows;
        second[at] = bad;
        rows.insert(rows.end(), second.begin(), second.end());
        const int32_t first = want_of(p, vocab, rows, {1}, {}, {}).tokens[0];
        bench.send(p, {1}, {});
        // Behind a proposal that is accepted the row is looked at, behind another it is not.
        CycleRecord r = bench.accept(bench.fresh(1, 50, 1), rows, {first}, true);
        EXPECT_EQ(r.state, CycleState::nonfinite);
        EXPECT_EQ(r.emitted, 0u);
        r = bench.accept(bench.fresh(1, 50, 1), rows, {first == 0 ? 1 : 0}, true);
        EXPECT_EQ(r.state, CycleState::running);
        EXPECT_EQ(r.emitted, 1u);
      }
}

TEST_F(CudaSampler, EndsAtStopTokensTheLimitAndTheHostsWord) {
  const uint32_t vocab = 64;
  Bench bench(device(), vocab, 100);
  bench.send({}, {1}, {});
  std::vector<float> rows(vocab * 4, 0.0f);
  for (uint32_t r = 0; r < 4; ++r) rows[r * vocab + 10 + r] = 5.0f;  // 10, 11, 12, 13
  bench.send_stops({60, 11, 61});
  CudaCycle c = bench.fresh(5, 90, 3);
  c.stops = 3;
  CycleRecord r = bench.accept(c, rows, {10, 11, 12}, true);
  EXPECT_EQ(r.state, CycleState::finished);
  EXPECT_EQ(r.emitted, 2u);
  EXPECT_EQ(r.accepted, 2u);
  c = bench.fresh(5, 90, 3);
  c.stops = 1;  // 60 only
  r = bench.accept(c, rows, {10, 11, 12}, true);
  EXPECT_EQ(r.state, CycleState::running);
  EXPECT_EQ(r.emitted, 4u);
  EXPECT_EQ(r.accepted, 3u);
  r = bench.accept(bench.fresh(5, 9, 3), rows, {10, 11, 12}, true);
  EXPECT_EQ(r.state, CycleState::finished) << "the timeline ends at 9";
  EXPECT_EQ(r.emitted, 4u);
  c = bench.fresh(5, 90, 3);
  bench.mailbox.stop_request = c.request;
  r = bench.accept(c, rows, {9}, true);
  EXPECT_EQ(r.state, CycleState::finished) << "the host wants no more";
  EXPECT_EQ(r.emitted, 1u);
}

TEST_F(CudaSampler, NgramsAreThoseOfTheProcessor) {
  const test::TestModel model("synth:tiny:q4_0");
  WorkerPool pool(test::pool_options(1));
  const auto draft = draft_kind("ngram").make(DraftContext{.argument = "",
                                                           .target = model.desc,
                                                           .open = nullptr,
                                                           .vocab_hash = nullptr,
                                                           .target_vocab_hash = "",
                                                           .kernels = kernels(Isa::scalar),
                                                           .pool = pool,
                                                           .pack = {},
                                                           .arm = {}});
  Bench bench(device(), 64, 40000);
  uint32_t seed = 0, found = 0;
  for (uint32_t alphabet : {1u, 2u, 3u, 12u, 400u, 100000u})
    for (uint32_t size : {1u, 2u, 3u, 4u, 5u, 6u, 17u, 100u, 1025u, 5000u, 16384u, 16386u, 16390u, 20000u, 33000u})
      for (uint32_t depth : {1u, 4u, 15u}) {
        auto tokens = some_tokens(size, alphabet, ++seed);
        // The last tokens once more, at the edge of the window.
        if (size > 16390 && alphabet > 1000)
          std::copy(tokens.end() - 3, tokens.end(), tokens.end() - 16384 - 3 + static_cast<int>(seed % 3) - 1);
        for (uint32_t room : {1u, 3u, 100u}) {
          const uint32_t limit = std::min(depth, room - 1);
          std::vector<int32_t> want;
          if (limit > 0) draft->propose({tokens, 1}, limit, want);
          const CudaStep got = bench.propose(bench.fresh(size, size + room, depth), tokens, CudaDraft::ngram);
          ASSERT_EQ(got.rows, want.size() + 1)
              << size << " of " << alphabet << ", depth " << depth << ", room " << room;
          EXPECT_EQ(got.head_rows, got.rows);
          EXPECT_EQ(got.position, size - 1);
          EXPECT_EQ(got.tokens[0], tokens.back());
          ASSERT_EQ(std::vector<int32_t>(got.tokens + 1, got.tokens + got.rows), want) << size << " of " << alphabet;
          found += !want.empty();
        }
      }
  EXPECT_GT(found, 100u);
  CudaCycle over = bench.fresh(100, 200, 4);
  over.finished = 1;
  EXPECT_EQ(bench.propose(over, some_tokens(100, 2, 1), CudaDraft::ngram).rows, 0u);
  EXPECT_EQ(bench.propose(bench.fresh(100, 200, 4), some_tokens(100, 2, 1), CudaDraft::none).rows, 1u);
}

}  // namespace
}  // namespace stet
