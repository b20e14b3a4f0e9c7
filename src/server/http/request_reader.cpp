#include "server/http/request_reader.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/error.h"

namespace stet::http {
namespace {

namespace beast = boost::beast::http;

constexpr size_t kMostFields = 256;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Whether a first line asks for some version of HTTP, in which case it is that version that is not served.
bool names_a_version(std::string_view line) {
  const size_t version = line.find(' ', line.find(' ') + 1) + 1;
  const std::string_view name = line.substr(version, 8);
  if (name == "HTTP/1.1" || name == "HTTP/1.0") return false;  // the fault is behind it
  const auto is_digit = [&](size_t at) { return line[version + at] >= '0' && line[version + at] <= '9'; };
  return name.starts_with("HTTP/") && line.size() >= version + 8 && is_digit(5) && line[version + 6] == '.' &&
         is_digit(7);
}

}  // namespace

struct RequestReader::Parser : beast::request_parser<beast::string_body> {};

RequestReader::RequestReader(size_t max_header_bytes, uint64_t max_body_bytes)
    : max_header_bytes_(max_header_bytes), max_body_bytes_(max_body_bytes), parser_(std::make_unique<Parser>()) {
  // The length that a head declares is checked by who asked for it, after the checks that come first.
  parser_->body_limit(boost::none);
  parser_->header_limit(static_cast<uint32_t>(max_header_bytes));
}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

Refusal RequestReader::too_long_head() const {
  return {431, fmt::format("the head of the request is longer than {} bytes", max_header_bytes_), ""};
}

void RequestReader::refuse(Refusal why) {
  refusal_ = std::move(why);
  state_ = State::refused;
}

size_t RequestReader::feed(std::string_view bytes) {
  size_t taken = 0;
  // Some clients end a body with a line break of their own; RFC 9112 lets it stand before the next request.
  while (state_ == State::head && header_bytes_ == 0 && taken < bytes.size() &&
         (bytes[taken] == '\r' || bytes[taken] == '\n'))
    ++taken;
  // What the parser sees at a time is cut so that the verdict is the same however the bytes arrived. In a body it
  // leaves over only a chunk's own line, and the fields behind the last chunk.
  while (taken < bytes.size() && (state_ == State::head || state_ == State::body)) {
    const State before = state_;
    const size_t room = before == State::head ? max_header_bytes_ - header_bytes_ : max_header_bytes_;
    const size_t offered = std::min(bytes.size() - taken, room);
    const size_t n = feed_parser(bytes.substr(taken, offered));
    taken += n;
    if (state_ != before) break;
    const bool stuck = before == State::head ? offered == room : offered == room && n == 0;
    if (stuck && before == State::head) refuse(too_long_head());
    if (stuck && before == State::body) refuse({400, "a line of the chunked body is too long", ""});
    if (n == 0) break;
  }
  return taken;
}

size_t RequestReader::feed_parser(std::string_view bytes) {
  boost::system::error_code error;
  const bool in_head = state_ == State::head;
  // Beast 1.81 asserts that the line of the last chunk and what follows it have 5 bytes when it looks at them a second time, so it does
  // not see them before.
  if (!in_head && parser_->chunked() && bytes.size() < 5 && bytes.starts_with("0\r\n")) return 0;
  const size_t n = parser_->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (in_head) header_bytes_ += n;
  if (error == beast::error::need_more) error = {};
  if (error == beast::error::body_limit) {
    refuse({413, fmt::format("the body is longer than {} bytes (--max-body)", max_body_bytes_), ""});
  } else if (error == beast::error::header_limit) {
    refuse(too_long_head());
  } else if (error == beast::error::bad_version && names_a_version(bytes)) {
    refuse({505, "this server speaks HTTP/1.1 and HTTP/1.0", ""});
  } else if (error) {
    refuse({400, fmt::format("this is no HTTP request: {}", error.message()), ""});
  } else if (in_head && parser_->is_header_done()) {
    finish_head();
  } else if (!in_head && parser_->is_done()) {
    state_ = State::done;
  }
  return n;
}

void RequestReader::finish_head() {
  const auto& message = parser_->get();
  head_.method = std::string(message.method_string());
  head_.target = std::string(message.target());
  head_.version = message.version();
  head_.keep_alive = parser_->keep_alive();
  head_.chunked = parser_->chunked();
  if (const auto length = parser_->content_length()) head_.content_length = *length;
  for (const auto& field : message) {
    head_.fields.push_back({lower(field.name_string()), std::string(field.value())});
    if (head_.fields.size() > kMostFields)
      return refuse({431, fmt::format("the request has more than {} header fields", kMostFields), ""});
  }
  state_ = State::head_done;
}

void RequestReader::read_body() {
  STET_CHECK(state_ == State::head_done);
  parser_->body_limit(max_body_bytes_);
  parser_->eager(true);
  state_ = parser_->is_done() ? State::done : State::body;
}

uint64_t RequestReader::body_bytes() const { return parser_->get().body().size(); }

std::string RequestReader::take_body() {
  STET_CHECK(state_ == State::done);
  return std::move(parser_->get().body());
}

}  // namespace stet::http
