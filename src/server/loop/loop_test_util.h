// Jobs that write down what they hear, and a loop of a synthetic model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "server/loop/generation_loop.h"

namespace stet::test {

constexpr uint32_t kLoopContext = 400;

inline Options tiny_options(const std::string& draft = "none") {
  Options o;
  o.model = "synth:tiny:q4_0";
  o.threads = 1;
  o.context = kLoopContext;
  o.pack = "none";
  o.prompt_rows = 16;
  o.draft = draft;
  o.qualify = false;
  return o;
}

inline std::vector<int32_t> some_tokens(uint32_t n, uint32_t seed) {
  std::vector<int32_t> out(n);
  uint32_t x = seed;
  for (int32_t& t : out) {
    x = x * 1664525u + 1013904223u;
    t = static_cast<int32_t>(4 + (x >> 8) % 316);  // no control tokens
  }
  return out;
}

inline Request some_request(uint32_t prompt, uint32_t seed, uint32_t max_tokens = 20) {
  Request r;
  r.prompt = some_tokens(prompt, seed);
  r.max_tokens = max_tokens;
  r.sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = seed};
  return r;
}

// The answer of an engine that did nothing else, without a draft.
inline Generation fresh_answer(const Request& r, Options o = tiny_options()) { return Engine(o).generate(r); }

// Everything that a job heard, in order; and hooks that run inside of what it hears.
class TestJob : public Job {
 public:
  explicit TestJob(Request request) : request_(std::move(request)) {}

  std::function<void(Engine&)> on_prepare;
  std::function<void(JobStage, uint32_t, uint32_t)> on_progress;
  std::function<void(const CycleEvent&)> on_cycle;
  std::optional<Clock::time_point> until;
  std::atomic<bool> is_wanted = true;

  Request prepare(Engine& engine) override {
    note("prepare");
    if (on_prepare) on_prepare(engine);
    return request_;
  }
  std::optional<Clock::time_point> deadline() const override { return until; }
  bool wanted() const override { return is_wanted; }
  void progress(JobStage stage, uint32_t done, uint32_t total) override {
    note(fmt::format("{} {}/{}", stage_name(stage), done, total));
    if (on_progress) on_progress(stage, done, total);
  }
  void cycle(const CycleEvent& event) override {
    note("cycle");
    {
      const std::lock_guard lock(mutex_);
      streamed.insert(streamed.end(), event.tokens.begin(), event.tokens.end());
    }
    if (on_cycle) on_cycle(event);
  }
  void done(const Generation& g) override { end("done", g); }
  void cancelled(std::string_view why, const Generation& g) override { end(fmt::format("cancelled: {}", why), g); }
  void failed(const std::exception& e) override { end(fmt::format("failed: {}", e.what()), {}); }

  // Waits for the end; what the last call was.
  std::string outcome() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ > 0; });
    return heard_.back();
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ends_ > 0;
  }
  // Waits until something that begins so was heard.
  void wait_for(const std::string& beginning) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return std::ranges::any_of(heard_, [&](const std::string& h) { return h.starts_with(beginning); });
    });
  }
  std::vector<std::string> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  size_t count(const std::string& beginning) {
    const auto all = heard();
    return static_cast<size_t>(
        std::ranges::count_if(all, [&](const std::string& h) { return h.starts_with(beginning); }));
  }
  // The answer, once there is an outcome.
  Generation answer;
  std::vector<int32_t> streamed;

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(ends_, 0) << "heard after its end: " << what;
    heard_.push_back(std::move(what));
    changed_.notify_all();
  }
  void end(const std::string& what, const Generation& g) {
    note(what);
    const std::lock_guard lock(mutex_);
    answer = g;
    ++ends_;
    changed_.notify_all();
  }

  const Request request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
  int ends_ = 0;
};

// Holds the thread that passes it until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

inline LoopOptions tiny_loop(uint32_t queue_limit = 16) {
  return {.engine = tiny_options(), .queue_limit = queue_limit};
}

// Returns when the engine is loaded.
inline void wait_until_ready(const GenerationLoop& loop) {
  while (!loop.status().load.ready) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline std::shared_ptr<TestJob> submit(GenerationLoop& loop, const Request& request) {
  auto job = std::make_shared<TestJob>(request);
  EXPECT_EQ(loop.submit(job), GenerationLoop::Submit::accepted);
  return job;
}

// A job that stands still in its first cycle until the gate is opened.
inline std::shared_ptr<TestJob> submit_held(GenerationLoop& loop, const Request& request, Gate& gate) {
  auto job = std::make_shared<TestJob>(request);
  job->on_cycle = [&gate](const CycleEvent&) { gate.pass(); };
  EXPECT_EQ(loop.submit(job), GenerationLoop::Submit::accepted);
  job->wait_for("cycle");
  return job;
}

}  // namespace stet::test
