// A byte-level BPE vocabulary as a GGUF file states it, checked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/pretokenizer.h"
#include "weights/tensor_source.h"

namespace stet {

using TokenId = int32_t;

// tokenizer.ggml.token_type. UNKNOWN tokens are never produced; BYTE tokens do not exist in byte-level vocabularies.
enum class TokenType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5 };

struct Token {
  std::string bytes;  // what it stands for in the text
  TokenType type = TokenType::kNormal;
};

// Joins two neighbouring tokens. Lower ranks go first.
struct Merge {
  uint32_t rank;
  TokenId result;
};

struct Vocabulary {
  std::vector<Token> tokens;
  std::unordered_map<std::string_view, TokenId> normal;  // bytes of the NORMAL tokens; views into `tokens`
  std::array<TokenId, 256> byte_token{};                 // -1 where no token stands for that byte alone
  std::unordered_map<uint64_t, Merge> merges;            // key: pair_key()
  PreTokenizerSpec pre{};
  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  bool add_bos = false;

  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // `normal` stays valid: moving a vector keeps its elements where they are
  Vocabulary& operator=(Vocabulary&&) = default;

  static uint64_t pair_key(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
};

// Reads the keys tokenizer.ggml.*. Arrays are checked against each other: types as many as tokens; no two NORMAL tokens
// alike; every merge made of NORMAL tokens, its result too, no pair twice; every special id in range. Throws
// Error(kInput) for a file that contradicts itself and Error(kUnsupported) for kinds of tokenizer that stet lacks.
Vocabulary read_vocabulary(const Metadata& metadata);

// A vocabulary for models without text: token i stands for byte i, tokens above 255 for "<i>", and there are no merges
// and no special tokens. Throws Error(kUsage) unless 0 < size < 2^31.
Vocabulary synthetic_vocabulary(uint64_t size);

}  // namespace stet
