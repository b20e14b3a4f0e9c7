// Nothing of one request reaches the next: whatever happened before, an answer is that of a fresh engine.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "engine/parts.h"
#include "server/loop/loop_test_util.h"
#include "weights/gguf_writer.h"
#include "weights/patched_source_test.h"

namespace stet {
namespace {

using test::fresh_answer;
using test::some_request;
using test::submit;
using test::TestJob;

void expect_fresh(TestJob& job, const Request& request) {
  const Generation want = fresh_answer(request);
  EXPECT_EQ(job.outcome(), "done");
  EXPECT_EQ(job.answer.tokens, want.tokens);
  EXPECT_EQ(job.answer.text, want.text);
  EXPECT_EQ(job.answer.finish, want.finish);
  EXPECT_EQ(job.streamed, want.tokens);
}

class LoopBoundary : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    LoopOptions options = test::tiny_loop();
    options.engine = test::tiny_options(GetParam());
    options.first_epoch = UINT64_MAX - 1;
    loop = std::make_unique<GenerationLoop>(options);
    test::wait_until_ready(*loop);
  }
  // One request after which the next one has to be right, whether it shares the beginning or not.
  void expect_next_is_fresh() {
    for (const uint32_t seed : {3u, 90u}) {
      const Request next = some_request(60, seed);
      expect_fresh(*submit(*loop, next), next);
    }
  }

  std::unique_ptr<GenerationLoop> loop;
};

TEST_P(LoopBoundary, ALongRequestThenTheNext) {
  const Request full = some_request(300, 3, 0);
  auto job = submit(*loop, full);
  expect_fresh(*job, full);
  expect_next_is_fresh();
}

TEST_P(LoopBoundary, ACancelledRequestThenTheNext) {
  for (const int cycles : {0, 1, 5}) {
    auto job = std::make_shared<TestJob>(some_request(200, 3, 100));
    int left = cycles;
    job->on_progress = [&](JobStage stage, uint32_t done, uint32_t) {
      if (stage == JobStage::prefill && done > 64 && cycles == 0) job->is_wanted = false;
    };
    job->on_cycle = [&](const CycleEvent&) {
      if (--left == 0) job->is_wanted = false;
    };
    loop->submit(job);
    EXPECT_EQ(job->outcome(), "cancelled: disconnected");
    EXPECT_EQ(job->count("cycle"), static_cast<size_t>(cycles)) << "within one cycle";
    EXPECT_EQ(job->answer.tokens, job->streamed);
    EXPECT_EQ(job->answer.finish, Finish::cancelled);
    expect_next_is_fresh();
  }
}

TEST_P(LoopBoundary, AFailedRequestThenTheNext) {
  for (const char* where : {"prepare", "progress", "cycle", "tokens", "length", "sampling", "odd"}) {
    SCOPED_TRACE(where);
    Request request = some_request(80, 3);
    if (where == std::string("tokens")) request.prompt[70] = 5000;
    if (where == std::string("length")) request.prompt = test::some_tokens(test::kLoopContext, 1);
    if (where == std::string("sampling")) request.sampling.temperature = -1;
    auto job = std::make_shared<TestJob>(request);
    if (where == std::string("prepare")) job->on_prepare = [](Engine&) { fail(Code::kUsage, "a bad field"); };
    if (where == std::string("odd")) job->on_prepare = [](Engine&) { throw 7; };
    if (where == std::string("cycle"))
      job->on_cycle = [](const CycleEvent&) { throw std::runtime_error("a bad field"); };
    if (where == std::string("progress"))
      job->on_progress = [](JobStage s, uint32_t done, uint32_t) {
        if (s == JobStage::prefill && done > 20) throw std::bad_alloc();
      };
    loop->submit(job);
    EXPECT_TRUE(job->outcome().starts_with("failed: ")) << job->outcome();
    expect_next_is_fresh();
  }
  EXPECT_EQ(loop->status().failed, 7u);
}

TEST_P(LoopBoundary, AnEarlyEndThenTheNext) {
  const int32_t eos = *Engine(test::tiny_options()).parts().tokenizer->eos();
  Request early = some_request(60, 3, 50);
  early.sampling.logit_bias[eos] = 1000.0f;
  auto job = submit(*loop, early);
  expect_fresh(*job, early);
  EXPECT_EQ(job->answer.tokens, std::vector<int32_t>{eos});
  EXPECT_EQ(job->answer.finish, Finish::stop);
  expect_next_is_fresh();

  Request stopped = some_request(60, 3, 50);
  const std::string text = fresh_answer(stopped).text;
  stopped.stop = {text.substr(text.size() / 2, 2)};
  expect_fresh(*submit(*loop, stopped), stopped);
  expect_next_is_fresh();
}

TEST_P(LoopBoundary, EpochsRollOverBetweenRequests) {
  std::vector<uint64_t> epochs;
  for (uint32_t i = 0; i < 5; ++i) {
    const Request r = some_request(40 + i, 3 + i % 2);
    expect_fresh(*submit(*loop, r), r);
    epochs.push_back(loop->status().epoch);
  }
  EXPECT_EQ(epochs, (std::vector<uint64_t>{UINT64_MAX - 1, UINT64_MAX, 1, 2, 3}));
}

TEST_P(LoopBoundary, RequestsThatWaitedTogetherAreAnsweredInOrderAndApart) {
  test::Gate gate;
  const Request first = some_request(50, 3);
  auto held = test::submit_held(*loop, first, gate);
  std::vector<std::shared_ptr<TestJob>> jobs;
  for (uint32_t i = 0; i < 8; ++i) jobs.push_back(submit(*loop, some_request(30 + 5 * i, i % 3, 10)));
  gate.open();
  expect_fresh(*held, first);
  for (uint32_t i = 0; i < 8; ++i) expect_fresh(*jobs[i], some_request(30 + 5 * i, i % 3, 10));
  EXPECT_EQ(loop->status().finished, 9u);
}

INSTANTIATE_TEST_SUITE_P(Drafts, LoopBoundary, testing::Values("none", "ngram"));

// A model whose token 7 is NaN, from a file.
TEST(LoopNonfinite, FailsThatRequestOnly) {
  const std::string path = testing::TempDir() + fmt::format("stet_loop_nan_{}.gguf", getpid());
  test::PatchedSource source("synth:tiny-gqa:f32");
  source.floats("token_embd.weight")[7 * 96] = NAN;
  write_gguf(source, path, {.overwrite = true, .progress = nullptr});
  LoopOptions options = test::tiny_loop();
  options.engine.model = path;
  {
    GenerationLoop loop(options);
    test::wait_until_ready(loop);
    Request good = some_request(40, 1);
    for (int32_t& token : good.prompt) token = token % 300 == 7 ? 8 : token % 300;
    good.sampling.logit_bias[7] = -1000.0f;
    Request bad = good;
    bad.prompt[20] = 7;
    const Generation want = fresh_answer(good, options.engine);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(submit(loop, bad)->outcome().find("token_embd") != std::string::npos);
      auto next = submit(loop, good);
      EXPECT_EQ(next->outcome(), "done");
      EXPECT_EQ(next->answer.tokens, want.tokens);
    }
    EXPECT_EQ(loop.status().failed, 2u);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace stet
