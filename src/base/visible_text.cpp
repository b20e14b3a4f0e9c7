#include "base/visible_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace stet {
namespace {

struct Decoded {
  uint32_t code;
  size_t bytes;  // 0: not valid UTF-8 here
};

// The shortest-form UTF-8 character at the start of text (RFC 3629: no surrogates, nothing above U+10FFFF).
Decoded decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {0, 0};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {0, 0};
  return {code, bytes};
}

bool reorders_or_breaks(uint32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0xfeff;
}

}  // namespace

std::string visible_text(std::string_view text, bool keep_layout) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = decode_utf8(text);
    if (bytes == 0 || (code < 0x20 && code != '\n' && code != '\t') || code == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if ((code == '\n' || code == '\t') && !keep_layout) {
      out += code == '\n' ? "\\n" : "\\t";
    } else if ((code >= 0x80 && code < 0xa0) || reorders_or_breaks(code)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

std::string shown_name(std::string_view text) {
  return text.size() <= 80 ? visible_text(text) : visible_text(text.substr(0, 77)) + "...";
}

}  // namespace stet
