// Conversations as chat requests state them.
#pragma once

#include "server/api/api_request.h"

namespace stet {

// [{"role": ..., "content": text or text parts}, ...]. Throws ApiError(400), which names the message.
Conversation read_messages(const FieldValue& value, Hints& hints);

}  // namespace stet
