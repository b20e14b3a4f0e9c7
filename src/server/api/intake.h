// A thread for what takes too long for the transport's: parsing and tokenising bodies of many megabytes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace stet {

// Runs tasks one after another, in the order in which they came. Tasks throw nothing. How many can wait is bounded by
// the transport: each connection has one request under way.
class Intake {
 public:
  Intake();
  ~Intake();  // tasks that have not begun are dropped
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  void add(std::function<void()> task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace stet
