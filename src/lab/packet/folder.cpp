#include "lab/packet/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "lab/packet/manifest.h"

namespace stet {
namespace {

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool exists(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail(Code::kResource, "{}: {}; {}", path, full ? "the disk or quota is full" : std::strerror(error),
       full ? "make room; what was recorded before stays in the unfinished packet" : "check the disk");
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to_write(path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

PacketFolder::PacketFolder(const std::string& path)
    : path_(without_slashes(path)), partial_(path_ + std::string(kPartial)) {
  if (path_.empty()) fail(Code::kUsage, "a packet needs a name");
  for (const std::string& taken : {path_, partial_})
    if (exists(taken))
      fail(Code::kUsage, "{}: exists already; packets are never overwritten, choose another name", taken);
  if (::mkdir(partial_.c_str(), 0777) != 0) {
    if (errno == EEXIST) fail(Code::kUsage, "{}: another process made it meanwhile; choose another name", partial_);
    fail(Code::kResource, "{}: cannot be made: {}", partial_, std::strerror(errno));
  }
  sync_folder(folder_of(path_));
}

PacketFolder::~PacketFolder() {
  if (events_ >= 0) ::close(events_);
}

void PacketFolder::write(std::string_view name, std::string_view content) {
  const std::string path = file(name);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) fail_to_write(path, errno);
  try {
    write_all(fd, content, path);
    if (::fsync(fd) != 0) fail_to_write(path, errno);
  } catch (const Error&) {
    ::close(fd);
    throw;
  }
  ::close(fd);
  sync_folder(partial_);
}

void PacketFolder::append_events(std::string_view lines) {
  const std::string path = file(kEventsFile);
  if (events_ < 0) {
    events_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (events_ < 0) fail_to_write(path, errno);
    sync_folder(partial_);
  }
  const off_t before = ::lseek(events_, 0, SEEK_END);
  try {
    write_all(events_, lines, path);
    if (::fsync(events_) != 0) fail_to_write(path, errno);
  } catch (const Error&) {
    // Where even this fails the last line stays cut off, and the folder's name says that the packet is unfinished.
    (void)!::ftruncate(events_, before);
    throw;
  }
}

void PacketFolder::finish() {
  sync_folder(partial_);
  int failed = ::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  // A file system that cannot rename without replacing: of a folder, rename() replaces an empty one only.
  if (failed != 0 && (errno == EINVAL || errno == ENOSYS)) failed = ::rename(partial_.c_str(), path_.c_str());
  if (failed != 0 && (errno == EEXIST || errno == ENOTEMPTY))
    fail(Code::kUsage, "{}: another process took the name meanwhile; the packet is complete in {}, rename it", path_,
         partial_);
  if (failed != 0) fail(Code::kResource, "{}: cannot be put in place: {}", path_, std::strerror(errno));
  sync_folder(folder_of(path_));
}

// Some file systems have nothing to sync in a folder; the files themselves are synced, so that is no failure.
void PacketFolder::sync_folder(const std::string& folder) const {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

}  // namespace stet
