#include "server/http/response.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace stet::http {
namespace {

using Headers = std::map<std::string, std::string>;

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool has(const Headers& headers, std::string_view name) {
  return std::ranges::any_of(headers, [&](const auto& header) { return in_lower_case(header.first) == name; });
}

void append(std::string& out, std::string_view name, std::string_view value) {
  out += fmt::format("{}: {}\r\n", name, value);
}

// The status line and every header but those of the body's framing.
std::string common_head(int status, const Headers& headers, const Framing& framing) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", status, status_text(status));
  append(out, "Date", http_date(std::time(nullptr)));
  if (!framing.keep_alive) append(out, "Connection", "close");
  if (framing.keep_alive && framing.version < 11) append(out, "Connection", "keep-alive");
  if (!has(headers, "x-content-type-options")) append(out, "X-Content-Type-Options", "nosniff");
  if (!has(headers, "cache-control")) append(out, "Cache-Control", "no-store");
  if (!framing.allow_origin.empty()) {
    append(out, "Access-Control-Allow-Origin", framing.allow_origin);
    append(out, "Vary", "Origin");
  }
  for (const auto& [name, value] : headers) {
    std::string safe_name = name, safe_value = value;
    std::ranges::replace_if(safe_name, is_control, ' ');
    std::ranges::replace_if(safe_value, is_control, ' ');
    append(out, safe_name, safe_value);
  }
  return out;
}

std::string_view error_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

// What a page asks to send: names only, else nothing of it.
std::string requested_headers(std::string_view list) {
  const bool names = std::ranges::all_of(list, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ',' ||
           c == ' ';
  });
  return names && !list.empty() ? std::string(list) : "authorization, content-type, x-api-key";
}

}  // namespace

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

std::string reply_bytes(const HttpReply& reply, const Framing& framing) {
  const bool bodyless = reply.status == 204 || reply.status == 304;
  std::string out = common_head(reply.status, reply.headers, framing);
  if (!bodyless) {
    append(out, "Content-Type", reply.content_type);
    append(out, "Content-Length", std::to_string(reply.body.size()));
  }
  out += "\r\n";
  if (!bodyless && !framing.head_only) out += reply.body;
  return out;
}

std::string events_head(const Headers& headers, const Framing& framing) {
  Headers all = headers;
  if (!has(all, "cache-control")) all["Cache-Control"] = "no-cache";
  all["X-Accel-Buffering"] = "no";  // a proxy in between must not collect events
  std::string out = common_head(200, all, framing);
  append(out, "Content-Type", "text/event-stream; charset=utf-8");
  if (framing.version >= 11) append(out, "Transfer-Encoding", "chunked");
  return out + "\r\n";
}

std::string event_bytes(std::string_view data, const Framing& framing) {
  STET_CHECK(data.find_first_of("\r\n") == std::string_view::npos);
  if (framing.version < 11) return fmt::format("data: {}\n\n", data);
  return fmt::format("{:x}\r\ndata: {}\n\n\r\n", data.size() + 8, data);
}

std::string_view events_end(const Framing& framing) { return framing.version < 11 ? "" : "0\r\n\r\n"; }

HttpReply error_reply(const Refusal& refusal) {
  const nlohmann::json error = {
      {"error",
       {{"message", refusal.message},
        {"type", error_type(refusal.status)},
        {"param", nullptr},
        {"code", refusal.code.empty() ? nlohmann::json(nullptr) : nlohmann::json(refusal.code)}}}};
  HttpReply reply{.status = refusal.status,
                  .body = error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
  if (refusal.status == 401) reply.headers["WWW-Authenticate"] = "Bearer";
  if (refusal.status == 503) reply.headers["Retry-After"] = "1";
  return reply;
}

HttpReply preflight_reply(const RequestHead& head) {
  HttpReply reply{.status = 204};
  reply.headers["Access-Control-Allow-Methods"] = "GET, POST, OPTIONS";
  reply.headers["Access-Control-Allow-Headers"] = requested_headers(head.value("access-control-request-headers"));
  reply.headers["Access-Control-Max-Age"] = "600";
  if (head.value("access-control-request-private-network") == "true")
    reply.headers["Access-Control-Allow-Private-Network"] = "true";
  return reply;
}

std::string http_date(int64_t seconds) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t time = seconds;
  std::tm t = {};
  ::gmtime_r(&time, &t);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[t.tm_wday], t.tm_mday, kMonths[t.tm_mon],
                     t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

}  // namespace stet::http
