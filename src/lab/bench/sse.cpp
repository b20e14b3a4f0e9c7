#include "lab/bench/sse.h"

#include "base/error.h"

namespace stet {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

void SseParser::feed(std::string_view bytes, const std::function<void(const SseEvent&)>& sink) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') bytes.remove_prefix(1);
      if (bytes.empty()) return;
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > most_bytes_)
      fail(Code::kInput, "the event stream has a line of more than {} bytes", most_bytes_);
    line_ += piece;
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(sink);
  }
}

void SseParser::end_line(const std::function<void(const SseEvent&)>& sink) {
  std::string line;
  line.swap(line_);
  std::string_view rest = line;
  if (!begun_ && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  begun_ = true;
  if (!rest.empty()) {
    if (rest.front() == ':') {
      ++comments_;
      return;
    }
    has_field_ = true;
    const size_t colon = rest.find(':');
    std::string_view value = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    field(rest.substr(0, colon), value);
    return;
  }
  const bool whole = has_data_;
  SseEvent event{name_.empty() ? "message" : name_, std::move(data_), id_};
  data_.clear();
  name_.clear();
  has_data_ = has_field_ = false;
  if (whole) sink(event);
}

void SseParser::field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (data_.size() + value.size() > most_bytes_)
      fail(Code::kInput, "the event stream has an event of more than {} bytes", most_bytes_);
    if (has_data_) data_ += '\n';
    has_data_ = true;
    data_ += value;
  } else if (name == "event") {
    name_ = value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value;
  }
}

}  // namespace stet
