#include "device/cache_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/xdg.h"

namespace stet {
namespace {

constexpr const char* kWayOut = "use --pack none, or set XDG_CACHE_HOME to a folder of yours";
constexpr const char* kLockSuffix = ".lock";

// Makes every missing folder of a path, for the user alone.
void make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      struct stat status {};
      // A folder that is there but above which we may not write says so before it says that it exists.
      if (stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        fail(Code::kResource, "cannot make the cache folder {}: {}: {}; {}", path, part, std::strerror(error), kWayOut);
    }
    if (slash == std::string::npos) return;
  }
}

// What is the same for the folder and for files in it.
void check_owner_and_mode(const std::string& path, const struct stat& status) {
  if (status.st_uid != geteuid()) {
    fail(Code::kResource, "{} belongs to user {}, and this is user {}: it is not trusted; remove it, or {}", path,
         status.st_uid, geteuid(), kWayOut);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    fail(Code::kResource,
         "{} can be written by others (mode {:04o}): it is not trusted; remove it, or after a look at it run chmod "
         "go-w {}",
         path, status.st_mode & 07777, path);
  }
}

void check_name(const std::string& name) {
  STET_CHECK(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos);
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string CacheDir::default_path() {
  const std::string cache = user_paths().cache;
  if (cache.empty())
    fail(Code::kResource,
         "no cache folder is known: neither XDG_CACHE_HOME nor HOME is an absolute path; set one, or use --pack none");
  return cache + "/stet";
}

CacheDir::CacheDir(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  folder_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder_ < 0 && errno == ENOENT) {
    make_folders(path_);
    folder_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (folder_ < 0) {
    const int error = errno;
    struct stat status {};
    const bool there = lstat(path_.c_str(), &status) == 0;
    if (there && S_ISLNK(status.st_mode))
      fail(Code::kResource, "the cache folder {} is a symbolic link: it is not trusted; remove it, or {}", path_,
           kWayOut);
    if (there && !S_ISDIR(status.st_mode))
      fail(Code::kResource, "the cache folder {} is not a folder; remove it, or {}", path_, kWayOut);
    fail(Code::kResource, "cannot open the cache folder {}: {}; {}", path_, std::strerror(error), kWayOut);
  }
  try {
    check_folder();
  } catch (...) {
    close(folder_);
    throw;
  }
}

CacheDir::~CacheDir() { close(folder_); }

void CacheDir::check_folder() const {
  struct stat status {};
  STET_CHECK(fstat(folder_, &status) == 0);
  check_owner_and_mode(path_, status);
}

std::string CacheDir::path_of(const std::string& name) const {
  check_name(name);
  return path_ + "/" + name;
}

bool CacheDir::has(const std::string& name) const {
  const std::string path = path_of(name);
  struct stat status {};
  if (fstatat(folder_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    fail(Code::kResource, "cannot look at {}: {}; {}", path, std::strerror(errno), kWayOut);
  }
  if (!S_ISREG(status.st_mode))
    fail(Code::kResource, "{} is a link or no regular file: it is not trusted; remove it, or {}", path, kWayOut);
  check_owner_and_mode(path, status);
  return true;
}

void CacheDir::require_writable() const {
  if (faccessat(folder_, ".", W_OK | X_OK, AT_EACCESS) != 0)
    fail(Code::kResource, "nothing can be written to the cache folder {}: {}; {}", path_, std::strerror(errno),
         kWayOut);
}

uint64_t CacheDir::free_bytes() const {
  struct statvfs disk {};
  if (fstatvfs(folder_, &disk) != 0)
    fail(Code::kResource, "cannot tell the free space of {}: {}; {}", path_, std::strerror(errno), kWayOut);
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

std::vector<CacheEntry> CacheDir::list() const {
  std::vector<CacheEntry> entries;
  // Its own descriptor: a DIR owns and moves the one that it reads.
  const int fd = openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd >= 0 ? fdopendir(fd) : nullptr, closedir);
  if (stream == nullptr) {
    const int error = errno;
    if (fd >= 0) close(fd);
    fail(Code::kResource, "cannot list the cache folder {}: {}; check its permissions", path_, std::strerror(error));
  }
  while (const dirent* entry = readdir(stream.get())) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (ends_with(name, kLockSuffix) || fstatat(folder_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(status.st_mode))
      entries.push_back({name, static_cast<uint64_t>(status.st_size), static_cast<int64_t>(status.st_mtime)});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

void CacheDir::remove(const std::string& name) const {
  STET_CHECK(!name.empty() && name.find('/') == std::string::npos);
  if (unlinkat(folder_, name.c_str(), 0) != 0 && errno != ENOENT)
    fail(Code::kResource, "cannot remove {}/{}: {}; check the permissions of the folder", path_, name,
         std::strerror(errno));
}

CacheLock CacheDir::lock(const std::string& name, const std::function<bool(double seconds)>& keep_waiting) const {
  check_name(name);
  const std::string lock_name = name + kLockSuffix;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  bool waited = false;
  for (;;) {
    const int file = openat(folder_, lock_name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
      fail(Code::kResource, "cannot make the lock {}/{}: {}; {}", path_, lock_name, std::strerror(errno), kWayOut);
    }
    const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    const int error = locked ? 0 : errno;
    // The last holder removes the file: a lock counts only while the file is still the one of that name.
    struct stat mine {
    }, named{};
    const bool current = locked && fstat(file, &mine) == 0 &&
                         fstatat(folder_, lock_name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
    if (current) return CacheLock(folder_, file, lock_name);
    close(file);
    if (locked) continue;
    if (error != EWOULDBLOCK && error != EINTR)
      fail(Code::kResource, "cannot lock {}/{}: {}; {}", path_, lock_name, std::strerror(error), kWayOut);
    const double seconds = waited ? std::chrono::duration<double>(Clock::now() - start).count() : 0.0;
    waited = true;
    if (!keep_waiting(seconds)) fail(Code::kCancelled, "stopped while another process held {}/{}", path_, lock_name);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

CacheLock::CacheLock(int folder, int file, std::string name)
    : folder_(fcntl(folder, F_DUPFD_CLOEXEC, 0)), file_(file), name_(std::move(name)) {}

CacheLock::CacheLock(CacheLock&& other) noexcept
    : folder_(std::exchange(other.folder_, -1)), file_(std::exchange(other.file_, -1)), name_(std::move(other.name_)) {}

CacheLock::~CacheLock() {
  if (file_ < 0) return;
  // Removed while it is still held: whoever opened it meanwhile notices that the name is gone.
  if (folder_ >= 0) {
    unlinkat(folder_, name_.c_str(), 0);
    close(folder_);
  }
  close(file_);
}

}  // namespace stet
