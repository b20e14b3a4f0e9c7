// The functions of fuzz_safetensors and fuzz_checkpoint over their seeds: every truncation, and thousands of mutations.
#include <gtest/gtest.h>

#include "weights/fuzz_corpus_test.h"

#define LLVMFuzzerTestOneInput feed_safetensors
#include "../tests/fuzz/fuzz_safetensors.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput feed_checkpoint
#include "../tests/fuzz/fuzz_checkpoint.cpp"
#undef LLVMFuzzerTestOneInput

namespace stet {
namespace {

using Target = int (*)(const uint8_t*, size_t);

void feed_all(const std::vector<test::Bytes>& files, size_t least, Target target) {
  ASSERT_GE(files.size(), least);
  const auto feed = [&](const test::Bytes& exact) { target(exact.data(), exact.size()); };
  for (const test::Bytes& file : files)
    for (size_t n = 0; n <= file.size(); ++n) feed({file.begin(), file.begin() + static_cast<ptrdiff_t>(n)});
  test::feed_mutations(files, 4000, feed);
}

TEST(HfFuzz, Safetensors) { feed_all(test::fuzz_corpus("safetensors", ".safetensors"), 9, feed_safetensors); }

TEST(HfFuzz, FilesBesideTheWeights) { feed_all(test::fuzz_corpus("checkpoint", ".json"), 9, feed_checkpoint); }

TEST(HfFuzz, SoundSeedsAreAccepted) {
  int accepted = 0;
  for (const auto& [name, extension] : {std::pair("safetensors", ".safetensors"), {"checkpoint", ".json"}}) {
    for (const test::Bytes& file : test::fuzz_corpus(name, extension)) {
      try {
        const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
        if (name == std::string_view("safetensors")) use_safetensors(std::as_bytes(std::span(file)));
        if (name == std::string_view("checkpoint")) use_checkpoint(text[0], text.substr(1));
        ++accepted;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_EQ(accepted, 5 + 9);  // the others exist to be refused
}

}  // namespace
}  // namespace stet
