// Feeds arbitrary bodies to the readers of the API. Anything but an answer or a 400 that names a reason is a bug, and
// so is a request that is accepted and that the engine would refuse later. The first byte chooses the endpoint.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/api_request.h"
#include "text/stop_strings.h"
#include "text/unicode.h"

namespace {

constexpr stet::ModelLimits kLimits = {.vocab = 320, .context = 400};

void require(bool holds) {
  if (!holds) std::abort();
}

void check_ids(const stet::TokenIds& ids) {
  for (const int32_t id : ids) require(id >= 0 && static_cast<uint32_t>(id) < kLimits.vocab);
}

void check_messages(const stet::Conversation& messages) {
  require(!messages.empty());
  for (const stet::ChatMessage& message : messages) {
    require(!message.role.empty());
    require(stet::is_valid_utf8(message.content));
  }
}

// What the engine checks again, and would throw for.
void check_request(const stet::ApiRequest& asked) {
  const stet::Request& request = asked.request;
  request.sampling.validate(kLimits.vocab);
  const stet::StopStrings stops(request.stop);
  require(!asked.prompt_field.empty());
  require(asked.stream || (!asked.include_usage && !asked.cycle_events));
  if (const auto* messages = std::get_if<stet::Conversation>(&asked.prompt)) {
    check_messages(*messages);
  } else if (const auto* ids = std::get_if<stet::TokenIds>(&asked.prompt)) {
    check_ids(*ids);
  } else {
    require(stet::is_valid_utf8(std::get<std::string>(asked.prompt)));
  }
}

void read(uint8_t choice, std::string_view body) {
  stet::Hints hints;
  switch (choice % 4) {
    case 0:
      return check_request(stet::read_chat_request(body, kLimits));
    case 1:
      return check_request(stet::read_completion_request(body, kLimits));
    case 2:
      return check_ids(stet::read_detokenize_request(body, kLimits, hints));
    default:
      break;
  }
  const stet::TokenizeRequest request = stet::read_tokenize_request(body);
  if (const auto* messages = std::get_if<stet::Conversation>(&request.prompt)) check_messages(*messages);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    read(data[0], body);
  } catch (const stet::ApiError& error) {
    require(error.status == 400);
    require(*error.what() != '\0');
    require(stet::is_valid_utf8(error.json()));
    require(error.json().size() < 2000);
  }
  return 0;
}
