// The queue, deadlines, progress, loading and stopping.
#include <filesystem>
#include <thread>

#include "server/loop/loop_test_util.h"

namespace stet {
namespace {

using namespace std::chrono_literals;
using test::Gate;
using test::some_request;
using test::submit;
using test::submit_held;
using test::TestJob;
using Submit = GenerationLoop::Submit;
using Strings = std::vector<std::string>;

class Loop : public testing::Test {
 protected:
  void start(LoopOptions options = test::tiny_loop()) {
    loop = std::make_unique<GenerationLoop>(options);
    test::wait_until_ready(*loop);
  }
  std::unique_ptr<GenerationLoop> loop;
};

TEST_F(Loop, AJobHearsItsStagesInOrder) {
  start();
  auto job = submit(*loop, some_request(40, 1, 3));
  EXPECT_EQ(job->outcome(), "done");
  Strings heard = job->heard();
  std::erase_if(heard, [](const std::string& h) { return h.starts_with("queued"); });  // whether it waited is chance
  EXPECT_EQ(heard,
            (Strings{"prepare", "prefill 0/40", "prefill 16/40", "prefill 32/40", "cycle", "cycle", "cycle", "done"}));
}

TEST_F(Loop, PrefillCountsTokensOfTheCacheAsDone) {
  start();
  Request r = some_request(40, 1, 3);
  submit(*loop, r)->outcome();
  auto again = submit(*loop, r);
  again->outcome();
  EXPECT_EQ(again->answer.cached_tokens, 39u);
  EXPECT_EQ(again->count("prefill 39/40"), 1u);
  r.reuse_prefix = false;
  auto cold = submit(*loop, r);
  cold->outcome();
  EXPECT_EQ(cold->answer.cached_tokens, 0u);
}

TEST_F(Loop, AFullQueueRefuses) {
  start(test::tiny_loop(2));
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  auto second = submit(*loop, some_request(20, 2)), third = submit(*loop, some_request(20, 3));
  EXPECT_EQ(loop->submit(std::make_shared<TestJob>(some_request(20, 4))), Submit::full);
  const LoopStatus status = loop->status();
  EXPECT_EQ(status.waiting, 2u);
  EXPECT_EQ(status.queue_limit, 2u);
  EXPECT_EQ(status.refused, 1u);
  EXPECT_EQ(status.active, JobStage::decode);
  EXPECT_EQ(status.active_prompt_tokens, 20u);
  gate.open();
  EXPECT_EQ(third->outcome(), "done");
  EXPECT_EQ(submit(*loop, some_request(20, 4))->outcome(), "done");
}

TEST_F(Loop, WithoutAQueueOneRequestIsStillTaken) {
  start(test::tiny_loop(0));
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  EXPECT_EQ(loop->submit(std::make_shared<TestJob>(some_request(20, 2))), Submit::full);
  gate.open();
  EXPECT_EQ(active->outcome(), "done");
}

TEST_F(Loop, AQueuedJobWhoseClientLeavesMakesRoomWhileTheLoopIsBusy) {
  start(test::tiny_loop(1));
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  auto waiting = submit(*loop, some_request(20, 2));
  waiting->is_wanted = false;
  EXPECT_EQ(waiting->outcome(), "cancelled: disconnected");
  EXPECT_EQ(waiting->count("prepare"), 0u);
  EXPECT_EQ(loop->status().waiting, 0u);
  EXPECT_FALSE(active->ended());
  auto next = submit(*loop, some_request(20, 3));
  gate.open();
  EXPECT_EQ(next->outcome(), "done");
  EXPECT_EQ(loop->status().cancelled, 1u);
}

TEST_F(Loop, DeadlinesEndQueuedAndActiveJobs) {
  start();
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  auto waiting = std::make_shared<TestJob>(some_request(20, 2));
  waiting->until = Job::Clock::now() + 20ms;
  EXPECT_EQ(loop->submit(waiting), Submit::accepted);
  EXPECT_EQ(waiting->outcome(), "cancelled: deadline") << "while the other one is still busy";
  gate.open();
  active->outcome();

  auto slow = std::make_shared<TestJob>(some_request(20, 3, 300));
  slow->until = Job::Clock::now() + 100ms;
  slow->on_cycle = [](const CycleEvent&) { std::this_thread::sleep_for(5ms); };
  EXPECT_EQ(loop->submit(slow), Submit::accepted);
  EXPECT_EQ(slow->outcome(), "cancelled: deadline");
  EXPECT_EQ(slow->answer.finish, Finish::cancelled);

  auto late = std::make_shared<TestJob>(some_request(20, 3, 300));
  late->until = Job::Clock::now() - 1ms;
  EXPECT_EQ(loop->submit(late), Submit::accepted);
  EXPECT_EQ(late->outcome(), "cancelled: deadline");
  EXPECT_EQ(late->count("cycle"), 0u);
}

TEST_F(Loop, ADeadlineThatPassesWithTheLastTokenCancelsNothing) {
  start();
  auto job = std::make_shared<TestJob>(some_request(20, 1, 2));
  job->on_cycle = [&](const CycleEvent&) {
    if (job->streamed.size() == 2) job->is_wanted = false;
  };
  loop->submit(job);
  EXPECT_EQ(job->outcome(), "done");
}

TEST_F(Loop, QueuedJobsHearWhereTheyStandWhileTheLoopIsBusy) {
  LoopOptions options = test::tiny_loop();
  options.keep_alive = 10ms;
  start(options);
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  auto second = submit(*loop, some_request(20, 2)), third = submit(*loop, some_request(20, 3));
  second->wait_for("queued 1/");
  third->wait_for("queued 2/3");
  while (third->count("queued 2/3") < 4) std::this_thread::sleep_for(1ms);
  second->is_wanted = false;
  third->wait_for("queued 1/2");
  gate.open();
  EXPECT_EQ(third->outcome(), "done");
}

// wanted() is asked between two passes: a job that is slow there stands for a slow pass.
class SlowPrefill : public TestJob {
 public:
  using TestJob::TestJob;
  bool wanted() const override {
    auto* self = const_cast<SlowPrefill*>(this);
    while (self->count("prefill 16/") > 0 && self->count("prefill 16/") < 4) std::this_thread::sleep_for(1ms);
    return true;
  }
};

TEST_F(Loop, AJobHearsOfALongPrefill) {
  LoopOptions options = test::tiny_loop();
  options.keep_alive = 10ms;
  start(options);
  auto job = std::make_shared<SlowPrefill>(some_request(100, 1));
  loop->submit(job);
  EXPECT_EQ(job->outcome(), "done");
}

TEST_F(Loop, AJobThatThrowsAtTheWatcherFailsWhenItsTurnComes) {
  start();
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  auto bad = std::make_shared<TestJob>(some_request(20, 2));
  bad->on_progress = [](JobStage, uint32_t, uint32_t) { throw std::runtime_error("no room"); };
  loop->submit(bad);
  bad->wait_for("queued");
  gate.open();
  EXPECT_EQ(bad->outcome(), "failed: no room");
  EXPECT_EQ(submit(*loop, some_request(20, 3))->outcome(), "done");
}

TEST_F(Loop, AGracefulStopAnswersEverybody) {
  start();
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1), gate);
  auto waiting = submit(*loop, some_request(20, 2));
  std::jthread stopper([&] { loop->stop(true); });
  while (!loop->status().stopping) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(loop->submit(std::make_shared<TestJob>(some_request(20, 3))), Submit::stopping);
  gate.open();
  stopper.join();
  EXPECT_EQ(active->outcome(), "done");
  EXPECT_EQ(waiting->outcome(), "done");
  EXPECT_EQ(waiting->answer.tokens, test::fresh_answer(some_request(20, 2)).tokens);
}

TEST_F(Loop, ACancellingStopEndsEverybodyWithinACycle) {
  start();
  Gate gate;
  auto active = submit_held(*loop, some_request(20, 1, 300), gate);
  auto waiting = submit(*loop, some_request(20, 2));
  std::jthread graceful([&] { loop->stop(true); });
  while (!loop->status().stopping) std::this_thread::sleep_for(1ms);
  std::jthread at_once([&] { loop->stop(false); });
  std::this_thread::sleep_for(20ms);
  gate.open();
  graceful.join();
  at_once.join();
  EXPECT_TRUE(active->outcome() == "cancelled: stopping" || active->count("cycle") > 1) << active->outcome();
  EXPECT_EQ(waiting->outcome(), "cancelled: stopping");
}

TEST_F(Loop, TheDestructorCancels) {
  start();
  auto job = std::make_shared<TestJob>(some_request(20, 1, 300));
  job->on_cycle = [](const CycleEvent&) { std::this_thread::sleep_for(2ms); };
  loop->submit(job);
  auto waiting = submit(*loop, some_request(20, 2));
  job->wait_for("cycle");
  loop.reset();
  EXPECT_EQ(job->outcome(), "cancelled: stopping");
  EXPECT_EQ(waiting->outcome(), "cancelled: stopping");
}

TEST(LoopLoad, SaysHowFarItIsAndRefusesUntilThen) {
  Gate gate;
  LoopOptions options = test::tiny_loop();
  std::atomic<int> told = 0;
  options.engine.progress = [&](std::string_view, uint64_t, uint64_t) { gate.pass(); };
  options.on_loaded = [&](std::exception_ptr error) { told += error ? 100 : 1; };
  GenerationLoop loop(options);
  while (loop.status().load.phase == "starting") std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(loop.status().load.ready);
  EXPECT_EQ(loop.engine(), nullptr);
  EXPECT_EQ(loop.submit(std::make_shared<TestJob>(some_request(20, 1))), Submit::loading);
  gate.open();
  test::wait_until_ready(loop);
  EXPECT_NE(loop.engine(), nullptr);
  EXPECT_EQ(submit(loop, some_request(20, 1))->outcome(), "done");
  EXPECT_EQ(told, 1);
}

TEST(LoopLoad, AStopGivesItUp) {
  Gate gate;
  LoopOptions options = test::tiny_loop();
  std::atomic<bool> cancelled = false;
  options.engine.progress = [&](std::string_view, uint64_t, uint64_t) { gate.pass(); };
  options.engine.qualify = true;  // several phases
  options.on_loaded = [&](std::exception_ptr error) { cancelled = error != nullptr; };
  GenerationLoop loop(options);
  while (loop.status().load.phase == "starting") std::this_thread::sleep_for(1ms);
  std::jthread stopper([&] { loop.stop(true); });
  while (!loop.status().stopping) std::this_thread::sleep_for(1ms);
  gate.open();
  stopper.join();
  EXPECT_TRUE(cancelled);
}

TEST(LoopLoad, AModelThatIsNotThereIsAnErrorWithItsCode) {
  LoopOptions options = test::tiny_loop();
  options.engine.model = testing::TempDir() + "no such model.gguf";
  std::exception_ptr told;
  options.on_loaded = [&](std::exception_ptr error) { told = error; };
  GenerationLoop loop(options);
  loop.stop(true);
  ASSERT_TRUE(told);
  try {
    std::rethrow_exception(told);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
  }
  const LoopStatus status = loop.status();
  EXPECT_TRUE(status.load.failed);
  EXPECT_NE(status.load.error.find("no such model"), std::string::npos) << status.load.error;
  EXPECT_EQ(loop.submit(std::make_shared<TestJob>(some_request(20, 1))), Submit::stopping);
}

TEST_F(Loop, CountsWhatItDid) {
  start();
  for (int i = 0; i < 2; ++i) submit(*loop, some_request(40, 1, 10))->outcome();
  const LoopStatus s = loop->status();
  EXPECT_EQ(s.finished, 2u);
  EXPECT_EQ(s.prompt_tokens, 80u);
  EXPECT_EQ(s.cached_prompt_tokens, 39u);
  EXPECT_EQ(s.output_tokens, 20u);
  EXPECT_EQ(s.cycles, 20u);
  EXPECT_EQ(s.cached_tokens, 49u);
  EXPECT_EQ(s.context, test::kLoopContext);
  EXPECT_FALSE(s.active);
  ASSERT_TRUE(s.last);
  EXPECT_TRUE(s.last->tokens.empty() && s.last->text.empty()) << "nothing of what was said";
  EXPECT_EQ(s.last->cycles.size(), 10u);
  EXPECT_GT(s.last->decode_tokens_per_second(), 0);
  EXPECT_EQ(s.last->tokens_per_cycle(), 1.0);
}

// Under ThreadSanitizer this shows that the functions are safe; here, that they are right.
TEST_F(Loop, TextAndIdsAreTurnedIntoEachOtherBesideAGeneration) {
  start();
  const std::string text = "Beside a generation, text is text.";
  const std::vector<int32_t> ids = loop->engine()->tokenize(text);
  auto job = submit(*loop, some_request(100, 1, 200));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      do {
        EXPECT_EQ(loop->engine()->tokenize(text), ids);
        EXPECT_EQ(loop->engine()->detokenize(ids), text);
        EXPECT_EQ(loop->engine()->info().context, test::kLoopContext);
        loop->status();
      } while (!job->ended());
    });
  for (std::jthread& t : threads) t.join();
  EXPECT_EQ(job->answer.tokens, test::fresh_answer(some_request(100, 1, 200)).tokens);
}

}  // namespace
}  // namespace stet
