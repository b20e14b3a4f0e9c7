// The names in Host, Origin and absolute targets: read strictly, compared in one spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stet::http {

struct HostPort {
  std::string host;   // lower case; addresses in their canonical form, IPv6 in brackets
  uint16_t port = 0;  // 0: none was given
  bool operator==(const HostPort&) const = default;
};

// "localhost:8080", "[::1]". Nothing for what is no host with an optional port: user names, zones, percent signs, an
// empty or impossible port.
std::optional<HostPort> parse_authority(std::string_view text);

struct Origin {
  std::string scheme;  // "http", "https"
  HostPort authority;
};

// "http://localhost:3000". Nothing for "null" and for what is no web origin.
std::optional<Origin> parse_origin(std::string_view text);
// The one spelling of it.
std::string origin_text(const Origin& origin);

// Whether a page of this origin was loaded from that host and port, default ports filled in.
bool same_place(const Origin& origin, const HostPort& host);

// The host of a socket address as it stands in a Host header: "127.0.0.1", "[::1]". IPv6 forms of IPv4 addresses are
// IPv4.
std::string canonical_address(std::string_view address);

// Whether only this machine reaches the address.
bool is_loopback(std::string_view canonical);
// 0.0.0.0 and [::]: no place that a client could have meant.
bool is_wildcard(std::string_view canonical);

}  // namespace stet::http
