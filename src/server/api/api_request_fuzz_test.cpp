// The fuzzer's function over its seed corpus: every truncation, every single bit, and thousands of seeded mutations.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "../tests/fuzz/fuzz_api_request.cpp"

namespace stet {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> corpus() {
  std::vector<std::filesystem::path> paths;
  const auto folder = std::filesystem::path("tests/fuzz/corpus/api_request");  // tests run in the root of the source tree
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

// An exact copy on the heap, so that a sanitizer sees the first byte read past its end.
void feed(const Bytes& bytes) {
  const Bytes copy(bytes);
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

TEST(ApiRequestFuzz, CorpusItsTruncationsAndItsBits) {
  const std::vector<Bytes> files = corpus();
  ASSERT_GE(files.size(), 10u);
  for (const Bytes& file : files) {
    for (size_t size = 0; size <= file.size(); ++size)
      feed(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
    for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
      Bytes changed = file;
      changed[bit / 8] = static_cast<uint8_t>(changed[bit / 8] ^ 1u << bit % 8);
      feed(changed);
    }
  }
}

// Pieces of JSON that are put in the place of others.
TEST(ApiRequestFuzz, Mutations) {
  const std::vector<std::string> pieces = {"null",
                                           "true",
                                           "-1",
                                           "1e999",
                                           "0.5",
                                           "18446744073709551615",
                                           "18446744073709551616",
                                           "\"\"",
                                           "\"x\"",
                                           "[]",
                                           "{}",
                                           "[[",
                                           "]",
                                           "}",
                                           ",",
                                           ":",
                                           "\\ud800",
                                           "\xff",
                                           "\"n\":2",
                                           "\"messages\":"};
  const std::vector<Bytes> files = corpus();
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = files[random() % files.size()];
    for (uint64_t changes = 1 + random() % 3; changes > 0 && !bytes.empty(); --changes) {
      const std::string& piece = pieces[random() % pieces.size()];
      const size_t at = random() % bytes.size(), cut = std::min<size_t>(bytes.size() - at, random() % 8);
      bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + cut));
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), piece.begin(), piece.end());
    }
    feed(bytes);
  }
}

}  // namespace
}  // namespace stet
