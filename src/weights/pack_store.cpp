#include "weights/pack_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/visible_text.h"

namespace stet {
namespace {

constexpr std::string_view kRecordMagic = "stet source 1\n";
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 20;

std::string encode_record(const SourceRecord& record) {
  std::string text = fmt::format("{}dequantize {}\nkey {}\nidentity {}\n{}\n", kRecordMagic, record.dequantize ? 1 : 0,
                                 record.key, record.identity.size(), record.identity);
  return text + fmt::format("xxh3 {:016x}\n", xxh3(text.data(), text.size()));
}

// Takes `prefix`, then everything up to the next newline; nothing when the text does not begin so.
std::optional<std::string_view> take_line(std::string_view& text, std::string_view prefix) {
  const size_t end = text.find('\n');
  if (!text.starts_with(prefix) || end == std::string_view::npos || end < prefix.size()) return std::nullopt;
  const std::string_view value = text.substr(prefix.size(), end - prefix.size());
  text.remove_prefix(end + 1);
  return value;
}

std::optional<SourceRecord> decode_record(std::string_view text) {
  if (!text.starts_with(kRecordMagic)) return std::nullopt;
  std::string_view rest = text.substr(kRecordMagic.size());
  const auto dequantize = take_line(rest, "dequantize "), key = take_line(rest, "key "),
             length = take_line(rest, "identity ");
  if (!dequantize || !key || !length) return std::nullopt;
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(length->data(), length->data() + length->size(), bytes);
  if (error != std::errc() || end != length->data() + length->size() || bytes >= rest.size()) return std::nullopt;
  SourceRecord record{std::string(rest.substr(0, bytes)), *dequantize == "1", std::string(*key)};
  // The record is sound when it is what its content would be written as.
  if (!is_pack_key(record.key) || encode_record(record) != text) return std::nullopt;
  return record;
}

bool same_tensor(const PackTensor& a, const PackTensor& b) {
  return a.name == b.name && a.is_vector == b.is_vector && a.source_format == b.source_format && a.format == b.format &&
         a.rows == b.rows && a.cols == b.cols && a.offset == b.offset && a.bytes == b.bytes;
}

// Do two plans put the same tensors at the same places?
bool same_plan(const PackPlan& a, const PackPlan& b) {
  return a.dequantize == b.dequantize &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same_tensor);
}

// Why a pack of so many bytes is not copied into huge pages; empty: it is.
std::string why_mapped(bool asked, uint64_t bytes) {
  if (asked) return "as asked";
  if (!huge_pages_allowed()) return "the system grants no huge pages";
  const MemoryBudget budget = memory_budget();
  if (bytes > budget.available_bytes / 2) return "a copy in huge pages would take more than half of the memory left";
  return "";
}

}  // namespace

PackStore::PackStore(const std::string& cache_dir)
    : root_(cache_dir), packs_(root_.path() + "/packs"), sources_(root_.path() + "/sources") {}

std::optional<StoredPack> PackStore::open(const std::string& key, const PackPlan& plan, bool mapped,
                                          WorkerPool& pool, const PackProgress& progress) const {
  const std::string name = pack_name(key);
  if (!packs_.has(name)) return std::nullopt;
  const std::string path = packs_.path_of(name);
  MappedFile file(path);
  PackHeader header = decode_pack_header(file);
  if (header.key != key || !same_plan(header.plan, plan))
    fail(Code::kInput, "{}: damaged: it is the pack of other tensors, {}", path, header.key);
  std::optional<AlignedBuffer> memory;
  const std::string why = why_mapped(mapped, plan.data_bytes);
  if (why.empty()) memory.emplace(plan.data_bytes + kPackSlackBytes);
  verify_pack_data(file, header, pool, progress, memory ? memory->data() : nullptr);
  // The access time tells `stet cache list` when a pack was used last; file systems do not keep it by themselves.
  const struct timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return StoredPack{std::move(file), std::move(header), std::move(memory), memory ? "in huge pages" : "mapped: " + why};
}

bool PackStore::has_similar(const PackPlan& plan) const {
  for (const CacheEntry& entry : packs_.list()) {
    if (key_of_pack_name(entry.name).empty()) continue;
    try {
      if (packs_.has(entry.name) && same_plan(decode_pack_header(MappedFile(packs_.path_of(entry.name))).plan, plan))
        return true;
    } catch (const Error&) {
      // Another model's pack, damaged or refused: it only means that this one cannot be reused.
    }
  }
  return false;
}

std::string PackStore::record_name(const std::string& identity, bool dequantize) {
  return fmt::format("{:016x}{}", xxh3(identity.data(), identity.size()), dequantize ? "-f32" : "");
}

std::optional<SourceRecord> PackStore::read_record(const std::string& name) const {
  if (!sources_.has(name)) return std::nullopt;
  const MappedFile file(sources_.path_of(name));
  if (file.size() > kMaxRecordBytes) return std::nullopt;
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return decode_record(text);
}

void PackStore::write_record(const SourceRecord& record) const {
  AtomicFile::Options options;
  options.overwrite = true;
  options.mode = 0600;
  AtomicFile file(sources_.path_of(record_name(record.identity, record.dequantize)), options);
  const std::string text = encode_record(record);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace stet
