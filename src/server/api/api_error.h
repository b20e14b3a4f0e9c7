// What the API answers when it does not answer: OpenAI's error object and its HTTP status.
#pragma once

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/visible_text.h"
#include "server/http/exchange.h"

namespace stet {

// Control characters of a message, which may quote what a client wrote, are made visible: a zero byte would end it.
struct ApiError : std::runtime_error {
  ApiError(int status_, std::string type_, std::string code_, const std::string& message, std::string param_ = "")
      : std::runtime_error(visible_text(message, true)),
        status(status_),
        type(std::move(type_)),
        code(std::move(code_)),
        param(std::move(param_)) {}

  int status;
  std::string type;   // "invalid_request_error", ...
  std::string code;   // empty: null
  std::string param;  // the field it is about, such as "messages[2].content"; empty: null
  std::map<std::string, std::string> headers = {};

  // {"error": {"message", "type", "param", "code"}}, in valid UTF-8 whatever the message holds.
  std::string json() const;
  HttpReply reply() const;
};

// 400 about a field.
template <typename... Args>
[[noreturn]] void refuse(std::string_view param, fmt::format_string<Args...> text, Args&&... args) {
  throw ApiError(400, "invalid_request_error", "", fmt::format(text, std::forward<Args>(args)...), std::string(param));
}

// What a client wrote, for a message: at most so many bytes of it.
std::string shortened(std::string_view text, size_t bytes = 60);

// Why the engine could not answer: what the caller can mend is 400, everything else 500.
ApiError to_api_error(const std::exception& error);

ApiError error_loading(std::string_view phase);   // 503, try again soon
ApiError error_not_loaded(std::string_view why);  // 503, for good
ApiError error_stopping();
ApiError error_queue_full(uint32_t limit);
ApiError error_deadline(double seconds);
// The prompt leaves no room for an answer.
ApiError error_context(size_t prompt_tokens, uint32_t context, std::string param);

}  // namespace stet
