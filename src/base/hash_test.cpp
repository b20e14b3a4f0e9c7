#include "base/hash.h"

#include <gtest/gtest.h>

namespace stet {
namespace {

// FIPS 180-4's example, and the same in two pieces.
TEST(Sha256, KnownAnswer) {
  const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(sha256_hex("abc", 3), expected);
  Sha256 hash;
  hash.update("a", 1);
  hash.update("bc", 2);
  EXPECT_EQ(hash.hex(), expected);
}

TEST(Xxh3, DependsOnEveryByteAndTheSeed) {
  EXPECT_NE(xxh3("abc", 3), xxh3("abd", 3));
  EXPECT_NE(xxh3("abc", 3), xxh3("abc", 3, 1));
}

}  // namespace
}  // namespace stet
