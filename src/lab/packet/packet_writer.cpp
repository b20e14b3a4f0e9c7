#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "lab/identity/identity.h"
#include "lab/packet/folder.h"
#include "lab/packet/judge.h"
#include "lab/packet/manifest.h"
#include "lab/packet/packet.h"
#include "lab/packet/packet_files.h"
#include "lab/packet/scrub.h"
#include "lab/record/event_lines.h"
#include "base/strict_json.h"

namespace stet {
namespace {

void require_clean(const std::optional<std::string>& found, std::string_view where) {
  if (found)
    fail(Code::kUsage,
         "{} holds {}, which must not be in a packet; take it out (names of files instead of paths, no keys)", where,
         *found);
}

// A plan that its judge does not understand is refused before anything is measured.
void check_plan(std::string_view plan_json, const std::string& sha256) {
  Packet empty;
  empty.plan_json = plan_json;
  empty.plan_sha256 = sha256;
  empty.identity_json = identity_file_text("{}", {});
  (void)recompute_results(empty);
}

}  // namespace

struct PacketWriter::Impl {
  std::string plan_json, plan_sha256;
  PrivateNames names = private_names();
  std::optional<PacketFolder> folder;
  EventReader reader;  // reads along: what could not be read back is refused when it is written
  bool finished = false;

  void check(std::string_view json, ScrubScope scope, std::string_view where) const {
    require_clean(private_json_content(json, names, scope), where);
  }

  void write(const std::string& lines) {
    if (finished) fail(Code::kInternal, "internal error: the packet {} is finished", folder->partial());
    for (std::string_view rest = lines; !rest.empty();) {
      const size_t end = rest.find('\n');
      try {
        reader.line(rest.substr(0, end));
      } catch (const Error& e) {
        fail(Code::kInternal, "internal error: an event that could not be read back: {}", e.what());
      }
      rest.remove_prefix(end + 1);
    }
    folder->append_events(lines);
  }
};

PacketWriter::PacketWriter(const std::string& path, std::string_view plan_json) : impl_(std::make_unique<Impl>()) {
  impl_->plan_json = plan_json;
  impl_->plan_sha256 = sha256_hex(plan_json.data(), plan_json.size());
  impl_->check(plan_json, ScrubScope::metadata, "the plan");
  check_plan(plan_json, impl_->plan_sha256);
  impl_->folder.emplace(path);
  impl_->folder->write(kPlanFile, plan_json);
  impl_->write(plan_line(impl_->plan_sha256));
}

PacketWriter::~PacketWriter() = default;

const std::string& PacketWriter::plan_sha256() const { return impl_->plan_sha256; }

void PacketWriter::add(const StartRecord& start) {
  const std::string line = start_line(start);
  impl_->check(line, ScrubScope::metadata, fmt::format("the identity of start {} of arm '{}'", start.start, start.arm));
  impl_->write(line);
}

// What a model answers is made from its weights and the prompt, and the prompt is checked; an error is the client's own
// text, and is kept without what must not be in it.
void PacketWriter::add(const RequestRecord& request) {
  const std::string where = fmt::format("request '{}'", request.id);
  for (const std::string* text :
       {&request.id, &request.arm, &request.step_id, &request.step_class, &request.finish_reason})
    require_clean(private_content(*text, impl_->names, ScrubScope::metadata), where);
  if (!request.sampling.empty()) impl_->check(request.sampling, ScrubScope::metadata, where);
  require_clean(private_content(request.prompt, impl_->names, ScrubScope::prompt), "the prompt of " + where);
  if (const auto found = private_content(request.error, impl_->names, ScrubScope::metadata)) {
    RequestRecord withheld = request;
    withheld.error = fmt::format("withheld: the message held {}", *found);
    return impl_->write(request_lines(withheld));
  }
  impl_->write(request_lines(request));
}

void PacketWriter::add(const MeasureRecord& measure) {
  const std::string line = measure_line(measure);
  impl_->check(line, ScrubScope::metadata, fmt::format("the measure '{}'", measure.point));
  impl_->write(line);
}

void PacketWriter::note(std::string_view type, std::string_view json_object) {
  const std::string line = note_line(type, json_object);
  impl_->check(line, ScrubScope::metadata, fmt::format("the note '{}'", type));
  impl_->write(line);
}

std::string PacketWriter::finish() {
  Impl& w = *impl_;
  if (w.finished) fail(Code::kInternal, "internal error: the packet {} is finished", w.folder->partial());
  w.finished = true;
  // What stands on disk is judged, not what is remembered.
  const MappedFile events(w.folder->file(kEventsFile));
  const std::string_view text(reinterpret_cast<const char*>(events.bytes().data()), events.bytes().size());
  Packet packet = packet_of_events(read_events(text));
  packet.plan_json = w.plan_json;
  packet.identity_json = identity_file_text(client_identity(), packet.starts);
  w.check(packet.identity_json, ScrubScope::metadata, "the identity");
  const std::string results = recompute_results(packet);
  w.folder->write(kIdentityFile, packet.identity_json);
  w.folder->write(kResultsFile, results);
  w.folder->write(kManifestFile,
                  manifest_text({manifest_entry(kEventsFile, text), manifest_entry(kIdentityFile, packet.identity_json),
                                 manifest_entry(kPlanFile, w.plan_json), manifest_entry(kResultsFile, results)}));
  w.folder->finish();
  return results;
}

}  // namespace stet
