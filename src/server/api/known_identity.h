// What the process and its engine are, with the hashes of the files they came from, computed aside: reading a model of
// many gigabytes takes a while.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "stet/engine.h"

namespace stet {

// Functions may be called from any thread.
class KnownIdentity {
 public:
  ~KnownIdentity();  // waits for the hashes

  // Begins, at the first call, on a thread of its own. The engine outlives this.
  void begin(const Engine& engine);
  // engine_identity(); empty while it is not known.
  std::string get() const;
  // The same; waits until it is known, or so much time has passed since begin().
  std::string wait(std::chrono::milliseconds patience) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string json_;
  std::chrono::steady_clock::time_point began_;
  std::thread thread_;
};

}  // namespace stet
