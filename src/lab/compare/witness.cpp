#include "lab/compare/witness.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/strict_json.h"

namespace stet {
namespace {

// Behind a prefix, or nothing.
std::optional<std::string> behind(const std::string& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

std::optional<uint32_t> whole(const std::string& text) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return n;
}

// Options whose effect a process counts or says without being asked for more.
std::optional<std::string> usual_counter(const OptionDifference& d) {
  static const std::map<std::string, std::string> kIdentity = {
      {"--isa", "isa"}, {"--device", "device"}, {"--threads", "threads"}, {"--kv", "kv"}, {"--replay", "replay"}, {"--pin", "pin"}};
  if (d.option == "--draft" && (d.a.empty() || d.a == "none")) return "proposed";
  if (d.option == "--draft-depth" && d.a.empty()) return "proposed";
  if (d.option == "--draft-depth" && whole(d.a)) return "deeper:" + d.a;
  const auto known = kIdentity.find(d.option);
  if (known == kIdentity.end() || d.b.empty() || d.b == "auto") return std::nullopt;
  return "identity:" + known->second + "=" + (d.b == "on" ? "true" : d.b);
}

std::string as_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// The member of this name, of the object or of an object in it.
const Json* find_member(const Json& object, const std::string& name) {
  if (!object.is_object()) return nullptr;
  const auto here = object.find(name);
  if (here != object.end()) return &*here;
  for (const auto& inner : object)
    if (const Json* found = find_member(inner, name)) return found;
  return nullptr;
}

std::optional<double> count_cycles(const Packet& packet, const std::string& arm, const std::string& counter) {
  const std::optional<std::string> deeper = behind(counter, "deeper:");
  bool reported = false;
  uint64_t n = 0;
  for (const RequestRecord& r : packet.requests) {
    if (r.arm != arm) continue;
    for (const ChunkEvent& c : r.chunks) {
      if (!c.depth || !c.accepted) continue;
      reported = true;
      n += deeper ? *c.depth > *whole(*deeper) : counter == "accepted" ? *c.accepted : *c.depth;
    }
  }
  return reported ? std::optional(static_cast<double>(n)) : std::nullopt;
}

std::optional<double> count_identity(const Packet& packet, const std::string& arm, const std::string& name,
                                     const std::string& value) {
  double n = 0;
  for (const StartRecord& start : packet.starts) {
    if (start.arm != arm) continue;
    const Json identity = parse_json(start.identity_json, "an identity");
    const Json* found = find_member(identity, name);
    if (found == nullptr) return std::nullopt;
    n += as_text(*found) == value;
  }
  return n;
}

std::optional<double> count_metric(const Packet& packet, const std::string& arm, const std::string& name) {
  std::optional<double> sum;
  for (const auto& [type, body] : packet.notes) {
    if (type != "counters") continue;
    const Json note = parse_json(body, "a note of counters");
    if (note.value("arm", "") != arm || !note.contains("growth") || !note["growth"].contains(name)) continue;
    sum = sum.value_or(0) + note["growth"][name].get<double>();
  }
  return sum;
}

std::optional<double> count_figure(const Packet& packet, const std::string& arm, const std::string& name) {
  std::optional<double> sum;
  for (const MeasureRecord& m : packet.measures) {
    if (m.arm != arm) continue;
    const Json figures = parse_json(m.figures_json, "figures");
    if (!figures.contains(name) || !figures[name].is_number()) return std::nullopt;
    sum = sum.value_or(0) + figures[name].get<double>();
  }
  return sum;
}

}  // namespace

std::optional<std::string> metric_of(const std::string& counter) { return behind(counter, "metrics:"); }

void check_counter(const std::string& counter) {
  const auto identity = behind(counter, "identity:");
  const auto deeper = behind(counter, "deeper:");
  const auto metric = metric_of(counter), figure = behind(counter, "figure:");
  const bool known = counter == "proposed" || counter == "accepted" || (deeper && whole(*deeper)) ||
                     (metric && !metric->empty()) || (figure && !figure->empty()) ||
                     (identity && identity->find('=') != std::string::npos && identity->find('=') > 0);
  if (!known)
    fail(Code::kUsage,
         "there is no counter '{}'; choose proposed, accepted, deeper:N, identity:NAME=VALUE, metrics:NAME or "
         "figure:NAME",
         counter);
}

Witness parse_witness(const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0)
    fail(Code::kUsage, "--witness '{}' is not OPTION=COUNTER, such as --draft=proposed", text);
  Witness witness{text.substr(0, sign), text.substr(sign + 1)};
  check_counter(witness.counter);
  return witness;
}

std::vector<Witness> witnesses_for(const ArmSpec& a, const ArmSpec& b, std::vector<Witness> given) {
  for (const OptionDifference& d : option_differences(a, b)) {
    if (std::any_of(given.begin(), given.end(), [&](const Witness& w) { return w.option == d.option; })) continue;
    const std::optional<std::string> usual = usual_counter(d);
    if (!usual)
      fail(Code::kUsage,
           "the arms differ in {} ('{}' and '{}'), and nothing would show that it did anything: name a counter that is "
           "0 "
           "in A and not 0 in B, as --witness {}=COUNTER",
           d.option, d.a, d.b, d.option);
    given.push_back({d.option, *usual});
  }
  return given;
}

std::optional<double> count_witness(const std::string& counter, const Packet& packet, const std::string& arm) {
  if (const auto metric = metric_of(counter)) return count_metric(packet, arm, *metric);
  if (const auto figure = behind(counter, "figure:")) return count_figure(packet, arm, *figure);
  if (const auto identity = behind(counter, "identity:")) {
    const size_t sign = identity->find('=');
    return count_identity(packet, arm, identity->substr(0, sign), identity->substr(sign + 1));
  }
  return count_cycles(packet, arm, counter);
}

}  // namespace stet
