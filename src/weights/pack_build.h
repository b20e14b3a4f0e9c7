// Makes the data of a pack from a source, piece by piece, on several threads.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "device/pool.h"
#include "weights/pack_plan.h"

namespace stet {

// As in PackOptions: called from the thread that called the function; may throw to cancel.
using PackProgress = std::function<void(std::string_view what, uint64_t done_bytes, uint64_t total_bytes)>;

// Tells the caller's thread how far all threads are, now and then.
class Meter {
 public:
  Meter(const PackProgress& progress, std::string_view what, uint64_t total)
      : progress_(progress), what_(what), total_(total) {}

  void add(uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  void show() {
    const auto now = std::chrono::steady_clock::now();
    if (!progress_ || now - shown_ < std::chrono::milliseconds(50)) return;
    shown_ = now;
    progress_(what_, done_.load(std::memory_order_relaxed), total_);
  }
  void finish() const {
    if (progress_) progress_(what_, total_, total_);
  }

 private:
  const PackProgress& progress_;
  const std::string_view what_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
  std::chrono::steady_clock::time_point shown_;
};

// Where packed pieces go. Called from several threads.
class PackSink {
 public:
  virtual ~PackSink() = default;
  // The place to pack `bytes` bytes at `offset` of the data: memory of the sink, or scratch grown to that size.
  virtual uint8_t* place(uint64_t offset, uint64_t bytes, std::vector<uint8_t>& scratch) = 0;
  // They are packed.
  virtual void put(uint64_t offset, const uint8_t* data, uint64_t bytes) = 0;
};

// Reads every tensor once, sets its source_sha256 and, unless sink is null (only the hashes are wanted), packs it and
// sets its checksum. Pages of the source are released as they are done. Throws what source.read() and the sink throw.
void build_pack(const TensorSource& source, PackPlan& plan, WorkerPool& pool, PackSink* sink,
                const PackProgress& progress);

// The pieces of all tensors in one row, so that threads can share them.
struct PackPieces {
  explicit PackPieces(const PackPlan& plan);
  struct Place {
    uint32_t tensor;
    uint32_t piece;
  };
  Place place(uint32_t index) const;
  uint32_t count() const { return first.back(); }
  std::vector<uint32_t> first;  // of each tensor, then their number
};

// The checksum of a tensor whose pieces have these XXH3-64 hashes.
uint64_t tensor_checksum(const uint64_t* piece_hashes, uint32_t pieces);

}  // namespace stet
