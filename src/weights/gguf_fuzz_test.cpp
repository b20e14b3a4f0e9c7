// The fuzzer's function over its seed corpus: every truncation, every single bit, and thousands of seeded mutations of
// each file.
#include <gtest/gtest.h>

#include "weights/fuzz_corpus_test.h"

// After the headers that it needs too.
#include "../tests/fuzz/fuzz_gguf.cpp"

namespace stet {
namespace {

using test::Bytes;

std::vector<Bytes> corpus() { return test::fuzz_corpus("gguf", ".gguf"); }

// An exact copy on the heap, so that a sanitizer sees the first byte read past its end.
void feed(const uint8_t* data, size_t size) {
  const Bytes copy(data, data + size);
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

TEST(GgufFuzz, CorpusAndItsTruncations) {
  const std::vector<Bytes> files = corpus();
  ASSERT_GE(files.size(), 10u);
  for (const Bytes& file : files)
    for (size_t n = 0; n <= file.size(); ++n) feed(file.data(), n);
}

TEST(GgufFuzz, SoundSeedsAreAccepted) {
  int accepted = 0;
  for (const Bytes& file : corpus()) {
    try {
      use(std::as_bytes(std::span(file)));
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(accepted, 5);  // the others exist to be refused
}

TEST(GgufFuzz, EveryBitOfEveryHeader) {
  for (Bytes file : corpus()) {
    for (size_t bit = 0; bit < 8 * std::min<size_t>(file.size(), 600); ++bit) {
      file[bit / 8] = static_cast<uint8_t>(file[bit / 8] ^ 1u << bit % 8);
      feed(file.data(), file.size());
      file[bit / 8] = static_cast<uint8_t>(file[bit / 8] ^ 1u << bit % 8);
    }
  }
}

TEST(GgufFuzz, SeededMutations) {
  test::feed_mutations(corpus(), 20000, [](const Bytes& file) { feed(file.data(), file.size()); });
}

}  // namespace
}  // namespace stet
