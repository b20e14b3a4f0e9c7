#include "weights/pack_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <ctime>

#include "weights/pack_fixture_test.h"

namespace stet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(PackOnDisk, CacheOfNothingIsEmptyAndStaysAway) {
  EXPECT_TRUE(list_packs(cache_).empty());
  EXPECT_TRUE(verify_packs(cache_, 1, {}).empty());
  EXPECT_EQ(clear_packs(cache_).files, 0u);
  EXPECT_FALSE(std::filesystem::exists(cache_));
}

TEST_F(PackOnDisk, CacheListsPacksWithTheirSources) {
  source_.set_metadata("general.name", "Fake 1B");
  const std::string key = load()->key();
  source_.set_identity("copy");
  load();
  const auto packs = list_packs(cache_);
  ASSERT_EQ(packs.size(), 1u);
  EXPECT_EQ(packs[0].key, key);
  EXPECT_EQ(packs[0].path, pack_path(key));
  EXPECT_EQ(packs[0].bytes, std::filesystem::file_size(pack_path(key)));
  EXPECT_EQ(packs[0].label, "Fake 1B");
  EXPECT_THAT(packs[0].sources, testing::UnorderedElementsAre("fake", "copy"));
  EXPECT_NEAR(static_cast<double>(packs[0].made_s), static_cast<double>(std::time(nullptr)), 60);
  EXPECT_GE(packs[0].used_s, packs[0].made_s);
  EXPECT_EQ(packs[0].problem, "");
}

TEST_F(PackOnDisk, CacheVerifyFindsWhatListCannot) {
  const std::string path = pack_path(load()->key());
  EXPECT_EQ(verify_packs(cache_, 2, {})[0].problem, "");
  std::string bytes = read_file(path);
  bytes[5000] = static_cast<char>(bytes[5000] ^ 1);
  write_file(path, bytes);
  EXPECT_EQ(list_packs(cache_)[0].problem, "");
  EXPECT_THAT(verify_packs(cache_, 2, {})[0].problem, HasSubstr("tensor 'a' has the checksum"));
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  write_file(path, bytes);
  EXPECT_THAT(list_packs(cache_)[0].problem, HasSubstr("does not match its checksum"));
}

TEST_F(PackOnDisk, CacheClearRemovesItsOwnFilesOnly) {
  load();
  const std::string dead = cache_ + "/packs/.pack.1.0.tmp", alive = cache_ + "/packs/.pack.2.0.tmp";
  const std::string mine = cache_ + "/packs/notes.txt", almost = cache_ + "/sources/0123";
  for (const std::string& path : {dead, alive, mine, almost}) write_file(path, "12345");
  const int fd = ::open(alive.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const ClearedCache cleared = clear_packs(cache_);
  ::close(fd);
  EXPECT_THAT(cleared.kept, testing::UnorderedElementsAre(alive, mine, almost));
  EXPECT_EQ(cleared.files, 3u);  // a pack, a record, a leftover
  EXPECT_THAT(files("packs"), testing::UnorderedElementsAre(".pack.2.0.tmp", "notes.txt"));
  EXPECT_THAT(files("sources"), ElementsAre("0123"));
}

TEST_F(PackOnDisk, AClearedPackStaysReadableToItsUser) {
  const auto pack = load();
  const std::string before = content(*pack);
  clear_packs(cache_);
  EXPECT_EQ(content(*pack), before);
  EXPECT_EQ(content(*load()), before);
}

}  // namespace
}  // namespace stet
