// Single tokens as text, for log-probabilities.
#pragma once

#include <string>

#include "stet/engine.h"

namespace stet {

// The exact bytes of a token, a control token's included; empty for a model without a vocabulary.
std::string token_bytes(const Engine& engine, int32_t token);

// As text: what is no valid UTF-8, because a character spans several tokens, as OpenAI writes it: "bytes:\xe2\x82".
// Without a vocabulary "token_id:17", as vLLM writes it.
std::string token_text(const Engine& engine, int32_t token);

}  // namespace stet
