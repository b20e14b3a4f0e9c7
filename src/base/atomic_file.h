// A file that appears under its name complete and on disk, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stet {

class AtomicFile {
 public:
  // Opens a temporary file beside path. expected_bytes > 0: refuses at once when the disk has less room.
  // Throws Error(kResource) when the folder is missing, cannot be written, or is too full; Error(kUsage) when path
  // exists and overwrite is not set, or is no regular file.
  struct Options {
    uint64_t expected_bytes = 0;
    bool overwrite = false;
    unsigned mode = 0666;  // before the umask
  };
  AtomicFile(const std::string& path, const Options& options);
  ~AtomicFile();  // without commit(): removes the temporary file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws Error(kResource) with the numbers when the disk is full or fails.
  void write(std::span<const std::byte> bytes);
  // Flushes, syncs, renames and syncs the folder.
  void commit();
  uint64_t written() const { return written_; }

 private:
  void flush();
  [[noreturn]] void fail_to_write(int error) const;

  std::string path_;
  std::string temporary_;
  Options options_;
  int fd_ = -1;
  uint64_t written_ = 0;  // bytes handed to write()
  uint64_t flushed_ = 0;  // bytes that reached the file
  std::vector<std::byte> buffer_;
};

}  // namespace stet
