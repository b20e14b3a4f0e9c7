#include "engine/file_hashes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace stet {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

std::string hash_content(const MappedFile& file) {
  Sha256 hash;
  std::vector<std::byte> piece(kPiece);
  for (uint64_t at = 0; at < file.size(); at += kPiece) {
    const auto part = std::span(piece).first(std::min<uint64_t>(kPiece, file.size() - at));
    file.read(at, part);
    hash.update(part.data(), part.size());
  }
  return hash.hex();
}

}  // namespace

FileHash file_hash(const std::string& path) {
  using Key = std::tuple<std::string, ino_t, off_t, time_t, long>;
  static std::mutex mutex;
  static std::map<Key, FileHash> known;
  try {
    const MappedFile file(path);
    const struct stat& s = file.status();
    const Key key{path, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
    const std::lock_guard lock(mutex);
    const auto it = known.find(key);
    if (it != known.end()) return it->second;
    return known[key] = {file.size(), hash_content(file)};
  } catch (const Error&) {
    return {};
  }
}

std::vector<std::string> code_files_of(std::string_view maps) {
  std::vector<std::string> files;
  std::istringstream lines{std::string(maps)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string addresses, rights, offset, device, inode, path;
    fields >> addresses >> rights >> offset >> device >> inode >> std::ws;
    std::getline(fields, path);
    if (rights.find('x') == std::string::npos || !path.starts_with('/')) continue;
    files.push_back(path);
  }
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    return std::pair(file_name(a), a) < std::pair(file_name(b), b);
  });
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

std::vector<std::string> mapped_code_files() {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream text;
  text << maps.rdbuf();
  std::vector<std::string> files = code_files_of(text.str());
  std::array<char, PATH_MAX> self = {};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) > 0)
    std::stable_partition(files.begin(), files.end(), [&](const std::string& f) { return f == self.data(); });
  return files;
}

std::string file_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace stet
