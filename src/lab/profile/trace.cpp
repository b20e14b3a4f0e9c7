#include "lab/profile/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stet {

std::string chrome_trace(std::span<const TraceSpan> spans, const std::string& about) {
  using nlohmann::json;
  std::vector<std::string> tracks;
  json events = json::array();
  events.push_back({{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", about}}}});
  for (const TraceSpan& span : spans) {
    auto at = std::find(tracks.begin(), tracks.end(), span.track);
    if (at == tracks.end()) {
      at = tracks.insert(tracks.end(), span.track);
      const size_t tid = tracks.size();
      events.push_back(
          {{"ph", "M"}, {"pid", 1}, {"tid", tid}, {"name", "thread_name"}, {"args", {{"name", span.track}}}});
      events.push_back(
          {{"ph", "M"}, {"pid", 1}, {"tid", tid}, {"name", "thread_sort_index"}, {"args", {{"sort_index", tid}}}});
    }
    json event = {{"ph", "X"},
                  {"pid", 1},
                  {"tid", at - tracks.begin() + 1},
                  {"name", span.name},
                  {"cat", span.track},
                  {"ts", span.start * 1e6},
                  {"dur", span.seconds * 1e6}};
    if (span.bytes != 0)
      event["args"] = {{"bytes", span.bytes},
                       {"GB/s", span.seconds > 0 ? static_cast<double>(span.bytes) / span.seconds / 1e9 : 0.0}};
    events.push_back(std::move(event));
  }
  const json out = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}, {"otherData", {{"about", about}}}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace stet
