// A transport that writes down what it is told to send.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "server/http/exchange.h"

namespace stet::test {

class FakeExchange : public Exchange {
 public:
  FakeExchange(std::string method, std::string path, std::string body = "") {
    static std::atomic<uint64_t> ids = 0;
    request_ = {.id = ++ids,
                .method = std::move(method),
                .path = std::move(path),
                .query = "",
                .headers = {},
                .body = std::move(body),
                .client = "unix",
                .arrived = std::chrono::steady_clock::now()};
  }

  const HttpRequest& request() const override { return request_; }
  void reply(HttpReply reply) override {
    expect(!begun_ && !ended_, "one answer");
    answer_ = std::move(reply);
    end();
  }
  void begin_events(std::map<std::string, std::string>) override {
    expect(!begun_ && !ended_, "one stream");
    const std::lock_guard lock(mutex_);
    begun_ = true;
    changed_.notify_all();
  }
  void event(std::string_view data) override {
    expect(begun_ && !ended_, "events between begin and end");
    EXPECT_EQ(data.find_first_of("\r\n"), data.npos) << data;
    const std::lock_guard lock(mutex_);
    events_.emplace_back(data);
    changed_.notify_all();
  }
  void end_events() override {
    expect(begun_ && !ended_, "a stream to end");
    complete_ = true;
    end();
  }
  void cut_events() override {
    expect(begun_ && !ended_, "a stream to cut");
    end();
  }
  bool gone() const override { return gone_; }
  void on_gone(std::function<void()>) override {}

  // The client leaves.
  void leave() { gone_ = true; }

  void wait() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return ended_.load(); })) << "no answer";
  }
  void wait_for_events(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return events_.size() >= count || ended_; }));
  }

  // After wait().
  const HttpReply& answer() const { return answer_; }
  nlohmann::json json() const { return nlohmann::json::parse(answer_.body); }
  bool begun() const { return begun_; }
  bool ended() const { return ended_; }
  bool complete() const { return complete_; }  // a stream with its end
  std::vector<std::string> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  // Events but [DONE].
  std::vector<nlohmann::json> chunks() const {
    std::vector<nlohmann::json> out;
    for (const std::string& event : events())
      if (event != "[DONE]") out.push_back(nlohmann::json::parse(event));
    return out;
  }

 private:
  void expect(bool good, const char* what) const { EXPECT_TRUE(good) << what << " (" << request_.path << ")"; }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  HttpRequest request_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HttpReply answer_;
  std::vector<std::string> events_;
  std::atomic<bool> begun_ = false, ended_ = false, complete_ = false, gone_ = false;
};

}  // namespace stet::test
