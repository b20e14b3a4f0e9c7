#include "text/byte_alphabet.h"

#include <array>

#include "text/unicode.h"

namespace stet {
namespace {

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Tables {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, 512> byte{};
};

constexpr Tables make_tables() {
  Tables t;
  for (int16_t& b : t.byte) b = -1;
  uint16_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    t.character[b] = stands_for_itself(b) ? static_cast<uint16_t>(b) : next++;
    t.byte[t.character[b]] = static_cast<int16_t>(b);
  }
  return t;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t byte_to_alphabet(uint8_t byte) { return kTables.character[byte]; }

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    if (!c.valid || c.value >= kTables.byte.size() || kTables.byte[c.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(kTables.byte[c.value]));
    at += c.bytes;
  }
  return out;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string out;
  for (char b : bytes) append_utf8(out, byte_to_alphabet(static_cast<uint8_t>(b)));
  return out;
}

}  // namespace stet
