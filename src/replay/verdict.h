// Verdicts that qualification reached, kept in the cache directory, so that the second start of a model need not compare again.
//
//   verdicts/KEY:  "stet verdict 1\n" "key KEY\n" "compared ROWS\n" "xxh3 <16 hex digits of all before>\n"
//
// A file that is missing, damaged or of another key is no verdict.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "device/cache_dir.h"

namespace stet {

class VerdictStore {
 public:
  // The folder "verdicts" of the cache directory. Throws what CacheDir does.
  explicit VerdictStore(const std::string& cache_dir);

  // The rows that were compared when lists of this key were qualified; nothing when no sound verdict is kept. key: 64 hex digits.
  std::optional<uint64_t> find(const std::string& key) const;
  // Throws Error(kResource) when it cannot be written.
  void keep(const std::string& key, uint64_t compared_rows) const;

  // Removes all verdicts of a cache directory; makes no folder. Returns how many files went, and their bytes.
  struct Cleared {
    uint64_t files = 0, bytes = 0;
  };
  static Cleared clear(const std::string& cache_dir);

 private:
  CacheDir root_, folder_;
};

// What qualification came to.
struct Compared {
  uint64_t rows = 0;
  bool kept = false;     // an earlier start reached the verdict
  std::string not_kept;  // why it could not be written; empty: it was, or was not wanted
};

// The verdict of the key that is kept in the cache directory, or else what compare() finds, which is kept. An empty
// cache_dir: nothing is kept; nor is it without a build id, which the key needs.
Compared compare_once(const std::string& cache_dir, const std::function<std::string()>& key,
                      const std::function<uint64_t()>& compare);

}  // namespace stet
