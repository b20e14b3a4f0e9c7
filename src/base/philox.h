// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011: four words that depend on a counter and a key, and on nothing that was drawn before. Internal
// linkage, because the header is compiled once per instruction set.
#pragma once

#include <cstdint>

namespace stet {

struct Philox {
  uint32_t word[4];
};

static inline constexpr Philox philox4x32(Philox counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace stet
