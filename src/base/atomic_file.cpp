#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace stet {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Unique among processes and within this one; O_EXCL catches what is left.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const std::string folder = folder_of(path);
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return fmt::format("{}/.{}.{}.{}.tmp", folder, name.substr(0, 200), ::getpid(), counter++);
}

void check_room(const std::string& path, uint64_t bytes) {
  struct statvfs disk = {};
  if (::statvfs(folder_of(path).c_str(), &disk) != 0) return;  // the writes themselves will tell
  const uint64_t available = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (available < bytes)
    fail(Code::kResource, "{}: needs {} bytes and the disk has {} free; make room or choose another place", path, bytes,
         available);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, const Options& options) : path_(path), options_(options) {
  struct stat existing = {};
  if (::stat(path.c_str(), &existing) == 0) {
    if (!S_ISREG(existing.st_mode))
      fail(Code::kUsage, "{}: exists and is not a regular file; choose another name", path);
    if (!options.overwrite) fail(Code::kUsage, "{}: exists already; remove it or choose another name", path);
  }
  if (options.expected_bytes > 0) check_room(path, options.expected_bytes);
  temporary_ = temporary_name(path);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, options.mode);
  if (fd_ < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR)
      fail(Code::kResource, "{}: the folder {} does not exist; create it", path, folder_of(path));
    fail(Code::kResource, "{}: cannot write to the folder {}: {}", path, folder_of(path), std::strerror(error));
  }
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail_to_write(int error) const {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail(Code::kResource, "{}: {} after {} bytes; {}", path_,
       full ? (error == ENOSPC ? "the disk is full" : "the allowed file size or quota is used up")
            : std::strerror(error),
       flushed_, full ? "make room or choose another place" : "check the disk");
}

void AtomicFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to_write(errno);
    done += static_cast<size_t>(n);
    flushed_ += static_cast<uint64_t>(n);
  }
  buffer_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  STET_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    written_ += n;
    bytes = bytes.subspan(n);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void AtomicFile::commit() {
  STET_CHECK(fd_ >= 0);
  flush();
  if (::fsync(fd_) != 0) fail_to_write(errno);
  // Without overwrite another process may have taken the name meanwhile; a file system that cannot rename without
  // replacing reports EINVAL and gets the plain rename.
  int failed = -1;
  if (!options_.overwrite)
    failed = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (failed != 0 && errno == EEXIST && !options_.overwrite)
    fail(Code::kUsage, "{}: another process wrote it meanwhile; remove it or choose another name", path_);
  if (options_.overwrite || (failed != 0 && (errno == EINVAL || errno == ENOSYS)))
    failed = ::rename(temporary_.c_str(), path_.c_str());
  if (failed != 0) fail(Code::kResource, "{}: cannot be put in place: {}", path_, std::strerror(errno));
  ::close(fd_);
  fd_ = -1;
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // the file is complete; only its name may be lost in a crash
  (void)::fsync(folder);
  ::close(folder);
}

}  // namespace stet
