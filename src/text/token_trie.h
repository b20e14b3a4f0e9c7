// Finds the longest added token that begins at a place of the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stet {

class TokenTrie {
 public:
  struct Match {
    int32_t id = -1;  // -1: none
    size_t bytes = 0;
  };

  TokenTrie() : ids_(1, -1) {}

  bool empty() const { return ids_.size() == 1; }

  // A text that is there already keeps its first id.
  void add(std::string_view text, int32_t id) {
    uint32_t node = 0;
    for (char c : text) {
      const auto [edge, added] = edges_.try_emplace(key(node, c), static_cast<uint32_t>(ids_.size()));
      if (added) ids_.push_back(-1);
      node = edge->second;
    }
    if (node != 0 && ids_[node] < 0) ids_[node] = id;
  }

  // The longest token that `text` begins with among those for which accept(id, bytes) is true.
  template <typename Accept>
  Match longest(std::string_view text, Accept&& accept) const {
    Match best;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto edge = edges_.find(key(node, text[i]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ids_[node] >= 0 && accept(ids_[node], i + 1)) best = {ids_[node], i + 1};
    }
    return best;
  }

 private:
  static uint64_t key(uint32_t node, char c) { return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(c); }

  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<int32_t> ids_;  // of the token that ends at a node, or -1
};

}  // namespace stet
