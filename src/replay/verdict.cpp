#include "replay/verdict.h"

#include <sys/stat.h>

#include <charconv>
#include <span>

#include "base/atomic_file.h"
#include "base/build_id.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace stet {
namespace {

constexpr uint64_t kMaxBytes = 4096;
constexpr std::string_view kCompared = "\ncompared ";

std::string encode(const std::string& key, uint64_t rows) {
  const std::string text = fmt::format("stet verdict 1\nkey {}{}{}\n", key, kCompared, rows);
  return text + fmt::format("xxh3 {:016x}\n", xxh3(text.data(), text.size()));
}

}  // namespace

VerdictStore::VerdictStore(const std::string& cache_dir) : root_(cache_dir), folder_(root_.path() + "/verdicts") {}

std::optional<uint64_t> VerdictStore::find(const std::string& key) const {
  if (!folder_.has(key)) return std::nullopt;
  const MappedFile file(folder_.path_of(key));
  if (file.size() > kMaxBytes) return std::nullopt;
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  const size_t at = text.find(kCompared);
  if (at == std::string::npos) return std::nullopt;
  uint64_t rows = 0;
  std::from_chars(text.data() + at + kCompared.size(), text.data() + text.size(), rows);
  // Sound when it is what its content would be written as.
  return encode(key, rows) == text ? std::optional(rows) : std::nullopt;
}

void VerdictStore::keep(const std::string& key, uint64_t compared_rows) const {
  AtomicFile::Options options;
  options.overwrite = true;
  options.mode = 0600;
  AtomicFile file(folder_.path_of(key), options);
  const std::string text = encode(key, compared_rows);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

VerdictStore::Cleared VerdictStore::clear(const std::string& cache_dir) {
  Cleared cleared;
  struct stat status = {};
  if (::lstat((cache_dir + "/verdicts").c_str(), &status) != 0) return cleared;
  const VerdictStore store(cache_dir);
  for (const CacheEntry& entry : store.folder_.list()) {
    if (entry.name.size() != 64 || entry.name.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    store.folder_.remove(entry.name);
    ++cleared.files;
    cleared.bytes += entry.bytes;
  }
  return cleared;
}

Compared compare_once(const std::string& cache_dir, const std::function<std::string()>& key,
                      const std::function<uint64_t()>& compare) {
  if (cache_dir.empty() || build_id().empty()) return {compare(), false, ""};
  const VerdictStore store(cache_dir);
  const std::string name = key();
  if (const auto rows = store.find(name)) return {*rows, true, ""};
  Compared fresh{compare(), false, ""};
  try {
    store.keep(name, fresh.rows);
  } catch (const Error& e) {
    // The comparison stands; the next start only has to make it again.
    if (e.code() != Code::kResource) throw;
    fresh.not_kept = e.what();
  }
  return fresh;
}

}  // namespace stet
