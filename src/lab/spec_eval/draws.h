// Draws from a counter-based generator: what is drawn depends on the key and on how many were drawn before under it,
// and on nothing else, so a pack is a function of its seed.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/philox.h"

namespace stet {

class Draws {
 public:
  // what: names the use ("pack A"), so that two uses of one seed share nothing.
  Draws(uint64_t seed, std::string_view what) : key_(xxh3(what.data(), what.size(), seed)) {}

  uint32_t word() {
    if (used_ == 4) {
      words_ = philox4x32({{static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0, 0}},
                          static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32));
      ++counter_;
      used_ = 0;
    }
    return words_.word[used_++];
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((uint64_t{word()} * n) >> 32); }
  uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }
  std::string_view of(std::span<const std::string_view> words) {
    return words[below(static_cast<uint32_t>(words.size()))];
  }

 private:
  uint64_t key_, counter_ = 0;
  Philox words_{};
  int used_ = 4;
};

// A text with drawn parts: DrawnText{"{} {}", draws.of(kNouns), draws.of(kVerbs)}.text. Braces draw from left to right;
// the arguments of a call are evaluated in an order that each compiler chooses, and one seed would give two packs.
struct DrawnText {
  template <typename... Parts>
  DrawnText(fmt::format_string<Parts...> form, Parts&&... parts)
      : text(fmt::format(form, std::forward<Parts>(parts)...)) {}

  std::string text;
};

}  // namespace stet
