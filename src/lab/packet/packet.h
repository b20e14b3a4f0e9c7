// A packet: a folder that lets a stranger recompute every figure and verdict of a run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/record/events.h"

namespace stet {

// Everything but the prompts and answers is checked for what must not be in a packet (scrub.h): Error(kUsage) says what
// was found and where. What a model answers is not checked, because it is made from the weights and the prompt.
//
// Writes NAME.partial while the run goes on; finish() makes it NAME. A process that dies leaves NAME.partial, which
// says incomplete.
class PacketWriter {
 public:
  // plan_json: the frozen plan, exactly these bytes. Throws Error(kUsage) when NAME or NAME.partial exists.
  PacketWriter(const std::string& path, std::string_view plan_json);
  ~PacketWriter();
  PacketWriter(const PacketWriter&) = delete;
  PacketWriter& operator=(const PacketWriter&) = delete;

  const std::string& plan_sha256() const;
  // Each is on disk when the function returns. A request may be handed over as it goes (its chunks are kept in memory
  // until then).
  void add(const StartRecord& start);
  void add(const RequestRecord& request);
  void add(const MeasureRecord& measure);
  // Anything else worth keeping: an object of a named type.
  void note(std::string_view type, std::string_view json_object);

  // Computes results.json from what was written (as `stet verify` will), writes identity and manifest, renames. Returns
  // results.json.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Packet {
  std::string path;
  std::string plan_json, plan_sha256;
  std::string identity_json;
  std::string results_json;  // as stored
  std::vector<StartRecord> starts;
  std::vector<RequestRecord> requests;
  std::vector<MeasureRecord> measures;
  std::vector<std::pair<std::string, std::string>> notes;  // (type, object)
};

// Checks the manifest and reads everything. Throws Error(kInput) naming the file and what is wrong (changed, missing,
// additional, incomplete, not understood).
Packet read_packet(const std::string& path);

// What results.json must be: a pure function of plan, identity and events. Kinds of plan register how they are judged
// (judge.h).
std::string recompute_results(const Packet& packet);

}  // namespace stet
