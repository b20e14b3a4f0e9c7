// Memory: what is left of it, address ranges that grow in place, and aligned buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace stet {

// How much more memory this process may use.
struct MemoryBudget {
  static constexpr uint64_t kNoLimit = UINT64_MAX;

  uint64_t available_bytes = 0;      // the smaller of the two below
  uint64_t system_bytes = 0;         // MemAvailable of /proc/meminfo
  uint64_t cgroup_bytes = kNoLimit;  // what the tightest control group leaves
  std::string cgroup_source;         // its directory

  // One line for people: "3.21 GiB available (system 20.00 GiB, cgroup 3.21 GiB at /sys/fs/cgroup/app)".
  std::string explain() const;
};

// Reads /proc/meminfo and the control groups, version 1 and 2 and all groups above, below `root` ("" outside tests).
// File pages that the kernel would drop first do not count as used. Throws Error(kResource) when /proc/meminfo cannot
// be read.
MemoryBudget memory_budget(const std::string& root = "");

// Whether the system gives huge pages to those who ask for them (madvise): reads transparent_hugepage/enabled below `root`.
bool huge_pages_allowed(const std::string& root = "");

// Resident memory of this process, in bytes; 0 where /proc is not mounted.
uint64_t current_rss_bytes();
uint64_t peak_rss_bytes();

// A range of addresses whose beginning is usable memory. Growing never moves it.
class Reservation {
 public:
  // kHuge: from 2 MiB on, the range is aligned to huge pages, grows by them, and the system is asked to use them: the
  // first touch of each makes 2 MiB resident. kSmall: for ranges that stay nearly empty.
  enum class Pages { kHuge, kSmall };

  Reservation() = default;
  // Reserves addresses only. `bytes` is rounded up to pages. Throws Error(kResource) when the addresses cannot be had.
  explicit Reservation(uint64_t bytes, Pages pages = Pages::kHuge);
  ~Reservation();
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  // Makes the first `bytes` usable; what was so already stays as it is, new memory reads as zero. Throws
  // Error(kResource) when the system refuses; the range is unchanged then. More than reserved_bytes() is an internal
  // error.
  void commit(uint64_t bytes);

  std::byte* data() const { return data_; }
  uint64_t reserved_bytes() const { return reserved_bytes_; }
  uint64_t committed_bytes() const { return committed_bytes_; }  // whole pages, at least what was asked for

 private:
  void unmap();

  std::byte* data_ = nullptr;
  uint64_t unit_bytes_ = 0;  // it grows by this many
  uint64_t reserved_bytes_ = 0;
  uint64_t committed_bytes_ = 0;
};

// Memory that is aligned to a cache line and reads as zero at first; from 2 MiB on it is aligned to huge pages, and the
// system is asked to use them. Movable; the address stays the same.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  // Throws Error(kResource) when the memory cannot be had.
  explicit AlignedBuffer(uint64_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // As many whole T as fit.
  template <typename T>
  std::span<T> as() const {
    static_assert(alignof(T) <= kAlignment);
    return {reinterpret_cast<T*>(data_), static_cast<size_t>(bytes_ / sizeof(T))};
  }

 private:
  void release();

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  bool mapped_ = false;
};

}  // namespace stet
