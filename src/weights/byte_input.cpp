#include "weights/byte_input.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace stet {

ByteInput ByteInput::of(const MappedFile& file) {
  return {file.path(), file.size(), [&file](uint64_t offset, std::span<std::byte> out) { file.read(offset, out); }};
}

ByteInput ByteInput::of(std::span<const std::byte> bytes, std::string name) {
  return {std::move(name), bytes.size(), [bytes](uint64_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), bytes.data() + offset, out.size());
          }};
}

std::string file_identity(const MappedFile& file) {
  const struct stat& s = file.status();
  char* real = ::realpath(file.path().c_str(), nullptr);
  const std::string path = real != nullptr ? real : file.path();
  std::free(real);
  return fmt::format("{} device {} inode {} bytes {} modified {}.{:09} changed {}.{:09}", path, s.st_dev, s.st_ino,
                     s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

}  // namespace stet
