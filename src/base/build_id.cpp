#include "base/build_id.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace stet {
namespace {

std::string hash_executable() {
  try {
    const MappedFile file("/proc/self/exe");
    return fmt::format("{:016x}", xxh3(file.bytes().data(), file.bytes().size()));
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
