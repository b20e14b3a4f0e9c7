// stet cache: the packed weights that stet keeps.
#include <fmt/chrono.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/visible_text.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "device/cache_dir.h"
#include "device/topology.h"
#include "replay/verdict.h"
#include "weights/pack_cache.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

std::string shown_time(int64_t seconds) { return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(seconds)); }

std::string packs_text(const std::vector<CachedPack>& packs, const std::string& folder) {
  std::string text;
  uint64_t total = 0;
  for (const CachedPack& p : packs) {
    total += p.bytes;
    text += fmt::format("{:>11}  {}  used {}  {}\n", shown_bytes(p.bytes), p.key.substr(0, 16), shown_time(p.used_s),
                        p.label.empty() ? "(no name)" : visible_text(p.label));
    for (const std::string& source : p.sources) text += fmt::format("             from {}\n", visible_text(source));
    if (!p.problem.empty()) text += fmt::format("             unusable: {}\n", visible_text(p.problem));
  }
  return text + fmt::format("{} pack{}, {}, in {}\n", packs.size(), packs.size() == 1 ? "" : "s", shown_bytes(total),
                            visible_text(folder));
}

std::string packs_json(const std::vector<CachedPack>& packs, const std::string& folder) {
  Json j;
  j["directory"] = folder;
  j["packs"] = Json::array();
  for (const CachedPack& p : packs)
    j["packs"].push_back({{"key", p.key},
                          {"path", p.path},
                          {"bytes", p.bytes},
                          {"label", p.label},
                          {"sources", p.sources},
                          {"made", p.made_s},
                          {"used", p.used_s},
                          {"problem", p.problem.empty() ? Json(nullptr) : Json(p.problem)}});
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void clear(const std::string& folder, bool json) {
  ClearedCache cleared = clear_packs(folder);
  const VerdictStore::Cleared verdicts = VerdictStore::clear(folder);
  cleared.files += verdicts.files;
  cleared.bytes += verdicts.bytes;
  if (json) {
    const Json j = {{"directory", folder}, {"files", cleared.files}, {"bytes", cleared.bytes}, {"kept", cleared.kept}};
    write_out(j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    return;
  }
  write_out(
      fmt::format("removed {} files, {}, from {}\n", cleared.files, shown_bytes(cleared.bytes), visible_text(folder)));
  for (const std::string& path : cleared.kept) write_out(fmt::format("kept {}\n", visible_text(path)));
}

}  // namespace

int cache_main(std::span<const std::string> arguments) {
  std::string what;
  bool json = false;
  Flags flags("cache",
              "Lists, verifies or clears the packed weights that stet keeps; stet makes them again when needed.");
  flags.positional("ACTION", &what, "list, verify (recompute every checksum) or clear");
  flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
  if (!flags.parse(arguments)) return kExitOk;
  const std::string folder = CacheDir::default_path();
  if (what == "clear") {
    clear(folder, json);
    return kExitOk;
  }
  if (what != "list" && what != "verify")
    fail(Code::kUsage, "{}; choose one of list, verify, clear",
         what.empty() ? "stet cache needs an action" : fmt::format("stet cache has no action '{}'", what));
  LoadProgress progress(json);
  const std::vector<CachedPack> packs =
      what == "list" ? list_packs(folder) : verify_packs(folder, thread_budget().threads, std::ref(progress));
  progress.clear();
  write_out(json ? packs_json(packs, folder) : packs_text(packs, folder));
  size_t unusable = 0;
  for (const CachedPack& p : packs) unusable += !p.problem.empty();
  if (what == "verify" && unusable > 0)
    fail(Code::kInput, "{} of {} packs cannot be used; stet makes them again when needed, or clear them", unusable,
         packs.size());
  return kExitOk;
}

}  // namespace stet
