// Where a server is: http://HOST:PORT[/PREFIX] or unix:PATH.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stet {

struct Endpoint {
  std::string host;  // of a TCP address, without the brackets of IPv6
  uint16_t port = 80;
  std::string unix_path;  // or a socket in the file system
  std::string prefix;  // before every path: "" or "/llm"; a "/v1" at the end is left out, because every path names it

  // For people and packets: without the path of a socket's folder.
  std::string shown() const;
  // What the Host header says.
  std::string authority() const;
};

// Throws Error(kUsage) that says what is allowed: https (which is not spoken here), a user or password, a query, a port
// out of range.
Endpoint parse_endpoint(std::string_view url);

}  // namespace stet
