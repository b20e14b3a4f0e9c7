// What the ordinary tests of fuzz targets share: their seeds, and seeded mutations of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace stet::test {

using Bytes = std::vector<uint8_t>;

// The files of a folder, in the order of their names. Tests run in the root of the source tree.
inline std::vector<Bytes> fuzz_corpus(const std::string& name, const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + name))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

// A few bytes, a 64-bit field with an extreme value, a piece copied elsewhere, a cut.
inline void mutate(Bytes& file, std::mt19937_64& rng) {
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

// Calls feed with `count` seeded mutations of the files, each an exact copy on the heap, so that a sanitizer sees the
// first byte read past its end.
template <typename Feed>
void feed_mutations(const std::vector<Bytes>& files, int count, Feed feed) {
  std::mt19937_64 rng(20240501);
  for (int i = 0; i < count; ++i) {
    Bytes file = files[static_cast<size_t>(i) % files.size()];
    for (uint64_t n = 1 + rng() % 3; n > 0; --n) mutate(file, rng);
    feed(Bytes(file));
  }
}

}  // namespace stet::test
