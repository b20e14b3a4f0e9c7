// Conversations as chat requests state them.
#pragma once

#include "server/api/api_request.h"

namespace stet {

// {"thinking": true}, or enable_thinking, as templates call it: chat_template_kwargs. Throws ApiError(400) for anything
// else.
std::optional<bool> read_thinking(const FieldValue& value, Hints& hints);

// [{"role": ..., "content": text or text parts}, ...]. Throws ApiError(400), which names the message.
Conversation read_messages(const FieldValue& value, Hints& hints);

}  // namespace stet
