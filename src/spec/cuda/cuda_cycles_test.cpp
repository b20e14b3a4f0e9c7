// Generations whose cycles stay on the GPU against step() on the processor: the same tokens, the same acceptance, the
// same session.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "kernels/sample/sample_cuda.h"
#include "spec/device_cycles.h"
#include "state/test_model.h"

namespace stet {
namespace {

constexpr uint32_t kContext = 300;
constexpr const char* kDraftModel = "synth:tiny-gqa:q8_0:3";

struct Ask {
  std::string draft = "none";
  uint32_t depth = 0, prompt = 40, limit = 60, seed = 1;
  SamplingParams sampling = {};
  std::vector<int32_t> stops = {};
};

struct Told {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> proposed, accepted;
  uint64_t state = 0;
  bool operator==(const Told&) const = default;
};

// One side: a decoder with its drafts, and a session that lives through all requests.
class Side {
 public:
  Side(const test::TestModel& model, const CudaDeviceInfo* cuda, uint32_t context = kContext)
      : model_(model),
        cuda_(cuda),
        context_(context),
        pool_(test::pool_options(cuda ? 1 : 2)),
        decoder(model.desc, *model.pack, kernels(available_isas().back()), pool_, {.context = context, .cuda = cuda},
                test::unqualified()),
        session(decoder) {}

  Draft* draft(const std::string& name) {
    if (name == "none") return nullptr;
    auto& slot = drafts_[name];
    if (!slot)
      slot = draft_kind(name).make({.argument = name == "model" ? kDraftModel : "",
                                    .target = model_.desc,
                                    .open = [](const std::string& file) { return SynthSource::create(file); },
                                    .vocab_hash = [](const TensorSource&) { return std::string(); },
                                    .target_vocab_hash = "",
                                    .kernels = kernels(available_isas().back()),
                                    .pool = pool_,
                                    .context = context_,
                                    .cuda = cuda_,
                                    .pack = {},
                                    .arm = test::unqualified()});
    return slot.get();
  }
  DeviceCycles& cycles(const Ask& a, uint32_t first_request = 0) {
    auto& slot = cycles_[fmt::format("{} {} {}", a.draft, a.depth, fmt::join(a.stops, ","))];
    if (!slot) slot = make_device_cycles(decoder, draft(a.draft), {a.depth, a.stops, first_request});
    return *slot;
  }

  void take(Told& told, const StepResult& r) const {
    told.tokens.insert(told.tokens.end(), r.tokens.begin(), r.tokens.end());
    told.proposed.push_back(r.proposed);
    told.accepted.push_back(r.accepted);
  }
  bool over(const Ask& a, const Told& told) const {
    return told.tokens.size() >= a.limit || session.room() == 0 ||
           (!told.tokens.empty() && std::ranges::find(a.stops, told.tokens.back()) != a.stops.end());
  }

 private:
  const test::TestModel& model_;
  const CudaDeviceInfo* cuda_;
  const uint32_t context_;
  WorkerPool pool_;
  std::map<std::string, std::unique_ptr<Draft>> drafts_;

 public:
  Decoder decoder;
  Session session;

 private:
  std::map<std::string, std::unique_ptr<DeviceCycles>> cycles_;
};

Told by_steps(Side& side, const std::vector<int32_t>& prompt, const Ask& a) {
  Told told;
  side.session.begin(prompt, true);
  Sampler sampler(kernels(available_isas().back()), a.sampling, side.decoder.desc().vocab);
  Draft* draft = side.draft(a.draft);
  if (draft != nullptr) draft->begin(a.sampling);
  while (!side.over(a, told))
    side.take(told, step(side.session, sampler,
                         {.draft = draft,
                          .depth = a.depth,
                          .is_stop = [&](int32_t t) { return std::ranges::find(a.stops, t) != a.stops.end(); },
                          .max_tokens = a.limit - static_cast<uint32_t>(told.tokens.size()),
                          .hook = nullptr}));
  told.state = side.session.state_hash();
  return told;
}

// cycles: leaves after so many, as a reader who wants no more.
Told on_device(Side& side, const std::vector<int32_t>& prompt, const Ask& a, uint32_t cycles = UINT32_MAX) {
  Told told;
  side.session.begin(prompt, true);
  DeviceCycles& device = side.cycles(a);
  device.begin(side.session, {a.sampling, a.limit, true});
  for (uint32_t i = 0; i < cycles && !side.over(a, told); ++i) {
    const auto r = device.next();
    if (!r) throw std::runtime_error("not finite");
    side.take(told, *r);
    EXPECT_GT(device.draft_seconds(), -1e-9);
    EXPECT_LT(device.draft_seconds(), 10.0);
  }
  device.stop();
  told.state = side.session.state_hash();
  return told;
}

std::vector<Ask> asks() {
  std::vector<Ask> all;
  const std::vector<SamplingParams> samplings = {
      {},
      {.temperature = 0.8f, .seed = 7},
      {.temperature = 0.9f, .top_k = 20, .top_p = 0.9f, .min_p = 0.02f, .seed = 8},
      {.temperature = 0.7f,
       .repetition_penalty = 1.2f,
       .presence_penalty = 0.3f,
       .frequency_penalty = 0.2f,
       .seed = 9,
       .logit_bias = {{5, 2.0f}, {9, -1000.0f}}},
      {.repetition_penalty = 1.3f, .frequency_penalty = 0.5f},
  };
  for (const char* draft : {"none", "ngram", "model"})
    for (const SamplingParams& s : samplings)
      for (uint32_t depth : {1u, 2u, 4u, 7u, 15u}) {
        if (std::string_view(draft) == "none" && depth != 1) continue;
        Ask a = {.draft = draft, .depth = std::string_view(draft) == "none" ? 0 : depth, .sampling = s};
        a.seed = static_cast<uint32_t>(all.size() % 4 + 1);
        a.prompt = all.size() % 5 == 0 ? 1 : 20 + static_cast<uint32_t>(all.size() * 13 % 120);
        all.push_back(a);
      }
  return all;
}

// Text that repeats itself, for n-grams.
std::vector<int32_t> prompt_of(const Ask& a, const ModelDesc& desc) {
  auto tokens = test::test_tokens(desc, a.prompt, a.seed);
  for (size_t i = 12; i < tokens.size(); ++i)
    if (i / 12 % 2 == 1) tokens[i] = tokens[i - 12];
  return tokens;
}

class CudaCycles : public testing::Test {
 protected:
  void SetUp() override {
    devices_ = cuda_devices();
    if (devices_.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices_.why_none << ")";
    host.emplace(model, nullptr);
    device.emplace(model, &devices_.devices[0]);
  }
  CudaDevices devices_;
  const test::TestModel model{"synth:tiny-gqa:q4_0"};
  std::optional<Side> host, device;
};

TEST_F(CudaCycles, AreTheStepsOfTheProcessor) {
  uint32_t accepted = 0, refused = 0;
  for (const Ask& a : asks()) {
    SCOPED_TRACE(
        fmt::format("{} depth {} prompt {} temperature {}", a.draft, a.depth, a.prompt, a.sampling.temperature));
    const auto prompt = prompt_of(a, model.desc);
    const Told want = by_steps(*host, prompt, a), got = on_device(*device, prompt, a);
    ASSERT_EQ(got.tokens, want.tokens);
    ASSERT_EQ(got.proposed, want.proposed);
    ASSERT_EQ(got.accepted, want.accepted);
    ASSERT_EQ(got.state, want.state);
    for (size_t i = 0; i < want.accepted.size(); ++i)
      accepted += want.accepted[i], refused += want.proposed[i] - want.accepted[i];
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 100u);
}

TEST_F(CudaCycles, EndWithTheContextTheLimitAndStopTokens) {
  for (const char* draft : {"none", "ngram", "model"}) {
    Ask a = {
        .draft = draft, .depth = std::string_view(draft) == "none" ? 0u : 5u, .prompt = kContext - 21, .limit = 1000};
    a.sampling = {.temperature = 0.6f, .seed = 3};
    const auto prompt = prompt_of(a, model.desc);
    const Told full = by_steps(*host, prompt, a);
    EXPECT_EQ(full.tokens.size(), 21u);
    EXPECT_EQ(on_device(*device, prompt, a), full);
    for (uint32_t limit = 1; limit <= 9; ++limit) {
      a.limit = limit;
      EXPECT_EQ(on_device(*device, prompt, a), by_steps(*host, prompt, a)) << draft << " limit " << limit;
    }
    a.limit = 50;
    for (size_t at : {0u, 3u, 4u, 11u}) {
      a.stops = {full.tokens[at], 1};
      EXPECT_EQ(on_device(*device, prompt, a), by_steps(*host, prompt, a)) << draft << " stop at " << at;
    }
  }
}

// Whoever leaves early finds a session that the next request can build on; requests with and without a draft follow
// each other.
TEST_F(CudaCycles, ThatNobodyWaitsForLeaveNoTrace) {
  uint32_t i = 0;
  for (uint32_t cycles : {0u, 1u, 2u, 3u, 9u})
    for (const char* draft : {"model", "ngram", "none"}) {
      Ask a = {.draft = draft, .depth = std::string_view(draft) == "none" ? 0u : 4u, .prompt = 30 + ++i, .limit = 40};
      a.sampling = {.temperature = 0.5f, .repetition_penalty = 1.1f, .seed = i};
      const auto prompt = prompt_of(a, model.desc);
      const Told part = on_device(*device, prompt, a, cycles), want = by_steps(*host, prompt, a);
      EXPECT_LE(part.proposed.size(), cycles);
      EXPECT_TRUE(std::equal(part.tokens.begin(), part.tokens.end(), want.tokens.begin()));
      // The same again, and from its middle on.
      EXPECT_EQ(on_device(*device, prompt, a).tokens, want.tokens) << draft << " after " << cycles;
      auto longer = prompt;
      longer.insert(longer.end(), want.tokens.begin(), want.tokens.begin() + 7);
      EXPECT_EQ(on_device(*device, longer, a).tokens, by_steps(*host, longer, a).tokens)
          << draft << " after " << cycles;
    }
}

// A host step between device cycles: what requests that want to see logits do.
TEST_F(CudaCycles, AlternateWithSteps) {
  for (const char* draft : {"ngram", "model"}) {
    Ask a = {.draft = draft, .depth = 3, .prompt = 33, .limit = 25};
    const auto prompt = prompt_of(a, model.desc);
    const Told want = by_steps(*host, prompt, a);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(on_device(*device, prompt, a).tokens, want.tokens);
      EXPECT_EQ(by_steps(*device, prompt, a).tokens, want.tokens);
    }
  }
}

TEST_F(CudaCycles, TheNumberOfTheRequestWraps) {
  const Ask a = {.limit = 12};
  const auto prompt = prompt_of(a, model.desc);
  const Told want = by_steps(*host, prompt, a);
  device->cycles(a, UINT32_MAX - 2);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(on_device(*device, prompt, a), want) << i;
}

// One graph a cycle, one launch each, nothing of it unaccounted for.
TEST_F(CudaCycles, AreOneGraphOfCountedKernels) {
  for (const char* draft : {"none", "ngram", "model"}) {
    const bool model_draft = std::string_view(draft) == "model";
    const Ask a = {.draft = draft, .depth = std::string_view(draft) == "none" ? 0u : 4u, .limit = 30};
    DeviceCycles& cycles = device->cycles(a);
    const DeviceCycles::Graph g = cycles.graph();
    EXPECT_GT(g.body_kernels, 0u);
    EXPECT_GT(g.head_kernels, 0u);
    EXPECT_EQ(g.draft_kernels > 0, model_draft);
    // Begin, sampling and acceptance; sampling and a proposal a pass of the draft.
    const uint64_t around = 1 + kCudaSampleLaunches + 1 + (model_draft ? a.depth * (kCudaSampleLaunches + 1) : 0);
    EXPECT_EQ(g.nodes, g.body_kernels + g.head_kernels + g.draft_kernels + around) << draft;
    const uint64_t before = cycles.launches();
    const Told told = on_device(*device, prompt_of(a, model.desc), a);
    EXPECT_GE(cycles.launches() - before, told.proposed.size());
    EXPECT_LE(cycles.launches() - before, told.proposed.size() + 2) << "cycles in flight when it ended";
  }
}

// Nothing that the host keeps of the device's state is read while cycles run.
TEST_F(CudaCycles, DoNotReadTheHostsCopies) {
  for (const char* draft : {"none", "ngram", "model"}) {
    const Ask a = {.draft = draft, .depth = std::string_view(draft) == "none" ? 0u : 4u};
    const auto prompt = prompt_of(a, model.desc);
    const Told want = by_steps(*host, prompt, a);
    device->cycles(a);
    device->session.state_hash();
    const auto& d = device->decoder;
    const uint32_t depth = std::max(a.depth, 1u);
    const Buffer* logits = device->decoder.device_lists(depth, depth).logits;
    std::memset(logits->data, 0xff, uint64_t{logits->width} * kNarrowRows * sizeof(float));
    // The cache's memory is there as far as the hash above needed it.
    for (uint32_t layer = 0; layer < model.desc.layers && device->session.cached_tokens() > 0; ++layer)
      std::memset(d.kv_layer(layer), 0xff, d.kv_layout().chunk_bytes());
    EXPECT_EQ(on_device(*device, prompt, a), want) << draft;
  }
}

TEST_F(CudaCycles, SayThatLogitsAreNotFinite) {
  const Ask a = {.limit = 10, .sampling = {.logit_bias = {{4, std::numeric_limits<float>::infinity()}}}};
  device->session.begin(prompt_of(a, model.desc), false);
  DeviceCycles& cycles = device->cycles(a);
  cycles.begin(device->session, {a.sampling, a.limit, true});
  const uint32_t committed = device->session.committed_tokens();
  EXPECT_FALSE(cycles.next());
  EXPECT_EQ(device->session.committed_tokens(), committed);
  cycles.stop();
  const Ask good = {.limit = 10};
  EXPECT_EQ(on_device(*device, prompt_of(good, model.desc), good), by_steps(*host, prompt_of(good, model.desc), good));
}

TEST_F(CudaCycles, NeedADecoderThatReplaysOnADevice) {
  EXPECT_EQ(make_device_cycles(host->decoder, nullptr, {}), nullptr);
  WorkerPool pool(test::pool_options(1));
  Decoder recorded(model.desc, *model.pack, kernels(available_isas().back()), pool,
                   {.context = 64, .mode = ReplayMode::recorded, .cuda = &devices_.devices[0]}, test::unqualified());
  EXPECT_EQ(make_device_cycles(recorded, nullptr, {}), nullptr);
}

}  // namespace
}  // namespace stet
