#include "weights/pack_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "weights/pack_store.h"

namespace stet {
namespace {

constexpr int64_t kOldRecordTemporary_s = 600;  // records are written within milliseconds

bool exists(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Looking must not make the folder.
bool has_store(const std::string& cache_dir) { return exists(cache_dir) && exists(cache_dir + "/packs"); }

bool is_record_name(std::string_view name) {
  if (name.ends_with("-f32")) name.remove_suffix(4);
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A record that AtomicFile had not finished: .NAME.PID.N.tmp.
bool is_record_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(".tmp")) return false;
  const std::string_view stem = name.substr(1);
  return is_record_name(stem.substr(0, stem.find('.')));
}

// Calls check(file, header) on every pack, and keeps what it throws as the pack's problem.
template <typename Check>
std::vector<CachedPack> visit_packs(const PackStore& store, const Check& check) {
  std::vector<CachedPack> packs;
  for (const CacheEntry& entry : store.packs().list()) {
    CachedPack pack;
    pack.key = key_of_pack_name(entry.name);
    if (pack.key.empty()) continue;
    pack.path = store.packs().path_of(entry.name);
    pack.bytes = entry.bytes;
    pack.made_s = pack.used_s = entry.modified_s;
    struct stat status = {};
    if (::lstat(pack.path.c_str(), &status) == 0) pack.used_s = std::max<int64_t>(status.st_atime, pack.made_s);
    try {
      if (!store.packs().has(entry.name)) continue;  // removed meanwhile
      const MappedFile file(pack.path);
      const PackHeader header = decode_pack_header(file);
      pack.label = header.label;
      if (header.key != pack.key)
        fail(Code::kInput, "{}: damaged: it is named by another key than its own, {}", pack.path, header.key);
      check(file, header);
    } catch (const Error& e) {
      if (e.code() != Code::kInput && e.code() != Code::kResource) throw;
      pack.problem = e.what();
    }
    packs.push_back(std::move(pack));
  }
  return packs;
}

void add_sources(const PackStore& store, std::vector<CachedPack>& packs) {
  for (const CacheEntry& entry : store.sources().list()) {
    if (!is_record_name(entry.name)) continue;
    const std::optional<SourceRecord> record = store.read_record(entry.name);
    if (!record) continue;
    for (CachedPack& pack : packs)
      if (pack.key == record->key) pack.sources.push_back(record->identity);
  }
}

}  // namespace

std::vector<CachedPack> list_packs(const std::string& cache_dir) {
  if (!has_store(cache_dir)) return {};
  const PackStore store(cache_dir);
  auto packs = visit_packs(store, [](const MappedFile&, const PackHeader&) {});
  add_sources(store, packs);
  return packs;
}

std::vector<CachedPack> verify_packs(const std::string& cache_dir, unsigned threads, const PackProgress& progress) {
  if (!has_store(cache_dir)) return {};
  const PackStore store(cache_dir);
  WorkerPool::Options options;
  options.threads = threads;
  WorkerPool pool(options);
  auto packs = visit_packs(
      store, [&](const MappedFile& file, const PackHeader& header) { verify_pack_data(file, header, pool, progress); });
  add_sources(store, packs);
  return packs;
}

ClearedCache clear_packs(const std::string& cache_dir) {
  ClearedCache result;
  if (!has_store(cache_dir)) return result;
  const PackStore store(cache_dir);
  const auto remove = [&result](const CacheDir& folder, const CacheEntry& entry) {
    folder.remove(entry.name);
    ++result.files;
    result.bytes += entry.bytes;
  };
  const auto before = store.packs().list();
  const auto alive = remove_dead_temporaries(store.packs());
  for (const CacheEntry& entry : before) {
    const bool temporary = is_pack_temporary(entry.name);
    const bool written = temporary && std::find(alive.begin(), alive.end(), entry.name) != alive.end();
    if (!written && (temporary || !key_of_pack_name(entry.name).empty()))
      remove(store.packs(), entry);
    else
      result.kept.push_back(store.packs().path() + "/" + entry.name);
  }
  for (const CacheEntry& entry : store.sources().list()) {
    const bool old = std::time(nullptr) - entry.modified_s > kOldRecordTemporary_s;
    if (is_record_name(entry.name) || (is_record_temporary(entry.name) && old))
      remove(store.sources(), entry);
    else
      result.kept.push_back(store.sources().path() + "/" + entry.name);
  }
  return result;
}

}  // namespace stet
