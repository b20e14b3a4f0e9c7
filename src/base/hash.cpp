#include "base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include "base/error.h"

namespace stet {

uint64_t xxh3(const void* data, size_t bytes, uint64_t seed) { return XXH3_64bits_withSeed(data, bytes, seed); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  STET_CHECK(context_ != nullptr);
  STET_CHECK(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

void Sha256::update(const void* data, size_t bytes) {
  STET_CHECK(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), data, bytes) == 1);
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  STET_CHECK(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest, &bytes) == 1);
  std::string out;
  for (unsigned int i = 0; i < bytes; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

std::string sha256_hex(const void* data, size_t bytes) {
  Sha256 hash;
  hash.update(data, bytes);
  return hash.hex();
}

}  // namespace stet
