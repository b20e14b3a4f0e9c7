// The folder in which stet keeps what it can make again: packed weights and downloaded models. Nobody but its owner may
// be able to put a file there, because packs are mapped and trusted: what others own or can write, and every link, is
// refused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stet {

// Holds the lock of one name, against other processes and other threads, until it is destroyed.
class CacheLock {
 public:
  CacheLock(CacheLock&& other) noexcept;
  CacheLock& operator=(CacheLock&&) = delete;
  ~CacheLock();

 private:
  friend class CacheDir;
  CacheLock(int folder, int file, std::string name);

  int folder_ = -1;
  int file_ = -1;
  std::string name_;
};

// A file of the cache.
struct CacheEntry {
  std::string name;
  uint64_t bytes = 0;
  int64_t modified_s = 0;  // seconds since 1970
};

// Names are those of files directly in the folder: a "/" in one, or a dot at its start, is an internal error.
class CacheDir {
 public:
  // Below the user's cache folder (base/xdg.h). Throws Error(kResource) when no such folder is known.
  static std::string default_path();

  // Opens the folder; makes it, mode 0700, where it is missing. Throws Error(kResource) that says how to mend it when
  // it cannot be made, is a link or no folder, belongs to somebody else, or can be written by group or others.
  explicit CacheDir(const std::string& path);
  ~CacheDir();
  CacheDir(const CacheDir&) = delete;
  CacheDir& operator=(const CacheDir&) = delete;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const;

  // Whether a file of this name is there. Throws Error(kResource) when it is a link or no regular file, belongs to
  // somebody else, or can be written by group or others. A file that passed stays what it is: only the owner can
  // replace it.
  bool has(const std::string& name) const;

  // Throws Error(kResource) that names --pack none when nothing can be written here.
  void require_writable() const;

  // Bytes that an unprivileged process may still write to the folder's disk.
  uint64_t free_bytes() const;

  // All regular files but locks, sorted by name; unfinished temporary files of programs that died are among them.
  std::vector<CacheEntry> list() const;
  // Removes a file that list() named. A file that is gone already is no error.
  void remove(const std::string& name) const;

  // Waits for the lock of a name. While another holder has it, keep_waiting(seconds so far) is called, first with 0 and
  // then about twenty times a second; when it returns false, Error(kCancelled) is thrown.
  CacheLock lock(const std::string& name, const std::function<bool(double seconds)>& keep_waiting) const;

 private:
  void check_folder() const;

  std::string path_;
  int folder_ = -1;
};

}  // namespace stet
