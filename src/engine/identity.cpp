#include "engine/identity.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/build_id.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/numerics_version.h"
#include "device/cgroup.h"
#include "device/cpu_model.h"
#include "engine/build_info.h"
#include "engine/file_hashes.h"
#include "engine/model_names.h"
#include "engine/parts.h"
#include "weights/summary.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUnproven = "unproven";
constexpr const char* kCpuFolder = "/sys/devices/system/cpu/cpu0/cpufreq/";

Json or_unproven(const std::string& text) { return text.empty() ? Json(kUnproven) : Json(text); }

Json small_text(const std::string& path) {
  std::optional<std::string> text = read_small_file(path);
  while (text && text->ends_with('\n')) text->pop_back();
  return or_unproven(text.value_or(""));
}

Json small_number(const std::string& path) {
  const Json text = small_text(path);
  const std::optional<uint64_t> value = whole_number(text.get<std::string>());
  return value ? Json(*value) : Json(kUnproven);
}

Json libraries() {
  Json list = Json::array();
  for (const std::string& path : mapped_code_files()) {
    const FileHash hash = file_hash(path);
    list.push_back({{"name", file_name(path)}, {"sha256", or_unproven(hash.sha256)}});
  }
  return list.empty() ? Json(kUnproven) : list;
}

std::string kernel_release() {
  struct utsname system = {};
  return ::uname(&system) == 0 ? system.release : "";
}

Json memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? Json(static_cast<uint64_t>(pages) * static_cast<uint64_t>(page)) : Json(kUnproven);
}

Json process_json() {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return {{"program", "stet"},
          {"version", STET_BUILD_VERSION},
          {"build_id", or_unproven(build_id())},
          {"commit", STET_BUILD_COMMIT},
          {"commit_state", STET_BUILD_STATE},
          {"compiler", STET_BUILD_COMPILER},
          {"build_type", STET_BUILD_TYPE},
          {"flags", STET_BUILD_FLAGS},
          {"numerics_version", kNumericsVersion},
          {"libraries", libraries()},
          {"cpu_model", or_unproven(cpu_model())},
          {"cpu_governor", small_text(std::string(kCpuFolder) + "scaling_governor")},
          {"cpu_max_khz", small_number(std::string(kCpuFolder) + "cpuinfo_max_freq")},
          {"cpu_cores_online", cores > 0 ? Json(cores) : Json(kUnproven)},
          {"memory_bytes", memory_bytes()},
          {"kernel_release", or_unproven(kernel_release())}};
}

// Hash of one file, or of the lines of several.
std::string combined_hash(const Json& files) {
  if (files.empty()) return "";
  if (files.size() == 1) return files[0]["sha256"].get<std::string>();
  std::string lines;
  for (const Json& f : files)
    lines += fmt::format("{}  {}  {}\n", f["sha256"].get<std::string>(), f["bytes"].get<uint64_t>(),
                         f["name"].get<std::string>());
  return sha256_hex(lines.data(), lines.size());
}

Json hashed_files(const TensorSource& source) {
  Json files = Json::array();
  for (const SourceFile& file : source.files()) {
    const FileHash hash = file_hash(file.name);
    files.push_back({{"name", file_name(file.name)}, {"bytes", hash.bytes}, {"sha256", or_unproven(hash.sha256)}});
  }
  return files;
}

std::string template_hash(const Engine::Parts& parts) {
  if (parts.chat == nullptr) return "";
  const std::string& text = parts.chat->identity();
  return sha256_hex(text.data(), text.size());
}

Json weight_formats(const TensorSource& source) {
  Json list = Json::array();
  for (const FormatSummary& f : summarize(source, "").formats)
    list.push_back({{"format", f.format}, {"bytes", f.bytes}});
  return list;
}

void add_files(Json& json, const Engine::Parts& parts, bool hash_files) {
  const Options& o = parts.options;
  const Json files = hash_files ? hashed_files(*parts.source) : Json::array();
  json["model_sha256"] = or_unproven(combined_hash(files));
  json["model_files"] = files.empty() ? Json(kUnproven) : files;
  json["tokenizer_sha256"] = or_unproven(parts.tokenizer ? parts.tokenizer->vocab_hash() : "");
  json["chat_template_sha256"] = or_unproven(template_hash(parts));
  json["pack"] = or_unproven(parts.info.pack_key);
  json["draft"] = std::string(parts.draft_kind->name);
  const std::string draft_file = draft_argument(o.draft);
  Json draft = Json::array();
  if (parts.draft_kind->own) draft = files;  // a part of the model
  if (hash_files && !draft_file.empty()) draft = hashed_files(*open_model(draft_file, o.cache_dir));
  json["draft_sha256"] = or_unproven(combined_hash(draft));
}

}  // namespace

std::string process_identity() { return process_json().dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string engine_identity(const Engine& engine, bool hash_files) {
  const Engine::Parts& parts = engine.parts();
  const EngineInfo& info = parts.info;
  Json json = process_json();
  json["model"] = file_name(info.model_name);
  json["architecture"] = info.architecture;
  json["synthetic"] = info.synthetic;
  json["weight_formats"] = weight_formats(*parts.source);
  add_files(json, parts, hash_files);
  json["draft_depth"] = info.draft_depth;
  json["history_accelerated"] = info.history_accelerated;
  json["profile"] = info.profile;
  json["activations"] = info.activations;
  json["isa"] = info.isa;
  json["kv"] = info.kv;
  json["replay"] = parts.options.replay;
  json["context"] = info.context;
  json["prompt_rows"] = parts.options.prompt_rows;
  json["threads"] = info.threads;
  json["pin"] = parts.options.pin;
  json["lists_key"] = or_unproven(parts.decoder->lists_key());
  json["qualified"] = info.qualified;
  json["device"] = info.device;
  if (info.device == "cpu") return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  json["device_name"] = info.device_name;
  // Which card it was can be compared, and says nothing else.
  json["device_uuid_sha256"] = sha256_hex(info.device_uuid.data(), info.device_uuid.size());
  json["device_driver_cuda"] = info.device_driver;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stet
