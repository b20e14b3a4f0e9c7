// Packs with damage: noticed and made again, and never a crash.
#include <random>

#include "base/hash.h"
#include "weights/pack_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;
using testing::Not;

class DamagedPack : public PackOnDisk {
 protected:
  void SetUp() override {
    key_ = load()->key();
    path_ = pack_path(key_);
    sound_ = read_file(path_);
    want_ = content_in_memory(source_);
    plan_ = plan_pack(source_, false);
  }

  // Opens the file as it is: its content when it is accepted, nothing when it is refused as damaged.
  std::optional<std::string> accepted() {
    try {
      const auto pack = PackStore(cache_).open(key_, plan_, false, pool_, {});
      std::string all(reinterpret_cast<const char*>(pack->file.bytes().data()) + pack->header.data_start,
                      pack->header.plan.data_bytes);
      std::string content;
      for (const char* name : {"a", "b", "norm"})
        for (const PackTensor& t : pack->header.plan.tensors)
          if (t.name == name) content += all.substr(t.offset, t.bytes);
      return content;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInput) << e.what();
      return std::nullopt;
    }
  }

  uint64_t header_bytes() const {
    uint64_t bytes;
    std::memcpy(&bytes, sound_.data() + 16, 8);
    return bytes;
  }
  // Gives a changed header the checksum that belongs to it: damage that only the other checks can find.
  void seal(std::string& bytes) const {
    const uint64_t sum = xxh3(bytes.data(), header_bytes() - 8);
    std::memcpy(bytes.data() + header_bytes() - 8, &sum, 8);
  }
  static void put32(std::string& bytes, size_t at, uint32_t value) { std::memcpy(bytes.data() + at, &value, 4); }

  std::string key_, path_, sound_, want_;
  PackPlan plan_;
  WorkerPool pool_{WorkerPool::Options()};
};

TEST_F(DamagedPack, IsNoticedToldAndMadeAgain) {
  const uint64_t data_start = 4096;
  for (const size_t at : {size_t{0}, size_t{8}, size_t{12}, size_t{30}, size_t{60}, size_t{200}, header_bytes() - 1,
                          data_start + 0, data_start + 7777}) {
    std::string damaged = sound_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(path_, damaged);
    EXPECT_EQ(content(*load()), want_) << at;
    EXPECT_THAT(messages_, HasSubstr("it is made again")) << at;
    EXPECT_EQ(read_file(path_), sound_) << at;
    load();
    EXPECT_THAT(messages_, Not(HasSubstr("it is made again"))) << at;
  }
  EXPECT_EQ(files("packs").size(), 1u);
}

TEST_F(DamagedPack, EveryBitOfTheHeaderCounts) {
  for (size_t at = 0; at < header_bytes(); ++at) {
    std::string damaged = sound_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    write_file(path_, damaged);
    ASSERT_FALSE(accepted()) << at;
  }
}

// Thousands of random changes: refused, or without effect on what is read.
TEST_F(DamagedPack, RandomChangesAreRefusedOrHarmless) {
  std::mt19937_64 rng(5);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = sound_;
    const uint64_t changes = 1 + rng() % 3;
    for (uint64_t i = 0; i < changes; ++i) {
      const size_t at = rng() % damaged.size();
      damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(1 + rng() % 255));
    }
    write_file(path_, damaged);
    const auto content = accepted();
    refused += !content;
    if (content) {
      ASSERT_EQ(*content, want_);
    }
  }
  EXPECT_GT(refused, 1000);
}

// The same with a checksum that fits, as an enemy would write it: each value is checked before it is used.
TEST_F(DamagedPack, SealedHeadersNeverCrash) {
  std::mt19937_64 rng(6);
  constexpr uint32_t kOdd[] = {0, 1, 2, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0xfffffff0u, 64, 4096};
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = sound_;
    const size_t at = 16 + rng() % (header_bytes() - 16 - 12);
    if (round % 2 == 0) put32(damaged, at / 4 * 4, kOdd[rng() % std::size(kOdd)]);
    if (round % 2 == 1) damaged[at] = static_cast<char>(rng());
    seal(damaged);
    write_file(path_, damaged);
    const auto content = accepted();
    if (content) {
      ASSERT_EQ(*content, want_) << at;
    }
  }
}

TEST_F(DamagedPack, EveryTruncationIsNoticed) {
  std::mt19937 rng(7);
  for (size_t bytes = 0; bytes < sound_.size(); bytes += bytes < header_bytes() + 64 ? 1 : 1 + rng() % 97) {
    write_file(path_, sound_.substr(0, bytes));
    ASSERT_FALSE(accepted()) << bytes;
  }
  write_file(path_, sound_ + "x");
  EXPECT_FALSE(accepted());
  write_file(path_, sound_.substr(0, 5000));
  EXPECT_EQ(content(*load()), want_);
  EXPECT_EQ(read_file(path_), sound_);
}

TEST_F(DamagedPack, AStalePackIsReplaced) {
  for (const size_t field : {size_t{8}, size_t{12}}) {
    std::string stale = sound_;
    put32(stale, field, 99);
    seal(stale);
    write_file(path_, stale);
    EXPECT_EQ(content(*load()), want_);
    EXPECT_THAT(messages_, HasSubstr("stale: version"));
    EXPECT_EQ(read_file(path_), sound_);
  }
}

// A new layout gives the same source another key: the old pack goes.
TEST_F(DamagedPack, AStalePackOfAnotherKeyIsRemoved) {
  const std::string old_key(64, '0');
  std::string stale = sound_;
  put32(stale, 12, 99);
  std::filesystem::remove(path_);
  write_file(pack_path(old_key), stale);
  ASSERT_EQ(::chmod(pack_path(old_key).c_str(), 0600), 0);
  PackStore(cache_).write_record({"fake", false, old_key});
  EXPECT_EQ(content(*load()), want_);
  EXPECT_THAT(files("packs"), testing::ElementsAre(pack_name(key_)));
}

TEST_F(DamagedPack, APackOfOtherTensorsUnderItsNameIsNotUsed) {
  FakeSource other("other");
  other.add("a", Format::q4_1, {256, 40}, 9).add("norm", Format::f16, {64}, 9).add("b", Format::q8_0, {96, 17}, 9);
  const std::string other_path = pack_path(load(other)->key());
  write_file(path_, read_file(other_path));
  EXPECT_EQ(content(*load()), want_);
  EXPECT_THAT(messages_, HasSubstr("pack of other tensors"));
}

TEST_F(DamagedPack, AMissingPackIsMadeAgain) {
  std::filesystem::remove(path_);
  EXPECT_EQ(content(*load()), want_);
  EXPECT_EQ(read_file(path_), sound_);
}

}  // namespace
}  // namespace stet
