// The fuzzer's function over its seed corpus: every truncation, every single bit, and thousands of seeded mutations of
// each file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "../tests/fuzz/fuzz_gguf.cpp"

namespace stet {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

std::vector<Bytes> corpus() {
  std::vector<fs::path> paths;
  const fs::path folder = "tests/fuzz/corpus/gguf";  // tests run in the root of the source tree
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

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

// A few bytes, a 64-bit field with an extreme value, a piece copied elsewhere, a cut.
void mutate(Bytes& file, std::mt19937_64& rng) {
  if (file.empty()) return;
  const auto position = [&] { return static_cast<size_t>(rng() % file.size()); };
  switch (rng() % 4) {
    case 0:
      file[position()] = static_cast<uint8_t>(rng());
      break;
    case 1: {
      constexpr uint64_t kExtreme[] = {
          0, 1, 0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 48, (1ull << 63) - 1, ~0ull, ~0ull - 31};
      const uint64_t value = kExtreme[rng() % std::size(kExtreme)];
      const size_t at = position();
      std::memcpy(file.data() + at, &value, std::min<size_t>(8, file.size() - at));
      break;
    }
    case 2: {
      const size_t from = position(), to = position();
      std::memmove(file.data() + to, file.data() + from,
                   std::min(file.size() - std::max(from, to), size_t{1} + rng() % 64));
      break;
    }
    default:
      file.resize(position());
      break;
  }
}

TEST(GgufFuzz, SeededMutations) {
  std::mt19937_64 rng(20240501);
  const std::vector<Bytes> files = corpus();
  for (int i = 0; i < 20000; ++i) {
    Bytes file = files[static_cast<size_t>(i) % files.size()];
    for (uint64_t n = 1 + rng() % 3; n > 0; --n) mutate(file, rng);
    feed(file.data(), file.size());
  }
}

}  // namespace
}  // namespace stet
