#include "lab/bench/endpoint.h"

#include <charconv>

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {
namespace {

constexpr std::string_view kForm = "write http://HOST:PORT, http://HOST:PORT/PREFIX or unix:PATH";

[[noreturn]] void refuse(std::string_view url, std::string_view why) {
  fail(Code::kUsage, "the endpoint '{}' {}; {}", visible_text(url), why, kForm);
}

uint16_t port_of(std::string_view url, std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) refuse(url, "has no port from 1 to 65535");
  return port;
}

void read_authority(std::string_view url, std::string_view authority, Endpoint& out) {
  if (authority.find('@') != std::string_view::npos)
    refuse(url, "holds a user or a key, which others could read in the list of processes: use --api-key-file");
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) refuse(url, "has a '[' without its ']'");
    out.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && port.front() != ':') refuse(url, "has something else than a port behind ']'");
  } else {
    const size_t colon = authority.find(':');
    out.host = authority.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : authority.substr(colon);
  }
  if (out.host.empty()) refuse(url, "names no host");
  if (!port.empty()) out.port = port_of(url, port.substr(1));
}

}  // namespace

Endpoint parse_endpoint(std::string_view url) {
  constexpr std::string_view kHttp = "http://", kUnix = "unix:";
  for (const char c : url)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') refuse(url, "holds a space or a control character");
  Endpoint out;
  if (url.starts_with(kUnix)) {
    out.unix_path = url.substr(kUnix.size());
    if (out.unix_path.empty()) refuse(url, "names no socket");
    if (out.unix_path.size() > 107) refuse(url, "is longer than the 107 bytes that a socket's path may have");
    return out;
  }
  if (url.starts_with("https://"))
    refuse(
        url,
        "asks for TLS, which stet does not speak: encryption adds time that is not the model's. Put a tunnel on this "
        "machine (ssh -L, stunnel) and name its http:// end");
  if (!url.starts_with(kHttp)) refuse(url, "is of no known kind");
  if (url.find_first_of("?#") != std::string_view::npos) refuse(url, "has a query or a fragment");
  const std::string_view rest = url.substr(kHttp.size());
  const size_t slash = rest.find('/');
  read_authority(url, rest.substr(0, slash), out);
  if (slash != std::string_view::npos) out.prefix = rest.substr(slash);
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
  if (out.prefix.ends_with("/v1")) out.prefix.resize(out.prefix.size() - 3);
  return out;
}

std::string Endpoint::shown() const {
  if (!unix_path.empty()) return "unix:" + unix_path.substr(unix_path.rfind('/') + 1);
  return "http://" + authority() + prefix;
}

std::string Endpoint::authority() const {
  if (!unix_path.empty()) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

}  // namespace stet
