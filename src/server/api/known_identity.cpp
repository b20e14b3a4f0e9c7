#include "server/api/known_identity.h"

#include "engine/identity.h"

namespace stet {

KnownIdentity::~KnownIdentity() {
  if (thread_.joinable()) thread_.join();
}

void KnownIdentity::begin(const Engine& engine) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  began_ = std::chrono::steady_clock::now();
  thread_ = std::thread([this, &engine] {
    std::string json;
    try {
      json = engine_identity(engine, true);
    } catch (const std::exception&) {
      return;  // stays unproven
    }
    const std::lock_guard done(mutex_);
    json_ = std::move(json);
    changed_.notify_all();
  });
}

std::string KnownIdentity::get() const {
  const std::lock_guard lock(mutex_);
  return json_;
}

std::string KnownIdentity::wait(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, began_ + patience, [this] { return !json_.empty(); });
  return json_;
}

}  // namespace stet
