#include "device/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "device/cgroup.h"

namespace stet {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::string gib(uint64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) * 0x1p-30); }

// Maps `bytes` (whole pages) at a multiple of `alignment`; null when the system refuses.
std::byte* map_aligned(uint64_t bytes, uint64_t alignment, int protection, int flags) {
  const uint64_t slack = alignment > page_bytes() ? alignment - page_bytes() : 0;
  if (bytes > UINT64_MAX / 2) {
    errno = ENOMEM;
    return nullptr;
  }
  void* start = mmap(nullptr, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<uint64_t>(start);
  const uint64_t aligned = round_up(address, alignment);
  if (aligned > address) munmap(start, aligned - address);
  const uint64_t tail = address + slack - aligned;
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  return reinterpret_cast<std::byte*>(aligned);
}

// The limit of a group and what it uses, without the file pages that go first. Nothing: no limit.
std::optional<uint64_t> left_in_group(int version, const std::string& directory) {
  const auto number = [&](const char* file) {
    return whole_number(read_small_file(directory + "/" + file).value_or(""));
  };
  // Above memory.high a group is slowed down until it hardly moves, so that is a limit too.
  std::optional<uint64_t> limit = number(version == 2 ? "memory.max" : "memory.limit_in_bytes");
  const std::optional<uint64_t> high = version == 2 ? number("memory.high") : std::nullopt;
  if (high && (!limit || *high < *limit)) limit = high;
  constexpr uint64_t kNoLimitOfVersion1 = uint64_t{1} << 62;  // it writes the largest multiple of a page
  if (!limit || *limit >= kNoLimitOfVersion1) return std::nullopt;
  const uint64_t used = number(version == 2 ? "memory.current" : "memory.usage_in_bytes").value_or(0);
  const std::string stat = read_small_file(directory + "/memory.stat").value_or("");
  const uint64_t files = number_after(stat, version == 2 ? "inactive_file" : "total_inactive_file").value_or(0);
  const uint64_t firm = used - std::min(used, files);
  return *limit - std::min(*limit, firm);
}

uint64_t status_kilobytes(const char* key) {
  return number_after(read_small_file("/proc/self/status").value_or(""), key).value_or(0) * 1024;
}

}  // namespace

MemoryBudget memory_budget(const std::string& root) {
  MemoryBudget budget;
  const std::string path = root + "/proc/meminfo";
  const std::optional<uint64_t> kilobytes = number_after(read_small_file(path).value_or(""), "MemAvailable:");
  if (!kilobytes) fail(Code::kResource, "{} does not say how much memory is available; mount /proc", path);
  budget.system_bytes = *kilobytes * 1024;
  for (const CgroupHierarchy& hierarchy : cgroup_hierarchies("memory", root)) {
    for (const std::string& directory : hierarchy.directories) {
      const std::optional<uint64_t> left = left_in_group(hierarchy.version, directory);
      if (!left || *left >= budget.cgroup_bytes) continue;
      budget.cgroup_bytes = *left;
      budget.cgroup_source = directory;
    }
  }
  budget.available_bytes = std::min(budget.system_bytes, budget.cgroup_bytes);
  return budget;
}

std::string MemoryBudget::explain() const {
  const std::string cgroup =
      cgroup_bytes == kNoLimit ? "no cgroup limit" : fmt::format("cgroup {} at {}", gib(cgroup_bytes), cgroup_source);
  return fmt::format("{} available (system {}, {})", gib(available_bytes), gib(system_bytes), cgroup);
}

bool huge_pages_allowed(const std::string& root) {
  const auto modes = read_small_file(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  return modes && modes->find("[never]") == std::string::npos;
}

uint64_t current_rss_bytes() { return status_kilobytes("VmRSS:"); }
uint64_t peak_rss_bytes() { return status_kilobytes("VmHWM:"); }

Reservation::Reservation(uint64_t bytes, Pages pages) {
  if (bytes == 0) return;
  if (bytes > UINT64_MAX / 2) fail(Code::kResource, "{} bytes of addresses asked for; no machine has as many", bytes);
  reserved_bytes_ = round_up(bytes, page_bytes());
  unit_bytes_ = pages == Pages::kHuge && reserved_bytes_ >= kHugePage ? kHugePage : page_bytes();
  data_ = map_aligned(reserved_bytes_, unit_bytes_, PROT_NONE, MAP_NORESERVE);
  if (data_ == nullptr) {
    fail(Code::kResource, "cannot reserve {} ({} bytes) of addresses: {}; lower --ctx or raise the limit (ulimit -v)",
         gib(reserved_bytes_), reserved_bytes_, std::strerror(errno));
  }
}

Reservation::~Reservation() { unmap(); }

Reservation::Reservation(Reservation&& other) noexcept { *this = std::move(other); }

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  data_ = std::exchange(other.data_, nullptr);
  unit_bytes_ = other.unit_bytes_;
  reserved_bytes_ = std::exchange(other.reserved_bytes_, 0);
  committed_bytes_ = std::exchange(other.committed_bytes_, 0);
  return *this;
}

void Reservation::unmap() {
  if (data_ != nullptr) munmap(data_, reserved_bytes_);
}

void Reservation::commit(uint64_t bytes) {
  STET_CHECK(bytes <= reserved_bytes_);
  if (bytes <= committed_bytes_) return;
  // A huge page is only used where all of it has the same protection.
  const uint64_t end = std::min(round_up(bytes, unit_bytes_), reserved_bytes_);
  std::byte* start = data_ + committed_bytes_;
  if (mprotect(start, end - committed_bytes_, PROT_READ | PROT_WRITE) != 0) {
    fail(Code::kResource, "cannot get {} of memory after {} of {} reserved: {}; lower --ctx or free memory",
         gib(end - committed_bytes_), gib(committed_bytes_), gib(reserved_bytes_), std::strerror(errno));
  }
  // Advice only: kernels without huge pages say no.
  if (unit_bytes_ == kHugePage) madvise(start, end - committed_bytes_, MADV_HUGEPAGE);
  committed_bytes_ = end;
}

AlignedBuffer::AlignedBuffer(uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  mapped_ = bytes >= kHugePage;
  if (bytes > UINT64_MAX / 2) {
    errno = ENOMEM;
  } else if (mapped_) {
    data_ = map_aligned(round_up(bytes, page_bytes()), kHugePage, PROT_READ | PROT_WRITE, 0);
    if (data_ != nullptr) madvise(data_, round_up(bytes, page_bytes()), MADV_HUGEPAGE);
  } else {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, round_up(bytes, kAlignment)));
    if (data_ != nullptr) std::memset(data_, 0, bytes);
  }
  if (data_ == nullptr) {
    fail(Code::kResource, "cannot get {} ({} bytes) of memory: {}; use a smaller model or context, or free memory",
         gib(bytes), bytes, std::strerror(errno));
  }
}

AlignedBuffer::~AlignedBuffer() { release(); }

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept { *this = std::move(other); }

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  mapped_ = std::exchange(other.mapped_, false);
  return *this;
}

void AlignedBuffer::release() {
  if (data_ == nullptr) return;
  if (mapped_) {
    munmap(data_, round_up(bytes_, page_bytes()));
  } else {
    std::free(data_);
  }
}

}  // namespace stet
