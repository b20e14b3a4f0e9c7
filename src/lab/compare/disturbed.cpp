#include "lab/compare/disturbed.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lab/metrics/system.h"
#include "base/strict_json.h"

namespace stet {
namespace {

using StartKey = std::pair<std::string, uint32_t>;
using Numbers = std::map<StartKey, std::optional<uint32_t>>;  // as it ran -> as it counts; nothing: repeated

std::string stolen(const SystemSample& before, const SystemSample& after) {
  for (const std::string& fault : system_changes(before, after).faults)
    if (fault.starts_with("steal:")) return fault;
  return "";
}

// Starts beyond the plan, or of another arm than its turn, keep their numbers: the judge says what is wrong with them.
Numbers numbers_of(const ComparePlan& plan, const Packet& packet, std::vector<RepeatedStart>& repeated) {
  Numbers numbers;
  const std::vector<Leg> legs = legs_of(plan);
  size_t leg = 0;
  uint32_t again = 0;
  for (const StartRecord& start : packet.starts) {
    if (leg == legs.size() || start.arm != std::string(1, legs[leg].arm)) {
      numbers[{start.arm, start.start}] = start.start;
      continue;
    }
    const std::string why = again < *plan.disturbed_repeats ? stolen_from(packet, start.arm, start.start) : "";
    // The last of a run that ended early has nothing in its place.
    if (!why.empty() && &start != &packet.starts.back()) {
      repeated.push_back({start.arm, start.start, why});
      numbers[{start.arm, start.start}] = std::nullopt;
      ++again;
      continue;
    }
    numbers[{start.arm, start.start}] = legs[leg++].start;
    again = 0;
  }
  return numbers;
}

template <typename Record>
void renumber(const Numbers& numbers, std::vector<Record>& records) {
  std::erase_if(records, [&](Record& r) {
    const auto at = numbers.find({r.arm, r.start});
    if (at == numbers.end()) return false;
    if (at->second) r.start = *at->second;
    return !at->second;
  });
}

// Counters of a start, as the runner notes them.
void renumber_notes(const Numbers& numbers, std::vector<std::pair<std::string, std::string>>& notes) {
  std::erase_if(notes, [&](auto& note) {
    if (note.first != "counters") return false;
    Json body = parse_json(note.second, "a note of counters");
    if (!body.is_object() || !body.contains("arm") || !body["arm"].is_string() || !body.contains("start") ||
        !body["start"].is_number_unsigned())
      return false;
    const auto at = numbers.find({body["arm"].get<std::string>(), body["start"].get<uint32_t>()});
    if (at == numbers.end()) return false;
    if (!at->second) return true;
    body["start"] = *at->second;
    note.second = dump_line(body);
    return false;
  });
}

}  // namespace

std::string stolen_from(const Packet& packet, const std::string& arm, uint32_t start) {
  for (const RequestRecord& r : packet.requests)
    if (r.arm == arm && r.start == start)
      if (std::string why = stolen(r.before, r.after); !why.empty()) return why;
  for (const MeasureRecord& m : packet.measures)
    if (m.arm == arm && m.start == start)
      if (std::string why = stolen(m.before, m.after); !why.empty()) return why;
  return "";
}

CountedRun counted_run(const ComparePlan& plan, const Packet& packet) {
  CountedRun run{packet, {}};
  if (!plan.disturbed_repeats) return run;
  const Numbers numbers = numbers_of(plan, packet, run.repeated);
  renumber(numbers, run.packet.starts);
  renumber(numbers, run.packet.requests);
  renumber(numbers, run.packet.measures);
  renumber_notes(numbers, run.packet.notes);
  return run;
}

}  // namespace stet
