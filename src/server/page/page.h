// The page at "/": one file without outside requests, embedded in the binary.
#pragma once

#include <string>
#include <string_view>

#include "server/http/exchange.h"

namespace stet {

// The page with its headers. The Content-Security-Policy allows the page's one <style>, its one <script> and requests
// to its own origin, and nothing else. The page holds nothing of the model or of a user, so it may be served without a
// key: it asks for one where the API answers 401.
HttpReply page_reply();

// 'sha256-...' of what stands between <TAG> and </TAG>, as a Content-Security-Policy names it. Throws Error(kInternal)
// unless the element is there exactly once, without attributes.
std::string csp_hash(std::string_view html, std::string_view tag);

}  // namespace stet
