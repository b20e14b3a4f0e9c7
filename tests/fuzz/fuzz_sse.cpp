// Feeds arbitrary bytes to the event-stream parser: at once, byte by byte, and in pieces that the bytes themselves
// choose. The events must be the same, and anything but a clean refusal is a bug.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lab/bench/sse.h"

namespace {

struct SseOutcome {
  std::vector<std::string> events;
  bool at_boundary = false, refused = false;
  bool operator==(const SseOutcome&) const = default;
};

// step 0: every piece as long as the byte that it begins with says.
SseOutcome sse_outcome(std::string_view text, size_t step) {
  SseOutcome outcome;
  stet::SseParser parser(256);
  try {
    for (size_t at = 0; at < text.size();) {
      const size_t n = step != 0 ? step : static_cast<uint8_t>(text[at]) % 17 + 1;
      parser.feed(text.substr(at, n),
                  [&](const stet::SseEvent& e) { outcome.events.push_back(e.name + '\n' + e.id + '\n' + e.data); });
      at += n;
    }
    outcome.at_boundary = parser.at_boundary();
  } catch (const stet::Error& e) {
    if (e.code() != stet::Code::kInput) std::abort();
    outcome.refused = true;
  }
  return outcome;
}

void fuzz_sse(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const SseOutcome whole = sse_outcome(text, size + 1);
  if (!(sse_outcome(text, 1) == whole) || !(sse_outcome(text, 0) == whole)) std::abort();
}

}  // namespace

#ifndef STET_FUZZ_IN_TESTS  // a test program holds several of them
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_sse(data, size);
  return 0;
}
#endif
