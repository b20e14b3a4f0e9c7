#include "text/bpe.h"

#include <algorithm>
#include <queue>

#include "base/error.h"

namespace stet {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

struct Symbol {
  TokenId token;  // -1: merged into its left neighbour
  uint32_t left;  // index of the neighbour, kNone at the end
  uint32_t right;
};

struct Candidate {
  uint32_t rank;
  uint32_t at;  // the left symbol
  TokenId result;

  // For std::priority_queue, whose top is the largest: lowest rank first, then the leftmost.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

class Merger {
 public:
  Merger(const Vocabulary& vocab, std::string_view piece, MissingByte missing) : vocab_(vocab) {
    symbols_.reserve(piece.size());
    for (char c : piece) {
      const auto byte = static_cast<uint8_t>(c);
      const TokenId token = vocab.byte_token[byte];
      if (token >= 0) {
        const auto at = static_cast<uint32_t>(symbols_.size());
        symbols_.push_back({token, at == 0 ? kNone : at - 1, at + 1});
      } else if (missing == MissingByte::kRefuse) {
        fail(Code::kInput,
             "the text holds byte 0x{:02X}, for which this vocabulary has no token; remove it, or check "
             "that the text is UTF-8",
             byte);
      }
    }
    if (!symbols_.empty()) symbols_.back().right = kNone;
  }

  void run() {
    for (uint32_t at = 0; at < symbols_.size(); ++at) consider(at);
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (is_current(best)) join(best);
    }
  }

  void append_to(std::vector<TokenId>& out) const {
    for (uint32_t at = symbols_.empty() ? kNone : 0; at != kNone; at = symbols_[at].right)
      out.push_back(symbols_[at].token);
  }

 private:
  const Merge* merge_at(uint32_t at) const {
    const uint32_t right = symbols_[at].right;
    if (right == kNone) return nullptr;
    const auto found = vocab_.merges.find(Vocabulary::pair_key(symbols_[at].token, symbols_[right].token));
    return found == vocab_.merges.end() ? nullptr : &found->second;
  }

  void consider(uint32_t at) {
    if (const Merge* merge = merge_at(at)) queue_.push({merge->rank, at, merge->result});
  }

  // A candidate is stale once one of its two symbols was part of another merge.
  bool is_current(const Candidate& candidate) const {
    if (symbols_[candidate.at].token < 0) return false;
    const Merge* merge = merge_at(candidate.at);
    return merge != nullptr && merge->rank == candidate.rank;
  }

  void join(const Candidate& best) {
    Symbol& left = symbols_[best.at];
    Symbol& right = symbols_[left.right];
    left.token = best.result;
    left.right = right.right;
    right.token = -1;
    if (left.right != kNone) symbols_[left.right].left = best.at;
    if (left.left != kNone) consider(left.left);
    consider(best.at);
  }

  const Vocabulary& vocab_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

void bpe_encode(const Vocabulary& vocab, std::string_view piece, MissingByte missing, std::vector<TokenId>& out) {
  if (piece.size() >= kNone)
    fail(Code::kUsage, "a run of {} bytes without a break is too long to tokenise", piece.size());
  Merger merger(vocab, piece, missing);
  merger.run();
  merger.append_to(out);
}

}  // namespace stet
