#include "text/provenance.h"

#include <algorithm>

namespace stet {

Text::Text(std::string bytes, Source source) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), source});
}

void Text::append(std::string_view bytes, Source source) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().source == source) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), source});
  }
}

void Text::append(const Text& other) { append(other, 0, other.size()); }

void Text::append(const Text& other, size_t begin, size_t end) {
  for (size_t run = begin < end ? other.run_index(begin) : 0; begin < end; ++run) {
    const Run& r = other.runs_[run];
    const size_t stop = std::min(end, r.end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), r.source);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

Source Text::source_at(size_t at) const { return runs_[run_index(at)].source; }

std::vector<Span> Text::spans() const {
  std::vector<Span> out;
  size_t begin = 0;
  for (const Run& run : runs_) {
    const bool from_template = run.source == kTemplateSource;
    if (out.empty() || out.back().template_text != from_template) out.push_back({{}, from_template});
    out.back().text.append(bytes_, begin, run.end - begin);
    begin = run.end;
  }
  return out;
}

size_t Text::run_index(size_t at) const {
  auto run = std::upper_bound(runs_.begin(), runs_.end(), at, [](size_t value, const Run& r) { return value < r.end; });
  return static_cast<size_t>(run - runs_.begin());
}

}  // namespace stet
