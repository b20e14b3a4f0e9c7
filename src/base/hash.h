// Hashes: XXH3-64 for checksums and cache keys, SHA-256 for identities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace stet {

// XXH3-64 of bytes.
uint64_t xxh3(const void* data, size_t bytes, uint64_t seed = 0);

// Streaming SHA-256; hex() ends it.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, size_t bytes);
  std::string hex();

 private:
  void* context_;
};

std::string sha256_hex(const void* data, size_t bytes);

}  // namespace stet
