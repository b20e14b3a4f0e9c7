// The alphabet of byte-level BPE: each byte is written as one printable character, so that vocabularies and merges are
// plain text. Bytes 0x21..0x7E, 0xA1..0xAC and 0xAE..0xFF stand for themselves; the other 68 are, in order, U+0100 on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stet {

// The character that stands for a byte.
uint32_t byte_to_alphabet(uint8_t byte);

// The bytes that `text` stands for, or nothing when a character of it is outside the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

// `bytes` written in the alphabet, as UTF-8.
std::string bytes_to_alphabet(std::string_view bytes);

}  // namespace stet
