// What `stet cache` shows and does: the packs of a cache directory, seen from outside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/pack_build.h"

namespace stet {

struct CachedPack {
  std::string key;
  std::string path;
  uint64_t bytes = 0;
  std::string label;                 // what the model calls itself; may be empty
  std::vector<std::string> sources;  // identities of the sources that lead to it, as TensorSource::identity() says
  int64_t made_s = 0;                // seconds since 1970
  int64_t used_s = 0;                // when it was loaded last
  std::string problem;               // why it cannot be used; empty: nothing was found
};

// All packs, sorted by key; problem is what their headers show. Makes nothing: no directory, no packs.
// Throws Error(kResource) when the directory is one that others could write to.
std::vector<CachedPack> list_packs(const std::string& cache_dir);

// The same after every checksum was recomputed. Throws what progress throws.
std::vector<CachedPack> verify_packs(const std::string& cache_dir, unsigned threads, const PackProgress& progress);

struct ClearedCache {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> kept;  // paths: not named as stet names its files, or being written at this moment
};

// Removes every pack, record and leftover. Packs that a process has mapped stay readable to it.
ClearedCache clear_packs(const std::string& cache_dir);

}  // namespace stet
