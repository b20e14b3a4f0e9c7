// What goes back: heads, chunks and error objects, as bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "server/http/exchange.h"
#include "server/http/request_head.h"

namespace stet::http {

// How the answer to one request is framed.
struct Framing {
  unsigned version = 11;
  bool keep_alive = true;         // the connection goes on after it
  bool head_only = false;         // HEAD
  std::string allow_origin = {};  // for CORS headers; empty: none
};

std::string_view status_text(int status);

// A whole answer. Control characters in header values become spaces, so that none begins a header of its own.
std::string reply_bytes(const HttpReply& reply, const Framing& framing);

// The head of a stream of events: chunked, or for HTTP/1.0 until the connection is closed.
std::string events_head(const std::map<std::string, std::string>& headers, const Framing& framing);
// One event of it. Throws Error(kInternal) when data holds a line break.
std::string event_bytes(std::string_view data, const Framing& framing);
// What ends it: the last chunk, or nothing.
std::string_view events_end(const Framing& framing);

// The OpenAI error object of a refusal, with the headers that its status needs.
HttpReply error_reply(const Refusal& refusal);
// The answer to a CORS preflight of an origin that is allowed.
HttpReply preflight_reply(const RequestHead& head);

// "Sun, 06 Nov 1994 08:49:37 GMT"; seconds since 1970.
std::string http_date(int64_t seconds);

}  // namespace stet::http
