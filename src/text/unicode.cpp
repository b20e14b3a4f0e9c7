#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace stet {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
  uint8_t classes;
};

// Characters that Unicode 15.1 and 16.0 added to 15.0, in order.
constexpr Range kAdditions[] = {
    {0x897, 0x897, kMark},
    {0x1B4E, 0x1B4F, kPunctuation},
    {0x1B7F, 0x1B7F, kPunctuation},
    {0x1C89, 0x1C8A, kLetter},
    {0x2427, 0x2429, kSymbol},
    {0x2FFC, 0x2FFF, kSymbol},
    {0x31E4, 0x31E5, kSymbol},
    {0x31EF, 0x31EF, kSymbol},
    {0xA7CB, 0xA7CD, kLetter},
    {0xA7DA, 0xA7DC, kLetter},
    {0x105C0, 0x105F3, kLetter},
    {0x10D40, 0x10D49, kNumber},
    {0x10D4A, 0x10D65, kLetter},
    {0x10D69, 0x10D6D, kMark},
    {0x10D6E, 0x10D6E, kPunctuation},
    {0x10D6F, 0x10D85, kLetter},
    {0x10D8E, 0x10D8F, kSymbol},
    {0x10EC2, 0x10EC4, kLetter},
    {0x10EFC, 0x10EFC, kMark},
    {0x11380, 0x11389, kLetter},
    {0x1138B, 0x1138B, kLetter},
    {0x1138E, 0x1138E, kLetter},
    {0x11390, 0x113B5, kLetter},
    {0x113B7, 0x113B7, kLetter},
    {0x113B8, 0x113C0, kMark},
    {0x113C2, 0x113C2, kMark},
    {0x113C5, 0x113C5, kMark},
    {0x113C7, 0x113CA, kMark},
    {0x113CC, 0x113D0, kMark},
    {0x113D1, 0x113D1, kLetter},
    {0x113D2, 0x113D2, kMark},
    {0x113D3, 0x113D3, kLetter},
    {0x113D4, 0x113D5, kPunctuation},
    {0x113D7, 0x113D8, kPunctuation},
    {0x113E1, 0x113E2, kMark},
    {0x116D0, 0x116E3, kNumber},
    {0x11BC0, 0x11BE0, kLetter},
    {0x11BE1, 0x11BE1, kPunctuation},
    {0x11BF0, 0x11BF9, kNumber},
    {0x11F5A, 0x11F5A, kMark},
    {0x13460, 0x143FA, kLetter},
    {0x16100, 0x1611D, kLetter},
    {0x1611E, 0x1612F, kMark},
    {0x16130, 0x16139, kNumber},
    {0x16D40, 0x16D6C, kLetter},
    {0x16D6D, 0x16D6F, kPunctuation},
    {0x16D70, 0x16D79, kNumber},
    {0x18CFF, 0x18CFF, kLetter},
    {0x1CC00, 0x1CCEF, kSymbol},
    {0x1CCF0, 0x1CCF9, kNumber},
    {0x1CD00, 0x1CEB3, kSymbol},
    {0x1E5D0, 0x1E5ED, kLetter},
    {0x1E5EE, 0x1E5EF, kMark},
    {0x1E5F0, 0x1E5F0, kLetter},
    {0x1E5F1, 0x1E5FA, kNumber},
    {0x1E5FF, 0x1E5FF, kPunctuation},
    {0x1F8B2, 0x1F8BB, kSymbol},
    {0x1F8C0, 0x1F8C1, kSymbol},
    {0x1FA89, 0x1FA89, kSymbol},
    {0x1FA8F, 0x1FA8F, kSymbol},
    {0x1FABE, 0x1FABE, kSymbol},
    {0x1FAC6, 0x1FAC6, kSymbol},
    {0x1FADC, 0x1FADC, kSymbol},
    {0x1FADF, 0x1FADF, kSymbol},
    {0x1FAE9, 0x1FAE9, kSymbol},
    {0x1FBCB, 0x1FBEF, kSymbol},
    {0x2EBF0, 0x2EE5D, kLetter},
};

struct SequenceShape {
  uint8_t bytes;       // 0: no character begins with this byte
  uint8_t second_low;  // bounds of the second byte: they exclude overlong forms, surrogates and values above U+10FFFF
  uint8_t second_high;
};

SequenceShape shape_of(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead < 0xF0) {
    return {3, static_cast<uint8_t>(lead == 0xE0 ? 0xA0 : 0x80), static_cast<uint8_t>(lead == 0xED ? 0x9F : 0xBF)};
  }
  if (lead < 0xF5) {
    return {4, static_cast<uint8_t>(lead == 0xF0 ? 0x90 : 0x80), static_cast<uint8_t>(lead == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

// How many bytes of `text` fit the character that its first byte announces (1 when it announces none).
size_t matching_prefix(std::string_view text, SequenceShape shape) {
  size_t n = 1;
  for (; n < shape.bytes && n < text.size(); ++n) {
    const auto byte = static_cast<uint8_t>(text[n]);
    const bool fits = n == 1 ? byte >= shape.second_low && byte <= shape.second_high : (byte & 0xC0) == 0x80;
    if (!fits) break;
  }
  return n;
}

uint8_t classes_of_category(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return 0;
  }
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const SequenceShape shape = shape_of(lead);
  if (shape.bytes == 0 || matching_prefix(text, shape) != shape.bytes) return {kReplacementCharacter, 1, false};
  uint32_t value = lead & (0x7Fu >> shape.bytes);
  for (size_t i = 1; i < shape.bytes; ++i) value = value << 6 | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  return {value, shape.bytes, true};
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const SequenceShape shape = shape_of(static_cast<uint8_t>(tail[0]));
    if (shape.bytes > back && matching_prefix(tail, shape) == back) return back;
  }
  return 0;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    if (!c.valid) return false;
    at += c.bytes;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    if (c.valid) {
      out.append(text.substr(at, c.bytes));
      at += c.bytes;
    } else {
      append_utf8(out, kReplacementCharacter);
      at += matching_prefix(text.substr(at), shape_of(static_cast<uint8_t>(text[at])));
    }
  }
  return out;
}

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

uint8_t char_classes(uint32_t c) {
  const auto after = std::upper_bound(std::begin(kAdditions), std::end(kAdditions), c,
                                      [](uint32_t value, const Range& r) { return value < r.first; });
  if (after != std::begin(kAdditions) && c <= std::prev(after)->last) return std::prev(after)->classes;
  const uint8_t classes = classes_of_category(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
  return static_cast<uint8_t>(classes | (is_white_space(c) ? kWhitespace : 0));
}

uint32_t to_upper(uint32_t c) { return static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
uint32_t to_lower(uint32_t c) { return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }

}  // namespace stet
