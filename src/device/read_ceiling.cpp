#include "device/read_ceiling.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace stet {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{64} << 20;

uint64_t ceiling_bytes(uint64_t most) {
  return std::max(std::min(memory_budget().available_bytes / 4, most), kLeastBytes) / 4096 * 4096;
}

uint64_t read_words(const uint64_t* p, size_t words) {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (size_t i = 0; i + 32 <= words; i += 32)
    for (size_t j = 0; j < 32; j += 4) a ^= p[i + j], b ^= p[i + j + 1], c ^= p[i + j + 2], d ^= p[i + j + 3];
  return a ^ b ^ c ^ d;
}

}  // namespace

ReadCeiling::ReadCeiling(unsigned threads, uint64_t most_bytes)
    : threads_(threads), buffer_(ceiling_bytes(most_bytes)) {
  // A page that nobody wrote is a page of zeros that all share.
  const auto words = buffer_.as<uint64_t>();
  for (size_t i = 0; i < words.size(); i += 512) words[i] = i;
}

ReadRates ReadCeiling::measure() const {
  using Clock = std::chrono::steady_clock;
  const auto words = buffer_.as<uint64_t>();
  const size_t share = words.size() / threads_;
  ReadRates rates;
  volatile uint64_t sink = 0;
  for (double& rate : rates) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> workers;
    std::vector<uint64_t> sums(threads_);
    for (unsigned t = 0; t < threads_; ++t)
      workers.emplace_back([&, t] { sums[t] = read_words(words.data() + share * t, share); });
    for (std::thread& w : workers) w.join();
    for (const uint64_t s : sums) sink = sink ^ s;
    rate = static_cast<double>(buffer_.bytes()) / std::chrono::duration<double>(Clock::now() - start).count() / 1e9;
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

}  // namespace stet
