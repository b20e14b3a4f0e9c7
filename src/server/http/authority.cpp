#include "server/http/authority.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace stet::http {
namespace {

constexpr size_t kLongestName = 253;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

std::optional<std::string> parse_host(std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return std::nullopt;
    const std::string inside(text.substr(1, text.size() - 2));
    in6_addr bytes;
    char out[INET6_ADDRSTRLEN];
    if (inside.find('\0') != std::string::npos || ::inet_pton(AF_INET6, inside.c_str(), &bytes) != 1)
      return std::nullopt;
    ::inet_ntop(AF_INET6, &bytes, out, sizeof out);
    return "[" + std::string(out) + "]";
  }
  if (text.empty() || text.size() > kLongestName) return std::nullopt;
  std::string name(text);
  std::ranges::transform(name, name.begin(), lower);
  if (!std::ranges::all_of(name, is_name_char)) return std::nullopt;
  return name;
}

uint16_t default_port(std::string_view scheme) { return scheme == "https" ? 443 : 80; }

}  // namespace

std::optional<HostPort> parse_authority(std::string_view text) {
  const size_t bracket = text.rfind(']');
  const size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  HostPort authority;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), authority.port);
    if (error != std::errc() || end != digits.data() + digits.size() || authority.port == 0) return std::nullopt;
  }
  const std::optional<std::string> host = parse_host(text.substr(0, colon));
  if (!host) return std::nullopt;
  authority.host = *host;
  return authority;
}

std::optional<Origin> parse_origin(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  std::string scheme(text.substr(0, colon));
  std::ranges::transform(scheme, scheme.begin(), lower);
  if (scheme != "http" && scheme != "https") return std::nullopt;
  const std::optional<HostPort> authority = parse_authority(text.substr(colon + 3));
  if (!authority) return std::nullopt;
  return Origin{scheme, *authority};
}

std::string origin_text(const Origin& origin) {
  std::string text = origin.scheme + "://" + origin.authority.host;
  const uint16_t port = origin.authority.port;
  if (port != 0 && port != default_port(origin.scheme)) text += ":" + std::to_string(port);
  return text;
}

bool same_place(const Origin& origin, const HostPort& host) {
  const uint16_t standard = default_port(origin.scheme);
  const auto port = [&](const HostPort& a) { return a.port == 0 ? standard : a.port; };
  return origin.authority.host == host.host && port(origin.authority) == port(host);
}

std::string canonical_address(std::string_view address) {
  std::string text(address);
  if (text.starts_with("::ffff:") && text.find('.') != std::string::npos) text.erase(0, 7);
  text.resize(std::min(text.find('%'), text.size()));  // a zone says which interface, not which address
  return text.find(':') == std::string::npos ? text : "[" + text + "]";
}

bool is_loopback(std::string_view canonical) { return canonical == "[::1]" || canonical.starts_with("127."); }
bool is_wildcard(std::string_view canonical) { return canonical == "0.0.0.0" || canonical == "[::]"; }

}  // namespace stet::http
