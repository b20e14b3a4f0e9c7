// Who may ask: Host, Origin and key, decided on the head of a request, before a byte of its body is read.
//
// A web page in the user's own browser can send requests to servers on this machine, under a name that it controls (DNS
// rebinding) or as a form of another site. Neither needs CORS. So each request has to name this server as its user
// would, and one that a page sends has to come from this server's own page or from an origin that was allowed by name.
#pragma once

#include "server/http/api_keys.h"
#include "server/http/authority.h"
#include "server/http/request_head.h"

namespace stet::http {

struct GuardRules {
  bool is_unix = false;  // a socket in the file system, which no page can reach: any well-formed Host will do
  std::vector<std::string>
      hosts;  // names beyond localhost and the address that a connection came to; as parse_authority has them
  std::vector<std::string> origins;  // as origin_text has them
  ApiKeys keys;
};

// A host that was allowed on the command line. Throws Error(kUsage) for what is no host, has a port, or is a wildcard
// address.
std::string allowed_host(std::string_view text);
// An origin likewise: "null" and "*" are none.
std::string allowed_origin(std::string_view text);

struct GuardVerdict {
  Refusal refusal;
  std::string path, query;   // of the target
  std::string allow_origin;  // the origin that CORS headers name; empty: none are sent
  bool preflight = false;    // to be answered without asking anybody
};

// Pure. local_host: the canonical address that the connection came to.
GuardVerdict guard(const GuardRules& rules, const RequestHead& head, std::string_view local_host);

}  // namespace stet::http
