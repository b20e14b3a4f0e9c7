#include "weights/pack_store.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "weights/pack_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(PackOnDisk, TheSecondStartReadsNothing) {
  const std::string want = content_in_memory(source_);
  const auto first = load();
  EXPECT_EQ(content(*first), want);
  EXPECT_THAT(messages_, HasSubstr("writing the packed weights"));
  EXPECT_THAT(messages_, HasSubstr(cache_ + "/packs"));
  const uint64_t reads = source_.reads();
  const auto second = load();
  EXPECT_EQ(source_.reads(), reads);
  EXPECT_EQ(content(*second), want);
  EXPECT_EQ(second->key(), first->key());
  EXPECT_THAT(messages_, Not(HasSubstr("writing")));
  struct stat status = {};
  ASSERT_EQ(::stat(pack_path(first->key()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat(cache_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(files("packs").size(), 1u);
  EXPECT_EQ(files("sources").size(), 1u);
}

TEST_F(PackOnDisk, EveryFormatComesBack) {
  FakeSource source;
  source.add_every_format();
  PackOptions o = options(2);
  for (const bool dequantize : {false, true}) {
    o.dequantize = dequantize;
    o.mapped = false;
    const auto made = PackedModel::load(source, o);
    o.mapped = true;
    const auto mapped = PackedModel::load(source, o);
    EXPECT_EQ(made->place(), huge_pages_allowed() ? "in huge pages" : "mapped: the system grants no huge pages");
    EXPECT_EQ(mapped->place(), "mapped: as asked");
    PackOptions memory;
    memory.dequantize = dequantize;
    const auto want = PackedModel::load(source, memory);
    for (const TensorInfo& info : source.tensors()) {
      if (info.shape.size() == 1) {
        EXPECT_EQ(std::memcmp(mapped->vector(info.name, nullptr), want->vector(info.name, nullptr), 2048), 0);
        continue;
      }
      EXPECT_EQ(matrix_bytes(*made, info.name.c_str()), matrix_bytes(*want, info.name.c_str())) << info.name;
      EXPECT_EQ(matrix_bytes(*mapped, info.name.c_str()), matrix_bytes(*want, info.name.c_str())) << info.name;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->matrix(info.name)->data) % 64, 0u);
    }
    EXPECT_EQ(mapped->key(), want->key());
  }
  EXPECT_EQ(files("packs").size(), 2u);
}

TEST_F(PackOnDisk, SlackBehindTheLastTensorIsReadable) {
  load();
  const auto pack = load();
  const PackedMatrix* last = pack->matrix("b");
  volatile uint8_t sum = 0;
  for (uint64_t i = 0; i < last->bytes() + kPackSlackBytes; ++i) sum = static_cast<uint8_t>(sum + last->data[i]);
}

TEST_F(PackOnDisk, AChangedSourceIsPackedAgain) {
  const std::string key = load()->key();
  source_.set_identity("written to");
  source_.bytes("b")[5] ^= std::byte{4};
  const std::string want = content_in_memory(source_);
  const auto changed = load();
  EXPECT_NE(changed->key(), key);
  EXPECT_EQ(content(*changed), want);
}

TEST_F(PackOnDisk, ATouchedOrCopiedSourceFindsThePackOfItsContent) {
  const std::string key = load()->key();
  const uint64_t reads = source_.reads();
  source_.set_identity("touched");
  EXPECT_EQ(load()->key(), key);
  EXPECT_THAT(messages_, Not(HasSubstr("writing")));
  EXPECT_EQ(source_.reads(), 2 * reads);
  load();
  EXPECT_EQ(source_.reads(), 2 * reads);  // the new identity has its record
  EXPECT_EQ(files("packs").size(), 1u);
}

TEST_F(PackOnDisk, ASyntheticModelLeavesNothing) {
  source_.set_synthetic();
  EXPECT_TRUE(load()->synthetic());
  EXPECT_FALSE(std::filesystem::exists(cache_));
}

TEST_F(PackOnDisk, ADamagedRecordIsWrittenAgain) {
  const std::string key = load()->key();
  const std::string record = cache_ + "/sources/" + files("sources")[0];
  const std::string sound = read_file(record);
  for (size_t i = 0; i < sound.size(); i += 3) {
    std::string damaged = sound;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write_file(record, damaged);
    ASSERT_EQ(load()->key(), key);
    ASSERT_EQ(read_file(record), sound);
    write_file(record, sound.substr(0, i));
    ASSERT_EQ(load()->key(), key);
  }
}

// Another source's record in this one's place: the names are hashes, and hashes may meet.
TEST_F(PackOnDisk, ARecordCountsForItsIdentityOnly) {
  load();
  FakeSource other("other");
  other.add("a", Format::q4_1, {256, 40}, 9).add("norm", Format::f16, {64}, 9).add("b", Format::q8_0, {96, 17}, 9);
  std::filesystem::rename(cache_ + "/sources/" + PackStore::record_name("fake", false),
                          cache_ + "/sources/" + PackStore::record_name("other", false));
  EXPECT_EQ(content(*load(other)), content_in_memory(other));
}

TEST_F(PackOnDisk, RefusesWhatOthersCanWrite) {
  const std::string key = load()->key();
  ASSERT_EQ(::chmod(pack_path(key).c_str(), 0620), 0);
  EXPECT_THAT(refusal(source_), HasSubstr("can be written by others"));
  ASSERT_EQ(::chmod(pack_path(key).c_str(), 0600), 0);
  EXPECT_EQ(refusal(source_), "");
  for (const char* folder : {"", "/packs", "/sources"}) {
    ASSERT_EQ(::chmod((cache_ + folder).c_str(), 0770), 0);
    EXPECT_THAT(refusal(source_), HasSubstr("can be written by others")) << folder;
    ASSERT_EQ(::chmod((cache_ + folder).c_str(), 0700), 0);
  }
}

TEST_F(PackOnDisk, RefusesLinks) {
  const std::string path = pack_path(load()->key());
  std::filesystem::rename(path, folder_ + "/elsewhere");
  ASSERT_EQ(::symlink((folder_ + "/elsewhere").c_str(), path.c_str()), 0);
  EXPECT_THAT(refusal(source_), HasSubstr("link"));
}

TEST_F(PackOnDisk, RefusesWhatBelongsToOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string path = pack_path(load()->key());
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(refusal(source_), HasSubstr("belongs to user 12345"));
}

// Root may write everywhere: the test continues as another user.
TEST_F(PackOnDisk, AReadOnlyCacheServesWhatItHolds) {
  const auto as_user = [this](const std::function<std::string()>& f) {
    return in_child([&] {
      if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return std::string("no other user");
      return f();
    });
  };
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder_.c_str(), 65534, 65534), 0);
  }
  EXPECT_EQ(as_user([&] { return load()->key(); }).size(), 64u);
  for (const char* folder : {"/packs", "/sources", ""}) ASSERT_EQ(::chmod((cache_ + folder).c_str(), 0500), 0);
  EXPECT_EQ(as_user([&] { return load()->key(); }).size(), 64u);
  source_.set_identity("another");
  EXPECT_THAT(as_user([&] { return load()->key(); }), HasSubstr("--pack none"));
}

TEST_F(PackOnDisk, AFullDiskIsSaidBeforehand) {
  const std::string message = in_child([&]() -> std::string {
    std::filesystem::create_directory(cache_);
    const bool root = ::geteuid() == 0;
    if (::unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return "skip";
    (void)::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", cache_.c_str(), "tmpfs", 0, "size=16k,mode=0700") != 0) return "skip";
    const std::string refused = refusal(source_);
    return refused + (files("packs").empty() ? "" : " and something was left");
  });
  if (message == "skip") GTEST_SKIP() << "no private mounts here";
  EXPECT_THAT(message, HasSubstr("bytes and the disk has"));
  EXPECT_THAT(message, HasSubstr("--pack none"));
  EXPECT_THAT(message, Not(HasSubstr("left")));
}

// The limit is lowered in the middle of the writing, so that the room that was there beforehand is gone.
TEST_F(PackOnDisk, ADiskThatFillsUpLeavesNothing) {
  const std::string message = in_child([&]() -> std::string {
    ::signal(SIGXFSZ, SIG_IGN);
    PackOptions o = options();
    o.progress = [](std::string_view what, uint64_t, uint64_t) {
      struct rlimit limit = {8192, 8192};
      if (what == "packing") ::setrlimit(RLIMIT_FSIZE, &limit);
    };
    try {
      PackedModel::load(source_, o);
    } catch (const Error& e) {
      return fmt::format("{} {} {}", e.what(), e.code() == Code::kResource,
                         files("packs").size() + files("sources").size());
    }
    return "nothing was refused";
  });
  EXPECT_THAT(message, HasSubstr("cannot be written: File too large; make room"));
  EXPECT_THAT(message, HasSubstr("true 0"));
}

TEST_F(PackOnDisk, AFileSizeLimitIsSaidBeforehand) {
  const std::string message = in_child([&] {
    struct rlimit limit = {8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal(source_);
  });
  EXPECT_THAT(message, HasSubstr("the limit of a file is 8192"));
}

TEST_F(PackOnDisk, ACancelLeavesNothing) {
  PackOptions o = options();
  o.progress = [](std::string_view what, uint64_t, uint64_t) {
    if (what == "packing") fail(Code::kCancelled, "stopped");
  };
  EXPECT_THROW(PackedModel::load(source_, o), Error);
  EXPECT_TRUE(files("packs").empty());
  EXPECT_TRUE(files("sources").empty());
}

TEST_F(PackOnDisk, WaitsForAnotherThatPacksTheSameSource) {
  std::optional<CacheLock> lock(
      PackStore(cache_).sources().lock(PackStore::record_name("fake", false), [](double) { return false; }));
  std::atomic<bool> waiting{false};
  std::thread other([&] {
    while (!waiting) std::this_thread::yield();
    lock.reset();
  });
  PackOptions o = options();
  o.progress = [&](std::string_view what, uint64_t, uint64_t) {
    if (what.starts_with("waiting")) waiting = true;
  };
  EXPECT_NE(PackedModel::load(source_, o), nullptr);
  other.join();
}

// Four processes at once: one packs, the others find its pack.
TEST_F(PackOnDisk, ProcessesThatPackAtOnceDoNoHarm) {
  source_.add("large", Format::q8_0, {1024, 8192});
  const std::string key = PackedModel::load(source_, PackOptions())->key();
  const uint64_t reads = source_.reads();
  std::vector<std::string> results(4);
  std::vector<std::thread> waiters;
  for (std::string& result : results)
    waiters.emplace_back([&] {
      result = in_child([&] {
        const auto pack = PackedModel::load(source_, options(2));
        return fmt::format("{} {}", pack->key(), source_.reads() - reads);
      });
    });
  for (std::thread& t : waiters) t.join();
  EXPECT_EQ(std::count(results.begin(), results.end(), fmt::format("{} {}", key, reads)), 1);
  EXPECT_EQ(std::count(results.begin(), results.end(), key + " 0"), 3);
  EXPECT_THAT(files("packs"), testing::ElementsAre(pack_name(key)));
  EXPECT_EQ(files("sources").size(), 1u);
}

// Killed at any moment: what lies under a pack's name is whole, and the next run takes away what is left.
TEST_F(PackOnDisk, KilledWritersLeaveNoBrokenPack) {
  source_.add("large", Format::q8_0, {1024, 4096});
  std::mt19937 rng(3);
  int interrupted = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      PackedModel::load(source_, options(2));
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(rng() % 30000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    interrupted += WIFSIGNALED(status);
    WorkerPool pool{WorkerPool::Options()};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (key_of_pack_name(entry.path().filename()).empty()) continue;
      const MappedFile file(entry.path());
      EXPECT_NO_THROW(verify_pack_data(file, decode_pack_header(file), pool, {}));
    }
    if (round % 2 == 0) std::filesystem::remove_all(cache_ + "/sources");
    if (round % 3 == 0 && std::filesystem::exists(cache_ + "/packs"))
      for (const std::string& name : files("packs"))
        if (!is_pack_temporary(name)) std::filesystem::remove(cache_ + "/packs/" + name);
  }
  EXPECT_GT(interrupted, 5);
  std::filesystem::remove_all(cache_ + "/sources");
  for (const std::string& name : std::filesystem::exists(cache_) ? files("packs") : std::vector<std::string>())
    if (!is_pack_temporary(name)) std::filesystem::remove(cache_ + "/packs/" + name);
  const std::string key = load()->key();
  EXPECT_THAT(files("packs"), testing::ElementsAre(pack_name(key)));
}

}  // namespace
}  // namespace stet
