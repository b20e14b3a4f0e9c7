#include "server/api/token_text.h"

#include <fmt/format.h>

#include "text/unicode.h"

namespace stet {

std::string token_bytes(const Engine& engine, int32_t token) {
  return engine.has_vocabulary() ? engine.detokenize({&token, 1}, true) : std::string();
}

std::string token_text(const Engine& engine, int32_t token) {
  if (!engine.has_vocabulary()) return fmt::format("token_id:{}", token);
  std::string bytes = token_bytes(engine, token);
  if (is_valid_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace stet
