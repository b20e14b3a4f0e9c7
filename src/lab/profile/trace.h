// Chrome's trace format, which chrome://tracing and Perfetto read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stet {

struct TraceSpan {
  std::string track;  // a line of the picture
  std::string name;
  double start = 0, seconds = 0;  // seconds since the trace began
  uint64_t bytes = 0;             // read; 0: nothing to say
};

// One JSON object: complete events in microseconds, a name for every track in order of first appearance. about: shown
// with the trace.
std::string chrome_trace(std::span<const TraceSpan> spans, const std::string& about);

}  // namespace stet
