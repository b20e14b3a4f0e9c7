#include "lab/packet/teacher.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "lab/packet/manifest.h"

namespace stet {
namespace {

constexpr const char* kUnprovenBasis = "unproven";
constexpr const char* kBasis[] = {
    "model_sha256", "tokenizer_sha256", "chat_template_sha256", "numerics_version", "profile", "activations", "kv"};

std::string read_whole(const std::string& path) {
  const MappedFile file(path);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string hash_of(const std::string& text) { return sha256_hex(text.data(), text.size()); }

const Json* teacher_entry(const Json& results) {
  const Json* found = nullptr;
  for (const Json& arm : results.at("results").at("arms"))
    if (arm.at("role") == "teacher") found = &arm;
  return found;
}

// The links from the plan to the answers. Throws Error(kInput) or an exception of the JSON library where one is broken.
Teacher follow(const std::string& body, const std::string& manifest_hash) {
  const Json note = parse_json(body, "the note 'teacher'");
  StrictObject object(note, "the note 'teacher'");
  const std::string manifest = object.text("manifest"), results = object.text("results");
  if (hash_of(manifest) != manifest_hash)
    fail(Code::kInput, "the plan names the teacher packet {}, and the note holds {}", manifest_hash, hash_of(manifest));
  bool listed = false;
  for (const ManifestEntry& entry : read_manifest(manifest))
    listed = listed || (entry.name == kResultsFile && entry.sha256 == hash_of(results));
  if (!listed) fail(Code::kInput, "the teacher's results are not those of its manifest");
  const Json json = parse_json(results, "the teacher's results");
  const Json* arm = teacher_entry(json);
  if (arm == nullptr) fail(Code::kInput, "the packet that the plan names has no teacher");
  return teacher_of_arm(*arm);
}

}  // namespace

std::string manifest_sha256(const std::string& packet_path) {
  return hash_of(read_whole(packet_path + "/" + std::string(kManifestFile)));
}

std::string teacher_note(const std::string& packet_path) {
  const Packet packet = read_packet(packet_path);
  if (recompute_results(packet) != packet.results_json)
    fail(Code::kInput, "{}: its results are not what its events give (stet verify says more)", packet_path);
  const Json note = {{"manifest", read_whole(packet_path + "/" + std::string(kManifestFile))},
                     {"results", packet.results_json}};
  std::string body = dump_line(note);
  Teacher teacher;
  try {
    teacher = follow(body, manifest_sha256(packet_path));
  } catch (const nlohmann::json::exception&) {
    fail(Code::kUsage, "{}: is no packet of stet bench, and so no teacher", packet_path);
  }
  if (!teacher.problem.empty()) fail(Code::kUsage, "{}: is no teacher: {}", packet_path, teacher.problem);
  return body;
}

Teacher teacher_of_notes(const Packet& packet, const std::string& manifest_hash) {
  Teacher none;
  const std::string* body = nullptr;
  size_t notes = 0;
  for (const auto& [name, text] : packet.notes)
    if (name == "teacher") {
      body = &text;
      ++notes;
    }
  if (notes != 1) {
    none.problem = fmt::format("{} notes hold the teacher's answers; one has to", notes);
    return none;
  }
  try {
    return follow(*body, manifest_hash);
  } catch (const Error& e) {
    none.problem = e.what();
  } catch (const nlohmann::json::exception&) {
    none.problem = "the teacher's results are not understood";
  }
  return none;
}

Teacher teacher_of_arm(const Json& arm) {
  Teacher teacher;
  teacher.identity = arm.at("identity");
  if (arm.at("exactness").at("status") != "proved")
    teacher.problem =
        fmt::format("its repeat test did not hold ({})", arm.at("exactness").at("reason").get<std::string>());
  for (const Json& answer : arm.at("answers")) {
    TeacherAnswer a;
    a.prompt_sha256 = answer.at("prompt_sha256").get<std::string>();
    a.token_ids = answer.at("token_ids").get<std::vector<int32_t>>();
    a.cancelled = answer.at("cancelled").get<bool>();
    teacher.answers[answer.at("step").get<std::string>()] = std::move(a);
  }
  return teacher;
}

Json identity_basis(const std::string& identity_json) {
  const Json identity = parse_json(identity_json, "the identity of a start");
  Json basis = Json::object();
  for (const char* member : kBasis) basis[member] = identity.contains(member) ? identity[member] : Json(kUnprovenBasis);
  return basis;
}

std::string basis_difference(const Json& a, const Json& b) {
  for (const char* member : kBasis) {
    const Json &x = a.at(member), &y = b.at(member);
    if (x == kUnprovenBasis || y == kUnprovenBasis || x == y) continue;
    return fmt::format("{} is {} and {}", member, dump_line(x), dump_line(y));
  }
  return "";
}

}  // namespace stet
