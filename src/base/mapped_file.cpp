#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/sigbus.h"

namespace stet {
namespace {

constexpr uint64_t kPage = 4096;

[[noreturn]] void fail_to_open(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      fail(Code::kInput, "{}: no such file; check the path", path);
    case EACCES:
    case EPERM:
      fail(Code::kResource, "{}: no permission to read it; change its mode or owner", path);
    default:
      fail(Code::kResource, "{}: cannot be opened: {}", path, std::strerror(error));
  }
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: a pipe must be refused, not waited for.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail_to_open(path, errno);
  try {
    if (::fstat(fd_, &stat_) != 0) fail_to_open(path, errno);
    if (S_ISDIR(stat_.st_mode)) fail(Code::kInput, "{}: is a directory; name a file in it", path);
    if (!S_ISREG(stat_.st_mode)) fail(Code::kInput, "{}: is not a regular file; save it to disk first", path);
    if (size() == 0) return;
    void* data = ::mmap(nullptr, size(), PROT_READ, MAP_SHARED, fd_, 0);
    if (data == MAP_FAILED)
      fail(Code::kResource, "{}: {} bytes cannot be mapped: {}", path, size(), std::strerror(errno));
    data_ = data;
    range_ = register_mapping(data_, size(), path_);
  } catch (...) {
    close();
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      stat_(std::exchange(other.stat_, {})),
      fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      range_(std::exchange(other.range_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  stat_ = std::exchange(other.stat_, {});
  fd_ = std::exchange(other.fd_, -1);
  data_ = std::exchange(other.data_, nullptr);
  range_ = std::exchange(other.range_, nullptr);
  return *this;
}

MappedFile::~MappedFile() { close(); }

void MappedFile::close() {
  if (range_ != nullptr) forget_mapping(range_);
  if (data_ != nullptr) ::munmap(data_, size());
  if (fd_ >= 0) ::close(fd_);
  range_ = data_ = nullptr;
  fd_ = -1;
}

void MappedFile::read(uint64_t offset, std::span<std::byte> out) const {
  STET_CHECK(offset <= size() && out.size() <= size() - offset);
  if (out.empty()) return;
  if (!guarded_copy(out.data(), static_cast<const std::byte*>(data_) + offset, out.size())) {
    check_unchanged();
    fail(Code::kInput, "{}: bytes {} to {} could not be read; check the disk", path_, offset, offset + out.size());
  }
  check_unchanged();
}

void MappedFile::check_unchanged() const {
  struct stat now = {};
  if (::fstat(fd_, &now) != 0)
    fail(Code::kInput, "{}: can no longer be read: {}; check the disk", path_, std::strerror(errno));
  if (now.st_size != stat_.st_size)
    fail(Code::kInput, "{}: had {} bytes when it was opened and has {} now; leave it alone while it is in use", path_,
         size(), now.st_size);
  if (!same_time(now.st_mtim, stat_.st_mtim))
    fail(Code::kInput, "{}: was written to while it was in use; start again with the finished file", path_);
}

void MappedFile::will_need(uint64_t offset, uint64_t bytes) const { advise(offset, bytes, MADV_WILLNEED); }

void MappedFile::release(uint64_t offset, uint64_t bytes) const { advise(offset, bytes, MADV_DONTNEED); }

// Whole pages inside the range when they are given up, all pages that it touches when they are asked for. A hint: its
// failure changes nothing but speed.
void MappedFile::advise(uint64_t offset, uint64_t bytes, int advice) const {
  STET_CHECK(offset <= size() && bytes <= size() - offset);
  const bool outward = advice == MADV_WILLNEED;
  const uint64_t begin = outward ? offset / kPage * kPage : (offset + kPage - 1) / kPage * kPage;
  const uint64_t end = outward || offset + bytes == size() ? offset + bytes : (offset + bytes) / kPage * kPage;
  if (begin < end) (void)::madvise(static_cast<std::byte*>(data_) + begin, end - begin, advice);
}

}  // namespace stet
