// Where packs are kept: `packs` in the cache directory holds them by key, `sources` a record for each source that was
// seen. A record leads from a source's identity to a key, so that an unchanged source is not read again.
//
//   record := "stet source 1\n" "dequantize " 0|1 "\n" "key " char{64} "\n" "identity " bytes "\n" identity "\n"
//             "xxh3 " char{16} "\n"                                                 (of all bytes before this line)
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "device/memory.h"
#include "device/cache_dir.h"
#include "weights/pack_file.h"

namespace stet {

struct StoredPack {
  MappedFile file;
  PackHeader header;
  std::optional<AlignedBuffer> memory;  // the data, in huge pages; nothing where it stays mapped
  std::string place;                    // as PackedModel::place()
};

struct SourceRecord {
  std::string identity;
  bool dequantize = false;
  std::string key;
};

class PackStore {
 public:
  // Opens or makes the folders. Throws Error(kResource) as CacheDir does.
  explicit PackStore(const std::string& cache_dir);

  // Opens the pack of a key and verifies all of it; nothing when there is none. Checking reads every byte anyway, so unless `mapped`
  // it leaves a copy in huge pages, which are read up to a quarter faster than a file's pages of 4 KiB (docs/performance.md); where
  // the system grants none, or the copy would take more than half of the memory that is left, the pack stays mapped. Throws Error(kInput) when it is damaged,
  // stale or not a pack of `plan`, Error(kResource) when others own it or can write it.
  std::optional<StoredPack> open(const std::string& key, const PackPlan& plan, bool mapped, WorkerPool& pool,
                                 const PackProgress& progress) const;
  // Whether a pack of these shapes and options is there, so that hashing the source may save packing it.
  bool has_similar(const PackPlan& plan) const;

  // Nothing when there is no record or it is damaged.
  std::optional<SourceRecord> read_record(const std::string& name) const;
  void write_record(const SourceRecord& record) const;
  static std::string record_name(const std::string& identity, bool dequantize);

  const CacheDir& packs() const { return packs_; }
  const CacheDir& sources() const { return sources_; }

 private:
  const CacheDir root_;  // checked before anything in it is
  const CacheDir packs_;
  const CacheDir sources_;
};

// The pack of a source from the cache; made and written there when it is missing, damaged or stale.
// Throws Error(kInput) for a damaged source, Error(kResource) for an unsafe, read-only or full cache directory.
StoredPack load_stored_pack(const TensorSource& source, PackPlan plan, const std::string& cache_dir, bool mapped,
                            WorkerPool& pool, const PackProgress& progress);

}  // namespace stet
