// Reads numbers and strings in sequence from a ByteInput, never past its end.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/visible_text.h"
#include "weights/gguf_parse.h"

namespace stet {

class GgufCursor {
 public:
  explicit GgufCursor(const ByteInput& input) : input_(input) {}

  const std::string& file() const { return input_.name; }
  uint64_t position() const { return position_; }
  uint64_t left() const { return input_.size - position_; }

  template <typename T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }

  // Throws when it is longer than limit_bytes.
  std::string string(uint64_t limit_bytes, std::string_view what) {
    const uint64_t bytes = number<uint64_t>(what);
    if (bytes > left()) fail_truncated(bytes, what);
    if (bytes > limit_bytes)
      fail(Code::kInput, "{}: damaged: {} at byte {} has {} bytes; at most {} are sound", file(), what, position_,
           bytes, limit_bytes);
    std::string text(bytes, '\0');
    if (bytes <= kWindowBytes) {
      std::memcpy(text.data(), take(bytes, what), bytes);
    } else {
      input_.read(position_, std::as_writable_bytes(std::span(text)));
      position_ += bytes;
    }
    return text;
  }

  [[noreturn]] void fail_truncated(uint64_t bytes, std::string_view what) const {
    fail(Code::kInput,
         "{}: truncated or damaged: {} at byte {} needs {} bytes, and the file ends at byte {}; fetch it again", file(),
         what, position_, bytes, input_.size);
  }

 private:
  static constexpr uint64_t kWindowBytes = uint64_t{1} << 18;

  const std::byte* take(uint64_t bytes, std::string_view what) {
    if (bytes > left()) fail_truncated(bytes, what);
    if (position_ + bytes > window_start_ + window_.size()) {
      window_.resize(std::min(kWindowBytes, left()));
      input_.read(position_, window_);
      window_start_ = position_;
    }
    const std::byte* data = window_.data() + (position_ - window_start_);
    position_ += bytes;
    return data;
  }

  const ByteInput& input_;
  uint64_t position_ = 0;
  uint64_t window_start_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace stet
