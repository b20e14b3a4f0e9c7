// Which files a process runs from and reads, and what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

struct FileHash {
  uint64_t bytes = 0;
  std::string sha256;  // empty: the file could not be read
};

// Reads the whole file, unless this process did so before and size, times and inode are the same.
FileHash file_hash(const std::string& path);

// Files mapped as code into this process, this program first, then by name. Empty where /proc is not mounted.
std::vector<std::string> mapped_code_files();
// The same for the text of /proc/PID/maps.
std::vector<std::string> code_files_of(std::string_view maps);

// What stands behind the last slash.
std::string file_name(const std::string& path);

}  // namespace stet
