#include "base/build_id.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace stet {
namespace {

// A piece at a time, each hash the seed of the next: debug information and device code are most of the file, and would stay resident.
std::string hash_executable() {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  try {
    const MappedFile file("/proc/self/exe");
    uint64_t hash = 0;
    for (uint64_t at = 0; at < file.size(); at += kPiece) {
      const uint64_t bytes = std::min(kPiece, file.size() - at);
      hash = xxh3(file.bytes().data() + at, bytes, hash);
      file.release(at, bytes);
    }
    return fmt::format("{:016x}", hash);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

const std::string& build_id() {
  static const std::string id = hash_executable();
  return id;
}

}  // namespace stet
