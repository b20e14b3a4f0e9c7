// MANIFEST: "sha256  bytes  name" of every other file of a packet, one a line, in the order of the names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

inline constexpr std::string_view kPlanFile = "plan.json";
inline constexpr std::string_view kIdentityFile = "identity.json";
inline constexpr std::string_view kEventsFile = "events.jsonl";
inline constexpr std::string_view kResultsFile = "results.json";
inline constexpr std::string_view kManifestFile = "MANIFEST";
inline constexpr std::string_view kPartial = ".partial";  // what the name of an unfinished packet ends in

struct ManifestEntry {
  std::string sha256;
  uint64_t bytes = 0;
  std::string name;
};

std::string manifest_text(const std::vector<ManifestEntry>& entries);
// Throws Error(kInput) that names the line, for a text that manifest_text() would not have written.
std::vector<ManifestEntry> read_manifest(std::string_view text);

ManifestEntry manifest_entry(std::string_view name, std::string_view content);

}  // namespace stet
