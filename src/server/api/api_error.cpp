#include "server/api/api_error.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/unicode.h"

namespace stet {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson or_null(const std::string& text) { return text.empty() ? OrderedJson(nullptr) : OrderedJson(text); }

ApiError unavailable(std::string code, const std::string& message, std::string retry_after) {
  ApiError error(503, "service_unavailable_error", std::move(code), message);
  if (!retry_after.empty()) error.headers["retry-after"] = std::move(retry_after);
  return error;
}

}  // namespace

std::string ApiError::json() const {
  OrderedJson body;
  body["message"] = what();
  body["type"] = type;
  body["param"] = or_null(param);
  body["code"] = or_null(code);
  return OrderedJson{{"error", body}}.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

HttpReply ApiError::reply() const { return {.status = status, .body = json(), .headers = headers}; }

std::string shortened(std::string_view text, size_t bytes) {
  return text.size() <= bytes ? std::string(text) : replace_invalid_utf8(text.substr(0, bytes)) + "...";
}

ApiError to_api_error(const std::exception& error) {
  if (const auto* api = dynamic_cast<const ApiError*>(&error)) return *api;
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr && known->code() == Code::kUsage)
    return ApiError(400, "invalid_request_error", "", known->what());
  return ApiError(500, "server_error", "internal_error", error.what());
}

ApiError error_loading(std::string_view phase) {
  return unavailable(
      "loading",
      fmt::format("the model is still being loaded ({}): ask again soon", phase.empty() ? "starting" : phase), "2");
}

ApiError error_not_loaded(std::string_view why) {
  return unavailable("load_failed", fmt::format("the model could not be loaded: {}", why), "");
}

ApiError error_stopping() { return unavailable("stopping", "the server is stopping and takes no more requests", ""); }

ApiError error_queue_full(uint32_t limit) {
  ApiError error(429, "rate_limit_error", "queue_full",
                 fmt::format("the queue is full: {} requests are waiting, which is its limit; ask again later", limit));
  error.headers["retry-after"] = "1";
  return error;
}

ApiError error_deadline(double seconds) {
  ApiError error(
      504, "timeout_error", "deadline_exceeded",
      fmt::format(
          "the answer was not complete {} seconds after the request came, which is this server's deadline; ask for "
          "fewer tokens (max_tokens)",
          seconds));
  // Clients of OpenAI repeat what failed with 5xx; this would only fail again.
  error.headers["x-should-retry"] = "false";
  return error;
}

ApiError error_context(size_t prompt_tokens, uint32_t context, std::string param) {
  // The beginning is what clients look for to tell this error from others.
  return ApiError(
      400, "invalid_request_error", "context_length_exceeded",
      fmt::format("This model's maximum context length is {} tokens, the prompt has {}: at least {} too many, because "
                  "one is needed for the answer. Shorten the prompt.",
                  context, prompt_tokens, prompt_tokens + 1 - context),
      std::move(param));
}

}  // namespace stet
