#include "lab/packet/manifest.h"

#include <charconv>

#include "base/error.h"
#include "base/hash.h"

namespace stet {
namespace {

constexpr size_t kSha256Digits = 64;
constexpr std::string_view kGap = "  ";

bool is_sha256(std::string_view text) {
  return text.size() == kSha256Digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

ManifestEntry read_line(std::string_view line, size_t number) {
  const size_t first = line.find(kGap);
  const size_t second = first == std::string_view::npos ? first : line.find(kGap, first + kGap.size());
  if (second == std::string_view::npos) fail(Code::kInput, "MANIFEST, line {}: not 'sha256  bytes  name'", number);
  ManifestEntry entry;
  entry.sha256 = line.substr(0, first);
  const std::string_view bytes = line.substr(first + kGap.size(), second - first - kGap.size());
  entry.name = line.substr(second + kGap.size());
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), entry.bytes);
  if (!is_sha256(entry.sha256) || error != std::errc() || end != bytes.data() + bytes.size())
    fail(Code::kInput, "MANIFEST, line {}: not 'sha256  bytes  name'", number);
  if (entry.name.empty() || entry.name.find('/') != std::string::npos || entry.name.starts_with('.'))
    fail(Code::kInput, "MANIFEST, line {}: '{}' is no name of a file in a packet", number, entry.name);
  return entry;
}

}  // namespace

std::string manifest_text(const std::vector<ManifestEntry>& entries) {
  std::string text;
  for (const ManifestEntry& e : entries) text += fmt::format("{}{}{}{}{}\n", e.sha256, kGap, e.bytes, kGap, e.name);
  return text;
}

std::vector<ManifestEntry> read_manifest(std::string_view text) {
  std::vector<ManifestEntry> entries;
  const std::string_view whole = text;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) fail(Code::kInput, "MANIFEST, line {}: cut off before its end", number);
    entries.push_back(read_line(text.substr(0, end), number));
    if (entries.size() > 1 && entries[entries.size() - 2].name >= entries.back().name)
      fail(Code::kInput, "MANIFEST, line {}: the names are not in order", number);
    text.remove_prefix(end + 1);
  }
  if (manifest_text(entries) != whole) fail(Code::kInput, "MANIFEST: not as stet writes it");
  return entries;
}

ManifestEntry manifest_entry(std::string_view name, std::string_view content) {
  return {sha256_hex(content.data(), content.size()), content.size(), std::string(name)};
}

}  // namespace stet
