// The pack file: one model's packed weights on disk, as they are mapped.
//
//   file   := header padding data padding
//   header := "STETPACK" version:u32 layout:u32 header_bytes:u64 file_bytes:u64 data_start:u64 data_bytes:u64
//             dequantize:u32 tensors:u32 key:char{64} label:text tensor{tensors} header_checksum:u64
//   tensor := name:text is_vector:u32 source_format:u32 format:u32 rows:u32 cols:u32 offset:u64 bytes:u64
//             checksum:u64 source_sha256:char{64}
//   text   := bytes:u32 byte{bytes}
//
// Little-endian. Formats carry GGUF's numbers. data_start is a multiple of 4096; offsets count from it and follow
// weights/pack_plan.h. The header checksum is XXH3-64 of all bytes before it, a tensor's that of weights/pack_build.h;
// source digests and shapes give the key again. At least kPackSlackBytes follow the data. Padding is zero and
// unchecked: nothing is computed from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "device/cache_dir.h"
#include "weights/pack_build.h"

namespace stet {

// Changes with the grammar above and with the size of a piece.
inline constexpr uint32_t kPackVersion = 1;

struct PackHeader {
  PackPlan plan;      // with digests and checksums
  std::string key;    // lower-case hexadecimal SHA-256
  std::string label;  // the model's own name, for people; may be empty
  uint64_t data_start = 0;
  uint64_t file_bytes = 0;
};

// Sets data_start and file_bytes, which depend on the table only.
void place_pack_data(PackHeader& header);

// The header's bytes, without padding. REQUIRES: place_pack_data() and every digest and checksum set.
std::string encode_pack_header(const PackHeader& header);

// Throws Error(kInput) when the header is damaged or of another version or layout, or the file is shorter or longer
// than it says. The result is consistent with itself whatever the file holds: sizes and offsets are those that plans
// have and lie inside the file.
PackHeader decode_pack_header(const MappedFile& file);

// Recomputes the checksum of every tensor. Throws Error(kInput) that names the first one that differs. into: where the data, as it
// was checked, is left (header.plan.data_bytes bytes), or null.
void verify_pack_data(const MappedFile& file, const PackHeader& header, WorkerPool& pool, const PackProgress& progress,
                      std::byte* into = nullptr);

// Writes a pack file under a temporary name that holds a lock while its writer lives. Pieces may come in any order and
// from several threads.
class PackWriter : public PackSink {
 public:
  // Throws Error(kResource), with the numbers, when the disk has less room than the file needs.
  PackWriter(const CacheDir& folder, const PackHeader& header);
  ~PackWriter() override;  // without commit(): removes the temporary file
  PackWriter(const PackWriter&) = delete;
  PackWriter& operator=(const PackWriter&) = delete;

  uint8_t* place(uint64_t offset, uint64_t bytes, std::vector<uint8_t>& scratch) override;
  void put(uint64_t offset, const uint8_t* data, uint64_t bytes) override;
  // Adds the header, syncs, and gives the file its name, in place of whatever had it.
  void commit(const PackHeader& header);

 private:
  void create();
  void reserve();
  void write(uint64_t offset, const void* data, uint64_t bytes);
  [[noreturn]] void fail_to_write(int error) const;

  const CacheDir& folder_;
  const uint64_t data_start_;
  const uint64_t file_bytes_;
  std::string temporary_;
  int fd_ = -1;
};

// The file name of a pack in the folder of packs, and the key of a file name; empty when it is not a pack's.
std::string pack_name(const std::string& key);
std::string key_of_pack_name(const std::string& name);
bool is_pack_key(std::string_view text);

// Removes what dead writers left in the folder. Returns the names that a living writer holds.
std::vector<std::string> remove_dead_temporaries(const CacheDir& folder);
bool is_pack_temporary(const std::string& name);

}  // namespace stet
