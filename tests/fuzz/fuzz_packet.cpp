// Feeds arbitrary bytes to the reader of events and to the judge of benchmarks. The first byte chooses: events under a
// fixed plan (even), or a plan over fixed events (odd). Anything but a clean refusal is a bug; so is an event log that
// is accepted and would be written in another way, and a packet that is judged in two ways.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lab/packet/judge.h"
#include "lab/packet/packet_files.h"
#include "lab/record/event_lines.h"

namespace {

constexpr std::string_view kPacketPlan =
    R"({"kind":"bench","suite":{"id":"s","version":1,"sha256":"aa","cold":true,"repeats_allowed":false,"steps":[{"id":"letter","class":"prose"},)"
    R"({"id":"review","class":"code","expect":"x"}]},"arms":[{"name":"A","role":"teacher","starts":2,"speculative":false,"fixed_length":false},)"
    R"({"name":"B","role":"candidate","starts":1,"speculative":true,"fixed_length":true}],"teacher":null})";

void require_packet(bool holds) {
  if (!holds) std::abort();
}

std::string judged_twice(const stet::Packet& packet) {
  const std::string results = stet::recompute_results(packet);
  require_packet(results == stet::recompute_results(packet));
  return results;
}

stet::Packet packet_of_text(std::string_view events, std::string_view plan) {
  stet::Packet packet = stet::packet_of_events(stet::read_events(events));
  packet.plan_json = plan;
  return packet;
}

// Starts, requests, measures and notes by themselves, each as the writer has it.
void require_one_spelling(std::string_view events, const stet::EventLog& log) {
  for (const stet::StartRecord& s : log.starts)
    require_packet(events.find(stet::start_line(s)) != std::string_view::npos);
  for (const stet::RequestRecord& r : log.requests)
    require_packet(events.find(stet::request_lines(r)) != std::string_view::npos);
  for (const stet::MeasureRecord& m : log.measures)
    require_packet(events.find(stet::measure_line(m)) != std::string_view::npos);
}

std::string fixed_events() {
  stet::RequestRecord r;
  r.id = "A.0.0";
  r.arm = "A";
  r.step_id = "letter";
  for (int32_t i = 0; i < 4; ++i) {
    r.chunks.emplace_back();
    r.chunks.back().client_ns = i;
    r.chunks.back().token_ids = std::vector<int32_t>{i};
  }
  r.end_ns = 9;
  return stet::plan_line(std::string(64, 'a')) + stet::start_line({"A", 0, true, "{}", 0}) + stet::request_lines(r);
}

void fuzz_packet(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0) {
      const stet::EventLog log = stet::read_events(text);
      require_one_spelling(text, log);
      (void)judged_twice(packet_of_text(text, kPacketPlan));
    } else {
      (void)judged_twice(packet_of_text(fixed_events(), text));
    }
  } catch (const stet::Error& e) {
    require_packet(e.code() == stet::Code::kInput || e.code() == stet::Code::kUnsupported);
  }
}

}  // namespace

#ifndef STET_FUZZ_IN_TESTS  // a test program holds several of them
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_packet(data, size);
  return 0;
}
#endif
