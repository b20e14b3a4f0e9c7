// Where the chunks of a key list begin, without the list: `window` keys, the first of them at slot `phase` of a chunk, and `behind` keys,
// the first of them at slot `behind_phase`. A chunk without keys is none; one that has keys of both is one (union_attend.h).
#pragma once

#include <cstdint>

#include "base/contract.h"
#include "kernels/attend/kv_layout.h"

namespace stet {

constexpr uint32_t kRoundedChunk = 64;  // slots, in the mode of a checkpoint

struct UnionList {
  uint32_t size = kSlots;  // slots of a chunk
  uint32_t window = 0, phase = 0;
  uint32_t behind = 0, behind_phase = 0;
  bool shared = false;  // the last chunk of the window goes on behind it

  // first: position of the window's first key; slots: of the window, those that are not there yet included.
  STET_BOTH static UnionList of(bool rounded, uint32_t first, uint32_t window, uint32_t slots, uint32_t behind) {
    UnionList list;
    list.window = window;
    list.behind = behind;
    if (rounded) {
      list.size = kRoundedChunk;
      list.behind_phase = slots % kRoundedChunk;
      list.shared = window != 0 && behind != 0 && (window - 1) / kRoundedChunk == slots / kRoundedChunk;
    } else {
      list.phase = first % kSlots;
    }
    return list;
  }
  STET_BOTH uint32_t keys() const { return window + behind; }
  STET_BOTH uint32_t window_chunks() const { return window == 0 ? 0 : (phase + window + size - 1) / size; }
  STET_BOTH uint32_t chunks() const {
    const uint32_t more = behind == 0 ? 0 : (behind_phase + behind + size - 1) / size;
    return window_chunks() + more - (shared ? 1 : 0);
  }
  // The first key of chunk c; of the chunk behind the last: keys().
  STET_BOTH uint32_t begin(uint32_t c) const {
    const uint32_t before = window_chunks();
    if (c < before) return c == 0 ? 0 : c * size - phase;
    const uint32_t k = c - before + (shared ? 1 : 0), at = k == 0 ? 0 : k * size - behind_phase;
    return window + (at < behind ? at : behind);
  }
};

}  // namespace stet
