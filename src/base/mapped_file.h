// A file mapped for reading, and what happens when it shrinks or its disk fails while it is mapped.
//
// A page of a mapping that can no longer be read raises SIGBUS in whichever thread touches it. Two ways to meet that:
//   - read() copies under a guard and throws Error(kInput);
//   - code that computes on the mapped bytes directly (packed weights) cannot unwind from the middle of a kernel: the
//   process
//     prints one line that names the file and leaves with kExitInput.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stet {

// The exit code of an input error (docs/cli.md), for the one place below the command line that has to leave by itself.
inline constexpr int kExitInput = 3;

class MappedFile {
 public:
  // Maps a whole regular file, read-only. Throws Error(kInput) when there is no such file or it is a directory or
  // another special file, Error(kResource) when permission or address space is missing. An empty file maps to no bytes.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return static_cast<uint64_t>(stat_.st_size); }
  // The file's status when it was mapped.
  const struct stat& status() const { return stat_; }
  // The mapping itself. A failing page ends the process, as said above.
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size()}; }

  // Copies bytes [offset, offset + out.size()). Throws Error(kInput) when a page cannot be read, or when the file's
  // size or modification time is no longer what it was (bytes past the end of a shrunken file read as zeros within its
  // last page). Safe from several threads.
  void read(uint64_t offset, std::span<std::byte> out) const;

  // Throws Error(kInput) when the file on disk is no longer the one that was mapped.
  void check_unchanged() const;

  // Tells the system that these bytes are needed soon, or no longer.
  void will_need(uint64_t offset, uint64_t bytes) const;
  void release(uint64_t offset, uint64_t bytes) const;

 private:
  void advise(uint64_t offset, uint64_t bytes, int advice) const;
  void close();

  std::string path_;
  struct stat stat_ = {};
  int fd_ = -1;
  void* data_ = nullptr;
  void* range_ = nullptr;  // the entry that names the file to the signal handler
};

// memcpy from memory whose pages may fail; false when one did, and then dst is partly written.
bool guarded_copy(void* dst, const void* src, size_t bytes);

}  // namespace stet
