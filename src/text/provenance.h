// Text that knows who wrote each of its bytes.
//
// A chat template and the messages it arranges are joined before they are tokenised, because cutting a text at the
// seams changes which merges apply. The tokenizer still has to know which bytes the template wrote: only there may a
// control token be recognised. Text carries that knowledge through every string operation of the template engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stet {

// Who wrote a byte: 0 is the template (or the model file), everything else is an input of the caller.
using Source = uint32_t;
inline constexpr Source kTemplateSource = 0;
inline constexpr Source kUntrustedSource = 1;  // some input; which one does not matter

// A piece of text of one origin, as the tokenizer takes it.
struct Span {
  std::string text;
  bool template_text = false;
};

// A byte string in runs of one source each. Runs are never empty and neighbours differ in their source.
class Text {
 public:
  struct Run {
    size_t end = 0;  // offset of the first byte behind the run
    Source source = kTemplateSource;
  };

  Text() = default;
  Text(std::string bytes, Source source);

  const std::string& bytes() const { return bytes_; }
  const std::vector<Run>& runs() const { return runs_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  void append(std::string_view bytes, Source source);
  void append(const Text& other);
  // Appends bytes [begin, end) of `other`. REQUIRES: begin <= end <= other.size().
  void append(const Text& other, size_t begin, size_t end);
  // Bytes [begin, end). REQUIRES: begin <= end <= size().
  Text slice(size_t begin, size_t end) const;
  // REQUIRES: at < size(). O(log runs).
  Source source_at(size_t at) const;
  // The same text as spans; neighbouring inputs are joined.
  std::vector<Span> spans() const;

 private:
  size_t run_index(size_t at) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace stet
