#include "server/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stet::http {
namespace {

bool equals(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

constexpr std::array kOnce = {"host",      "origin", "content-length",    "content-type",   "authorization",
                              "x-api-key", "expect", "transfer-encoding", "sec-fetch-site", "sec-fetch-mode"};
constexpr std::array kMethods = {"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"};

}  // namespace

size_t RequestHead::count(std::string_view name) const {
  return static_cast<size_t>(std::ranges::count(fields, name, &Field::name));
}

std::string_view RequestHead::value(std::string_view name) const {
  const auto it = std::ranges::find(fields, name, &Field::name);
  return it == fields.end() ? std::string_view() : std::string_view(it->value);
}

Refusal check_framing(const RequestHead& head) {
  for (const char* name : kOnce)
    if (head.count(name) > 1) return {400, fmt::format("the header {} stands there more than once", name), ""};
  if (head.count("transfer-encoding") != 0) {
    if (head.count("content-length") != 0) return {400, "both Transfer-Encoding and Content-Length were sent", ""};
    if (head.version < 11) return {400, "HTTP/1.0 has no Transfer-Encoding", ""};
    if (!equals(head.value("transfer-encoding"), "chunked"))
      return {501, "the only Transfer-Encoding that this server reads is chunked", ""};
  }
  const std::string_view length = head.value("content-length");
  if (!std::ranges::all_of(length, [](char c) { return c >= '0' && c <= '9'; }))
    return {400, "the Content-Length is no number", ""};
  return {};
}

Refusal check_abilities(const RequestHead& head, uint64_t max_body_bytes) {
  if (std::ranges::find(kMethods, head.method) == kMethods.end())
    return {501, fmt::format("this server knows no method {}", head.method), ""};
  if (head.count("expect") != 0 && !equals(head.value("expect"), "100-continue"))
    return {417, "the only Expect that this server knows is 100-continue", ""};
  const bool brings_body = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
  if (brings_body && !head.chunked && !head.content_length)
    return {411, fmt::format("{} needs a Content-Length, or Transfer-Encoding: chunked", head.method), ""};
  if (head.content_length.value_or(0) > max_body_bytes)
    return {
        413,
        fmt::format("the body has {} bytes; this server takes {} (--max-body)", *head.content_length, max_body_bytes),
        ""};
  return {};
}

}  // namespace stet::http
