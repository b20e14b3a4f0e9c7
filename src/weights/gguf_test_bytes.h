// GGUF bytes by hand, sound or not, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

class GgufBytes {
 public:
  template <typename T>
  GgufBytes& number(T value) {
    const auto* data = reinterpret_cast<const char*>(&value);
    bytes_.append(data, sizeof(T));
    return *this;
  }
  GgufBytes& u32(uint32_t v) { return number(v); }
  GgufBytes& u64(uint64_t v) { return number(v); }
  GgufBytes& raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  GgufBytes& string(std::string_view text) { return u64(text.size()).raw(text); }
  GgufBytes& header(uint64_t tensors, uint64_t values, uint32_t version = 3) {
    return raw("GGUF").u32(version).u64(tensors).u64(values);
  }
  GgufBytes& key_u32(std::string_view key, uint32_t value) { return string(key).u32(4).u32(value); }
  GgufBytes& key_string(std::string_view key, std::string_view value) { return string(key).u32(8).string(value); }
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type, uint64_t offset) {
    string(name).u32(static_cast<uint32_t>(shape.size()));
    for (const uint64_t n : shape) u64(n);
    return u32(type).u64(offset);
  }
  // Zeros up to the next multiple, then some bytes of data.
  GgufBytes& data(size_t bytes, size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    for (size_t i = 0; i < bytes; ++i) bytes_ += static_cast<char>(i * 11 + 1);
    return *this;
  }

  const std::string& text() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

}  // namespace stet
