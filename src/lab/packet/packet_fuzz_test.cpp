// The fuzz target of packets over its corpus, every truncation of it and flips of its bits, in the ordinary test
// program.
#define STET_FUZZ_IN_TESTS
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "../tests/fuzz/fuzz_packet.cpp"
#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/packet"))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

void feed(const std::string& bytes) { fuzz_packet(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

TEST(PacketFuzz, CorpusAndItsTruncations) {
  ASSERT_GE(corpus().size(), 4u);
  for (const std::string& file : corpus()) {
    const std::string bytes = read_text(file);
    feed(bytes);
    for (size_t n = 0; n < bytes.size(); n += 1 + bytes.size() / 200) feed(bytes.substr(0, n));
  }
}

TEST(PacketFuzz, Mutations) {
  std::mt19937 random(7);
  for (const std::string& file : corpus()) {
    const std::string bytes = read_text(file);
    for (int i = 0; i < 150; ++i) {
      std::string changed = bytes;
      for (uint32_t n = random() % 4 + 1; n > 0; --n) changed[random() % changed.size()] = static_cast<char>(random());
      feed(changed);
    }
  }
}

// Seeds that stop at the first line would test nothing.
TEST(PacketFuzz, TheCorpusReachesTheJudge) {
  size_t judged = 0;
  for (const std::string& file : corpus()) {
    const std::string bytes = read_text(file);
    if (bytes.empty() || bytes[0] % 2 != 0) continue;
    try {
      (void)judged_twice(packet_of_text(std::string_view(bytes).substr(1), kPacketPlan));
      ++judged;
    } catch (const Error&) {
    }
  }
  EXPECT_GE(judged, 3u);
}

}  // namespace
}  // namespace stet
