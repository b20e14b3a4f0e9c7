#include "server/http/guard.h"

#include <algorithm>

#include "base/error.h"

namespace stet::http {
namespace {

// Open without a key: the page is the same for everybody and asks for one, and whether the server is up is no secret.
constexpr std::string_view kOpenPaths[] = {"/", "/health"};

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool is_graphic(char c) { return c > ' ' && c < 0x7f; }

// Splits a target and says whose it is, where it says so ("http://localhost/x").
Refusal split_target(const RequestHead& head, GuardVerdict& verdict, std::optional<HostPort>& named) {
  std::string_view target = head.target;
  if (!std::ranges::all_of(target, is_graphic) || target.find('#') != std::string_view::npos)
    return {400, "the target of the request holds characters that no target has", ""};
  if (target == "*" && head.method == "OPTIONS") {
    verdict.path = "*";
    return {};
  }
  if (!target.starts_with('/')) {
    const size_t path = target.find('/', std::min(target.find("://"), target.size() - 1) + 3);
    const std::optional<Origin> origin = parse_origin(target.substr(0, path));
    if (!origin || origin->scheme != "http")
      return {400, "the target of the request is no path on this server, and this is no proxy", ""};
    named = origin->authority;
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  const size_t question = target.find('?');
  verdict.path = target.substr(0, question);
  if (question != std::string_view::npos) verdict.query = target.substr(question + 1);
  return {};
}

Refusal check_host(const GuardRules& rules, const RequestHead& head, const std::optional<HostPort>& named,
                   std::string_view local_host, HostPort& host) {
  if (head.count("host") != 1) {
    if (rules.is_unix && head.count("host") == 0 && head.version < 11) return {};
    return {400, head.count("host") == 0 ? "the Host header is missing" : "there is more than one Host header", ""};
  }
  const std::optional<HostPort> parsed = parse_authority(head.value("host"));
  if (!parsed) return {400, "the Host header is no name with an optional port", ""};
  if (named && *named != *parsed) return {400, "the target names another host than the Host header", ""};
  host = *parsed;
  if (rules.is_unix) return {};
  const bool known = host.host == "localhost" || host.host == "127.0.0.1" || host.host == "[::1]" ||
                     host.host == local_host || contains(rules.hosts, host.host);
  if (known && !is_wildcard(host.host)) return {};
  return {403, "this server does not answer to the host '" + host.host + "' (--allow-host)", "host_not_allowed"};
}

// A page of another site can be made to load a picture or send a form from here without naming its origin; browsers
// then say so in Sec-Fetch-Site. Following a link to this server is no harm: it reads and changes nothing.
Refusal check_origin(const GuardRules& rules, const RequestHead& head, const HostPort& host, GuardVerdict& verdict) {
  if (head.count("origin") == 0) {
    const std::string_view site = head.value("sec-fetch-site");
    const bool foreign = site == "cross-site" || site == "same-site";
    const bool link = head.value("sec-fetch-mode") == "navigate" && (head.method == "GET" || head.method == "HEAD");
    if (foreign && !link) return {403, "a page of another site sent this request", "origin_not_allowed"};
    return {};
  }
  const std::string text(head.value("origin"));
  const std::optional<Origin> origin = parse_origin(text);
  if (origin && contains(rules.origins, origin_text(*origin))) {
    verdict.allow_origin = text;
    return {};
  }
  if (origin && same_place(*origin, host)) return {};
  return {403, "pages of the origin '" + text + "' may not use this server (--allow-origin)", "origin_not_allowed"};
}

std::string_view bearer(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  const bool matches = value.size() > kScheme.size() &&
                       std::equal(kScheme.begin(), kScheme.end(), value.begin(),
                                  [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  if (!matches) return {};
  value.remove_prefix(kScheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

Refusal check_key(const GuardRules& rules, const RequestHead& head, std::string_view path) {
  if (rules.keys.empty()) return {};
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && std::ranges::find(kOpenPaths, path) != std::end(kOpenPaths)) return {};
  const std::string_view token = bearer(head.value("authorization")), key = head.value("x-api-key");
  if (token.empty() && key.empty())
    return {401, "a key is needed: send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'", "invalid_api_key"};
  const bool good_token = rules.keys.accepts(token), good_key = rules.keys.accepts(key);
  if (good_token || good_key) return {};
  return {401, "the key is not one of this server's", "invalid_api_key"};
}

}  // namespace

std::string allowed_host(std::string_view text) {
  const std::optional<HostPort> host = parse_authority(text);
  if (!host || host->port != 0)
    fail(Code::kUsage, "'{}' is no host that could be allowed: give a name or address without a port", text);
  if (is_wildcard(host->host))
    fail(Code::kUsage, "{} is no host that a client can mean; allow a name or an address", text);
  return host->host;
}

std::string allowed_origin(std::string_view text) {
  const std::optional<Origin> origin = parse_origin(text);
  if (!origin)
    fail(Code::kUsage, "'{}' is no origin that could be allowed: give each by name, such as http://localhost:3000",
         text);
  return origin_text(*origin);
}

GuardVerdict guard(const GuardRules& rules, const RequestHead& head, std::string_view local_host) {
  GuardVerdict verdict;
  std::optional<HostPort> named;
  HostPort host;
  Refusal& why = verdict.refusal;
  why = split_target(head, verdict, named);
  if (!why) why = check_host(rules, head, named, local_host, host);
  if (!why) why = check_origin(rules, head, host, verdict);
  if (why) return verdict;
  verdict.preflight =
      head.method == "OPTIONS" && head.count("access-control-request-method") != 0 && !verdict.allow_origin.empty();
  if (!verdict.preflight) why = check_key(rules, head, verdict.path);
  return verdict;
}

}  // namespace stet::http
