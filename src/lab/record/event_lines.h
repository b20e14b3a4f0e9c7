// events.jsonl: one JSON object a line.
//
//   {"type":"plan","sha256":...}                     first, once: the plan that was frozen before anything was sent
//   {"type":"start","arm":...,"start":0,...}         a process, before its requests
//   {"type":"request",...}                           a request begins; its chunks and its end follow at once
//   {"type":"chunk","client_ns":...,...}             a frame of the answer
//   {"type":"end",...}                               how the answer ended
//   {"type":"measure",...}                           figures that another program printed
//   {"type":"note","name":...,"body":{...}}          anything else
//
// What is optional in events.h is left out where it is absent. There is one way to write a record, and nothing else is
// read: a line with members in another order, spaces or a doubled member is refused like any other change.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/record/events.h"

namespace stet {

// Each ends with a line break. Throw Error(kInternal) for a record that could not be read back: times that run
// backwards, an identity that is no JSON object.
std::string plan_line(std::string_view plan_sha256);
std::string start_line(const StartRecord& start);
std::string request_lines(const RequestRecord& request);  // the three kinds that follow, in order
std::string request_begin_line(const RequestRecord& request);
std::string chunk_line(const ChunkEvent& chunk);
std::string request_end_line(const RequestRecord& request);
std::string measure_line(const MeasureRecord& measure);
std::string note_line(std::string_view name, std::string_view json_object);

struct EventLog {
  std::string plan_sha256;
  std::vector<StartRecord> starts;
  std::vector<RequestRecord> requests;
  std::vector<MeasureRecord> measures;
  std::vector<std::pair<std::string, std::string>> notes;  // (name, object as one line)
};

// Reads line by line. Everything throws Error(kInput) that names the line: an unknown type or member, a missing or
// mistyped one, a line out of order (a chunk outside a request, a request before its start, an index that does not
// rise, time that runs backwards), a doubled id, a request without its end. After an error the reader is of no more
// use.
class EventReader {
 public:
  EventReader();
  ~EventReader();
  void line(std::string_view text);  // without its line break
  // What was read; a request must not be open.
  EventLog finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole file. Also refuses a last line without a line break.
EventLog read_events(std::string_view text);

// "content", "reasoning", "tool", "none".
std::string_view channel_name(Channel channel);

}  // namespace stet
