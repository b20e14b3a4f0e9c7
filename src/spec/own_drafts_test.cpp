// The drafts that a checkpoint holds blocks of (tests/golden/deepseek_v4/mtp and dspark): what they propose, whatever
// happened before, and that they change no bit of an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "models/draft_desc.h"
#include "spec/step.h"
#include "state/deepseek_v4_golden.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

struct Machine {
  unsigned threads = 2;
  Isa isa = available_isas().back();
  ReplayMode mode = ReplayMode::replayed;
  uint32_t prompt_rows = kWideRows;
  const Kernels* kernels = nullptr;  // others than those of isa
};

// A decoder of a model, with its own draft where it was opened with one.
struct Bench {
  Bench(const test::TestModel& m, const Machine& on)
      : kernels(on.kernels == nullptr ? stet::kernels(on.isa) : *on.kernels),
        pool(test::pool_options(on.threads)),
        decoder(m.desc, *m.pack, kernels, pool, {160, KvFormat::f32, on.mode, on.prompt_rows}, test::unqualified()),
        session(decoder) {
    if (m.desc.draft != nullptr) draft = draft_kind(m.desc.draft->kind).make(context(m.desc));
  }
  DraftContext context(const ModelDesc& desc) {
    return {.argument = "",
            .target = desc,
            .open = nullptr,
            .vocab_hash = nullptr,
            .target_vocab_hash = "",
            .kernels = kernels,
            .pool = pool,
            .context = 160,
            .kv = KvFormat::f32,
            .cuda = nullptr,
            .pack = {},
            .arm = test::unqualified(),
            .decoder = &decoder};
  }
  const Kernels& kernels;
  WorkerPool pool;
  Decoder decoder;
  Session session;
  std::unique_ptr<Draft> draft;
};

// Notes what a draft proposes behind which tokens; and that it writes nothing.
class Noting : public Draft {
 public:
  using Notes = std::map<std::vector<int32_t>, std::vector<int32_t>>;
  Noting(Bench& bench, Notes& notes) : bench_(bench), notes_(notes) {}
  void begin(const SamplingParams& sampling) override { bench_.draft->begin(sampling); }
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    const uint64_t before = bench_.session.state_hash();
    bench_.draft->propose(view, depth, proposals);
    EXPECT_EQ(bench_.session.state_hash(), before);
    EXPECT_TRUE(proposals.size() == depth || view.cached_tokens + 1 < view.tokens.size());
    const auto confidences = bench_.draft->confidences();
    EXPECT_TRUE(confidences.empty() || confidences.size() == proposals.size());
    if (!proposals.empty()) notes_[{view.tokens.begin(), view.tokens.end()}] = proposals;
  }

 private:
  Bench& bench_;
  Notes& notes_;
};

struct Reply {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  std::vector<uint32_t> accepted;  // of each cycle
};

Reply reply(Bench& bench, Draft* draft, uint32_t depth, std::span<const int32_t> prompt, const SamplingParams& sampling,
            size_t least, bool reuse = false) {
  bench.session.begin(prompt, reuse);
  Sampler sampler(kernels(Isa::scalar), sampling, bench.decoder.desc().vocab);
  if (draft != nullptr) draft->begin(sampling);
  Reply r;
  while (r.tokens.size() < least) {
    const StepResult s =
        step(bench.session, sampler, {.draft = draft, .depth = depth, .is_stop = nullptr, .hook = nullptr});
    r.logits.insert(r.logits.end(), s.logits, s.logits + s.tokens.size() * bench.decoder.desc().vocab);
    r.tokens.insert(r.tokens.end(), s.tokens.begin(), s.tokens.end());
    r.accepted.push_back(s.accepted);
  }
  r.tokens.resize(least);
  r.logits.resize(least * bench.decoder.desc().vocab);
  return r;
}

void expect_same(const Reply& got, const Reply& want, const std::string& what) {
  EXPECT_EQ(got.tokens, want.tokens) << what;
  ASSERT_EQ(got.logits.size(), want.logits.size()) << what;
  EXPECT_EQ(std::memcmp(got.logits.data(), want.logits.data(), want.logits.size() * sizeof(float)), 0) << what;
}

class OwnDrafts : public testing::TestWithParam<const char*> {
 protected:
  static constexpr size_t kAnswer = 32;
  const std::string folder = test::kDeepseekV4Goldens + GetParam();
  const test::TestModel plain{HfCheckpoint::open(folder), true}, model{HfCheckpoint::open(folder, true), true};
  const std::vector<int32_t> prompt = test::test_tokens(plain.desc, 19, 4);
  const std::vector<SamplingParams> samplings = {
      {}, {.temperature = 0.8f, .seed = 5}, {.temperature = 1.2f, .top_k = 9, .repetition_penalty = 1.3f, .seed = 6}};
};
INSTANTIATE_TEST_SUITE_P(Models, OwnDrafts, testing::Values("mtp", "dspark"));

TEST_P(OwnDrafts, EveryDepthGivesThePlainAnswer) {
  for (const SamplingParams& sampling : samplings) {
    Bench without(plain, {.threads = 1, .isa = Isa::scalar, .mode = ReplayMode::eager});
    const Reply want = reply(without, nullptr, 0, prompt, sampling, kAnswer);
    Bench bench(model, {});
    for (uint32_t depth = 1; depth <= kMaxDepth; ++depth) {
      Noting::Notes notes;
      Noting draft(bench, notes);
      expect_same(reply(bench, &draft, depth, prompt, sampling, kAnswer), want, fmt::format("depth {}", depth));
      EXPECT_GT(notes.size(), kAnswer / (depth + 1));
    }
  }
}

TEST_P(OwnDrafts, MachinesPrefixesAndChunksChangeNothing) {
  const std::vector<int32_t> other = test::test_tokens(plain.desc, 60, 8);
  for (const SamplingParams& sampling : samplings) {
    Bench without(plain, {});
    const Reply want = reply(without, nullptr, 0, prompt, sampling, kAnswer);
    Noting::Notes all;
    for (const Machine& on : std::vector<Machine>{{},
                                                  {.threads = 1, .isa = Isa::scalar, .mode = ReplayMode::eager},
                                                  {.threads = 3, .mode = ReplayMode::recorded, .prompt_rows = 7},
                                                  {.threads = 1, .prompt_rows = 1}}) {
      Bench bench(model, on);
      for (const size_t common : {0u, 12u}) {
        // Another request that begins as this one leaves its rows, and the draft its own.
        std::vector<int32_t> before(prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(common));
        before.insert(before.end(), other.begin(), other.end());
        reply(bench, bench.draft.get(), 3, before, sampling, 8);
        Noting::Notes notes;
        Noting draft(bench, notes);
        expect_same(reply(bench, &draft, 4, prompt, sampling, kAnswer, true), want, fmt::format("{} common", common));
        // The same tokens, the same proposals, however the session came to them.
        for (const auto& [tokens, proposals] : notes) {
          const auto [it, fresh] = all.emplace(tokens, proposals);
          EXPECT_EQ(it->second, proposals) << tokens.size();
        }
      }
    }
    EXPECT_GT(all.size(), kAnswer / 5);
  }
}

// Rejected rows everywhere, then the same tokens with none.
TEST_P(OwnDrafts, ProposalsAreAFunctionOfTheTokens) {
  for (const SamplingParams& sampling : samplings) {
    Bench first(model, {}), second(model, {});
    Noting::Notes notes;
    Noting noting(first, notes);
    const Reply r = reply(first, &noting, 7, prompt, sampling, kAnswer);
    std::vector<int32_t> tokens = prompt;
    tokens.insert(tokens.end(), r.tokens.begin(), r.tokens.end());
    second.draft->begin(sampling);
    uint32_t compared = 0;
    // From the longest down: every time rows that the draft has made for more tokens are behind the end.
    for (size_t n = tokens.size(); n > prompt.size(); --n) {
      const auto some = std::span(tokens).first(n);
      second.decoder.forward(some.first(n - 1), 0, 0);
      std::vector<int32_t> proposals;
      const uint32_t given = static_cast<uint32_t>(prompt.size()), rows = static_cast<uint32_t>(n) - 1;
      second.draft->propose({some, given, rows}, 7, proposals);
      const auto it = notes.find({some.begin(), some.end()});
      if (it == notes.end()) continue;
      EXPECT_EQ(proposals, it->second) << n;
      ++compared;
    }
    EXPECT_GT(compared, 4u);
  }
}

// The test above can fail: a row of the target that a rejected token left in the place of a verified one is noticed.
TEST_P(OwnDrafts, AStaleRowOfTheTargetIsNoticed) {
  Bench bench(model, {});
  const std::vector<int32_t> tokens = test::test_tokens(plain.desc, 30, 2),
                             rejected = test::test_tokens(plain.desc, 1, 7);
  const auto given = static_cast<uint32_t>(prompt.size());
  uint32_t noticed = 0;
  for (uint32_t n = given + 1; n < tokens.size(); ++n) {
    const auto some = std::span(tokens).first(n);
    std::vector<int32_t> right, wrong;
    bench.decoder.forward(some.first(n - 1), 0, 0);
    bench.draft->propose({some, given, n - 1}, 15, right);
    ASSERT_NE(tokens[n - 2], rejected[0]);
    bench.decoder.forward(rejected, n - 2, 0);
    bench.draft->propose({some, given, n - 1}, 15, wrong);
    noticed += right != wrong;
  }
  EXPECT_GT(noticed, 0u);
}

// The transcription in binary64 on the same tokens: every proposal after every number of tokens, and what is accepted.
TEST_P(OwnDrafts, ProposalsAreThoseOfTheTranscription) {
  const Json record = parse_json(test::bytes_of(folder + "/cycles.json"), "cycles.json");
  const auto start = record["prompt"].get<std::vector<int32_t>>(),
             answer = record["answer"].get<std::vector<int32_t>>();
  for (const auto& [text, rows] : record["proposals"].items()) {
    const uint32_t depth = static_cast<uint32_t>(std::stoul(text));
    const auto want = rows.get<std::vector<std::vector<int32_t>>>();
    Bench bench(model, {});
    const Reply alone = reply(bench, nullptr, 0, start, {}, answer.size());
    EXPECT_EQ(alone.tokens, answer);
    Sampler sampler(kernels(Isa::scalar), {}, model.desc.vocab);
    bench.session.begin(start, false);
    for (const auto& proposals : want) {
      step(bench.session, sampler, {});
      std::vector<int32_t> got;
      bench.draft->propose(bench.session.view(), depth, got);
      EXPECT_EQ(got, proposals) << bench.session.committed_tokens();
    }
    // In cycles: as many are accepted as agree.
    const Reply cycles = reply(bench, bench.draft.get(), depth, start, {}, answer.size());
    size_t n = 1;
    for (size_t i = 1; i < cycles.accepted.size() && n + depth < answer.size(); ++i) {
      const auto& proposed = want[n - 1];
      uint32_t agree = 0;
      while (agree < depth && proposed[agree] == answer[n + agree]) ++agree;
      EXPECT_EQ(cycles.accepted[i], agree) << n;
      n += agree + 1;
    }
  }
}

// ---- a draft that has to be right

// A copy of the checkpoint with some tensors zero.
struct Zeroed {
  Zeroed(const std::string& from, const std::vector<std::string>& tensors)
      : folder(testing::TempDir() + "stet-own-drafts-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/config.json") << test::bytes_of(from + "/config.json");
    std::string bytes = test::bytes_of(from + "/model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const Json header = parse_json(std::string_view(bytes).substr(8, length), "header");
    for (const std::string& name : tensors) {
      if (!header.contains(name)) continue;
      const auto ends = header[name]["data_offsets"].get<std::vector<uint64_t>>();
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(8 + length + ends[0]), ends[1] - ends[0], '\0');
    }
    std::ofstream(folder + "/model.safetensors", std::ios::binary) << bytes;
  }
  ~Zeroed() { std::filesystem::remove_all(folder); }
  std::string folder;
};

// Without a head every row has the same logits: greedily token 0, and by the noise alone when sampled.
TEST_P(OwnDrafts, WhatHasToBeRightIsAccepted) {
  const Zeroed zeroed(folder, {"head.weight", "mtp.2.markov_head.markov_w2.weight"});
  const test::TestModel sure(HfCheckpoint::open(zeroed.folder, true), true);
  for (const SamplingParams& sampling : samplings) {
    Bench bench(sure, {});
    for (const uint32_t depth : {1u, 4u, 15u}) {
      const Reply r = reply(bench, bench.draft.get(), depth, prompt, sampling, kAnswer);
      for (size_t i = 1; i < r.accepted.size(); ++i) EXPECT_EQ(r.accepted[i], depth) << i;
    }
  }
}

// ---- faults

std::atomic<int64_t> products_left{INT64_MAX};

void faulty_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  if (products_left-- == 0) throw Error(Code::kResource, "a fault");
  kernels(available_isas().back()).matvec(w, tile, x, out);
}

TEST_P(OwnDrafts, AThrowInAnyKernelLeavesNoTrace) {
  static const Kernels faulty = [] {
    Kernels k = kernels(available_isas().back());
    k.matvec = faulty_matvec;
    return k;
  }();
  products_left = INT64_MAX;
  Bench without(plain, {});
  const Reply want = reply(without, nullptr, 0, prompt, {}, kAnswer);
  Bench bench(model, {.kernels = &faulty});
  Sampler sampler(kernels(Isa::scalar), {}, model.desc.vocab);
  Noting::Notes notes, again;
  Noting noting(bench, notes), noting_again(bench, again);
  expect_same(reply(bench, &noting, 5, prompt, {}, kAnswer), want, "no fault");
  uint32_t thrown = 0;
  for (int64_t at = 0; at < 3000; at += 1 + at / 3) {
    bench.session.begin(prompt, false);
    products_left = at;
    while (bench.session.output().size() < kAnswer) {
      const uint64_t state = bench.session.state_hash();
      try {
        step(bench.session, sampler, {.draft = &noting_again, .depth = 5, .is_stop = nullptr, .hook = nullptr});
      } catch (const Error&) {
        ++thrown;
        EXPECT_EQ(bench.session.state_hash(), state);
      }
    }
    products_left = INT64_MAX;
    EXPECT_TRUE(std::equal(want.tokens.begin(), want.tokens.end(), bench.session.output().begin())) << at;
  }
  EXPECT_GT(thrown, 12u);
  EXPECT_EQ(again, notes) << "what was left half made is made again";
}

// ---- refusals

TEST_P(OwnDrafts, WhatCannotBeIsRefusedByName) {
  const std::string other = GetParam() == std::string("mtp") ? "dspark" : "mtp";
  Bench bench(model, {}), without(plain, {});
  const auto refusal = [](const std::string& name, const DraftContext& context) -> std::string {
    try {
      draft_kind(name).make(context);
      return "accepted";
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == Code::kUnsupported || e.code() == Code::kUsage);
      return e.what();
    }
  };
  EXPECT_THAT(refusal(other, bench.context(model.desc)), HasSubstr(fmt::format("--draft {}", GetParam())));
  EXPECT_THAT(refusal(GetParam(), without.context(plain.desc)), HasSubstr("mtp.*"));
  DraftContext context = bench.context(model.desc);
  context.argument = "a file";
  EXPECT_THAT(refusal(GetParam(), context), HasSubstr("a file"));
}

}  // namespace
}  // namespace stet
