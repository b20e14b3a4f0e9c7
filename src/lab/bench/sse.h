// Server-sent events out of bytes as they arrive, by the rules of the HTML standard.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stet {

struct SseEvent {
  std::string name;  // "message" where the server gives none
  std::string data;  // the data lines, joined by line breaks
  std::string id;
};

// Lines end with LF, CR LF or CR, wherever the bytes were cut; a byte order mark before the first is skipped; lines
// that begin with a colon are comments; an event is what stands between two empty lines, and one without data is none.
// What is not followed by an empty line has not arrived.
class SseParser {
 public:
  // A line or an event beyond so many bytes is refused.
  explicit SseParser(size_t most_bytes = size_t{1} << 24) : most_bytes_(most_bytes) {}

  // Calls sink for every event that these bytes complete. Throws Error(kInput) when one is too large.
  void feed(std::string_view bytes, const std::function<void(const SseEvent&)>& sink);

  // Whether everything so far was complete: no half line, no event that waits for its empty line.
  bool at_boundary() const { return line_.empty() && !has_field_; }
  // Servers keep connections alive with them.
  size_t comments() const { return comments_; }

 private:
  void end_line(const std::function<void(const SseEvent&)>& sink);
  void field(std::string_view name, std::string_view value);

  const size_t most_bytes_;
  std::string line_, data_, name_, id_;
  bool has_data_ = false;
  bool has_field_ = false;  // since the last empty line
  bool after_cr_ = false;   // a line break that may go on with LF
  bool begun_ = false;
  size_t comments_ = 0;
};

}  // namespace stet
