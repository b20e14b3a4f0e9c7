#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "lab/packet/manifest.h"
#include "lab/packet/packet.h"
#include "lab/packet/packet_files.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr std::string_view kFiles[] = {kEventsFile, kIdentityFile, kPlanFile, kResultsFile};
constexpr std::string_view kSignatures[] = {"MANIFEST.sig", "plan.json.sig"};

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_folder(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::set<std::string> list_folder(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) fail(Code::kInput, "{}: cannot be read: {}", path, std::strerror(errno));
  std::set<std::string> names;
  while (const dirent* entry = ::readdir(folder)) names.insert(entry->d_name);
  ::closedir(folder);
  names.erase(".");
  names.erase("..");
  return names;
}

std::string read_file(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) fail(Code::kInput, "{}: missing", path);
  if (!S_ISREG(status.st_mode)) fail(Code::kInput, "{}: not a regular file", path);
  if (static_cast<uint64_t>(status.st_size) > kMaxFileBytes)
    fail(Code::kInput, "{}: {} bytes; a file of a packet has at most {}", path, status.st_size, kMaxFileBytes);
  const MappedFile file(path);
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

void check_complete(const std::string& path) {
  if (!is_folder(path)) {
    if (is_folder(path + std::string(kPartial)))
      fail(Code::kInput, "{}: incomplete: its run did not finish, {}{} holds what there is", path, path, kPartial);
    fail(Code::kInput, "{}: no such folder", path);
  }
  if (path.ends_with(kPartial)) fail(Code::kInput, "{}: incomplete: the run that wrote it did not finish", path);
}

// A member's content, compared with what the manifest says of it.
std::string checked_file(const std::string& path, const ManifestEntry& entry) {
  std::string content = read_file(path + "/" + entry.name);
  if (content.size() != entry.bytes)
    fail(Code::kInput, "{}/{}: changed: {} bytes where the manifest says {}", path, entry.name, content.size(),
         entry.bytes);
  if (sha256_hex(content.data(), content.size()) != entry.sha256)
    fail(Code::kInput, "{}/{}: changed: its SHA-256 is not the one in the manifest", path, entry.name);
  return content;
}

void check_names(const std::string& path, const std::vector<ManifestEntry>& manifest) {
  std::vector<std::string> listed;
  for (const ManifestEntry& entry : manifest) {
    if (!contains(kFiles, entry.name))
      fail(Code::kInput, "{}/MANIFEST: lists '{}', which no packet has", path, entry.name);
    listed.push_back(entry.name);
  }
  for (const std::string_view name : kFiles)
    if (!contains(listed, name)) fail(Code::kInput, "{}/MANIFEST: does not list {}", path, name);
  for (const std::string& name : list_folder(path))
    if (!contains(listed, name) && name != kManifestFile && !contains(kSignatures, name))
      fail(Code::kInput, "{}/{}: additional: the manifest does not list it", path, name);
}

void check_identity(const std::string& path, const Packet& packet) {
  const std::string where = fmt::format("{}/{}", path, kIdentityFile);
  const Json json = parse_json(packet.identity_json, where);
  StrictObject object(json, where);
  if (identity_file_text(object.object("client"), packet.starts) != packet.identity_json)
    fail(Code::kInput, "{}: does not say what the starts in {} said of themselves", where, kEventsFile);
}

}  // namespace

std::string identity_file_text(std::string_view client_json, std::span<const StartRecord> starts) {
  Json json = {{"client", parse_json(client_json, "the client's identity")}, {"starts", Json::array()}};
  for (const StartRecord& s : starts)
    json["starts"].push_back({{"arm", s.arm},
                              {"start", s.start},
                              {"fresh", s.fresh},
                              {"identity", parse_json(s.identity_json, "the identity of a start")}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Packet packet_of_events(EventLog log) {
  Packet packet;
  packet.plan_sha256 = std::move(log.plan_sha256);
  packet.starts = std::move(log.starts);
  packet.requests = std::move(log.requests);
  packet.measures = std::move(log.measures);
  packet.notes = std::move(log.notes);
  return packet;
}

Packet read_packet(const std::string& given_path) {
  std::string path = given_path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  check_complete(path);
  const std::string manifest_name = path + "/" + std::string(kManifestFile);
  struct stat status = {};
  if (::lstat(manifest_name.c_str(), &status) != 0)
    fail(Code::kInput, "{}: not a packet, or incomplete: it has no {}", path, kManifestFile);
  const std::vector<ManifestEntry> manifest = read_manifest(read_file(manifest_name));
  check_names(path, manifest);
  std::map<std::string, std::string, std::less<>> content;
  for (const ManifestEntry& entry : manifest) content[entry.name] = checked_file(path, entry);
  Packet packet = packet_of_events(read_events(content.find(kEventsFile)->second));
  packet.path = path;
  packet.plan_json = content.find(kPlanFile)->second;
  packet.identity_json = content.find(kIdentityFile)->second;
  packet.results_json = content.find(kResultsFile)->second;
  if (const std::string hash = sha256_hex(packet.plan_json.data(), packet.plan_json.size()); hash != packet.plan_sha256)
    fail(Code::kInput, "{}: the events belong to the plan {}, and {} is {}", path, packet.plan_sha256, kPlanFile, hash);
  check_identity(path, packet);
  return packet;
}

}  // namespace stet
