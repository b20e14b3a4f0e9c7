#include "lab/packet/packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/error.h"
#include "base/hash.h"
#include "lab/packet/judge.h"
#include "lab/packet/manifest.h"
#include "lab/packet/packet_fixture_test.h"
#include "lab/record/event_lines.h"

namespace stet {
namespace {

using testing::HasSubstr;

class PacketTest : public PacketFolderTest {
 protected:
  std::string error_of(const std::string& packet, Code code = Code::kInput) const {
    try {
      (void)read_packet(packet);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    return "";
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }
};

TEST_F(PacketTest, WhatIsWrittenIsReadAndRecomputed) {
  const FakeBench bench;
  const std::string results = bench.write(path("p"));
  const Packet p = read_packet(path("p"));
  EXPECT_EQ(p.plan_json, bench.plan());
  EXPECT_EQ(p.plan_sha256, sha256_hex(p.plan_json.data(), p.plan_json.size()));
  EXPECT_EQ(p.starts.size(), 2u);
  EXPECT_EQ(p.requests.size(), 6u);
  EXPECT_EQ(p.results_json, results);
  EXPECT_EQ(recompute_results(p), results);
  EXPECT_FALSE(exists("p.partial"));
  EXPECT_EQ(read_packet(path("p") + "/").path, path("p")) << "a slash at the end is no other packet";
}

TEST_F(PacketTest, AnyChangedByteIsFound) {
  FakeBench bench;
  bench.steps = {"letter"};
  bench.write(path("p"));
  for (const char* name : {"plan.json", "identity.json", "events.jsonl", "results.json", "MANIFEST"}) {
    const std::string file = path("p") + "/" + name, sound = read_text(file);
    const size_t step = std::max<size_t>(1, sound.size() / 23);
    for (size_t i = 0; i < sound.size(); i += step) {
      std::string changed = sound;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      write_text(file, changed);
      EXPECT_NE(error_of(path("p")), "") << name << " byte " << i;
    }
    write_text(file, sound.substr(0, sound.size() - 1));
    EXPECT_NE(error_of(path("p")), "") << name << " truncated";
    write_text(file, sound + "\n");
    EXPECT_NE(error_of(path("p")), "") << name << " longer";
    std::filesystem::remove(file);
    EXPECT_NE(error_of(path("p")), "") << name << " missing";
    write_text(file, sound);
    EXPECT_EQ(error_of(path("p")), "") << name;
  }
}

TEST_F(PacketTest, ErrorsNameTheFile) {
  FakeBench().write(path("p"));
  write_text(path("p") + "/notes.txt", "mine");
  EXPECT_THAT(error_of(path("p")), HasSubstr("p/notes.txt: additional"));
  std::filesystem::remove(path("p") + "/notes.txt");
  write_text(path("p") + "/MANIFEST.sig", "a signature is no part of the manifest");
  EXPECT_EQ(error_of(path("p")), "");
  const std::string events = read_text(path("p") + "/events.jsonl");
  write_text(path("p") + "/events.jsonl", events + "x");
  EXPECT_THAT(error_of(path("p")), HasSubstr("p/events.jsonl: changed"));
  std::filesystem::remove(path("p") + "/events.jsonl");
  EXPECT_THAT(error_of(path("p")), HasSubstr("p/events.jsonl: missing"));
  std::filesystem::create_symlink("plan.json", path("p") + "/events.jsonl");
  EXPECT_THAT(error_of(path("p")), HasSubstr("p/events.jsonl: not a regular file"));
  EXPECT_THAT(error_of(path("q")), HasSubstr("no such folder"));
  std::filesystem::create_directory(path("q"));
  EXPECT_THAT(error_of(path("q")), HasSubstr("not a packet, or incomplete"));
}

// Somebody who writes a fitting manifest still cannot make results out of nothing.
TEST_F(PacketTest, ResultsThatTheEventsDoNotGiveAreNotRecomputed) {
  FakeBench bench;
  bench.teacher = true;
  bench.write(path("p"));
  std::string results = read_text(path("p") + "/results.json");
  results.replace(results.find("\"proved\""), 8, "\"fancy!\"");
  write_text(path("p") + "/results.json", results);
  std::vector<ManifestEntry> entries = read_manifest(read_text(path("p") + "/MANIFEST"));
  for (ManifestEntry& e : entries)
    if (e.name == "results.json") e = manifest_entry(e.name, results);
  write_text(path("p") + "/MANIFEST", manifest_text(entries));
  const Packet p = read_packet(path("p"));
  EXPECT_NE(recompute_results(p), p.results_json);
}

TEST_F(PacketTest, TheEventsBelongToThePlan) {
  FakeBench().write(path("p"));
  FakeBench other;
  other.cold = false;
  write_text(path("p") + "/plan.json", other.plan());
  std::vector<ManifestEntry> entries = read_manifest(read_text(path("p") + "/MANIFEST"));
  for (ManifestEntry& e : entries)
    if (e.name == "plan.json") e = manifest_entry(e.name, other.plan());
  write_text(path("p") + "/MANIFEST", manifest_text(entries));
  EXPECT_THAT(error_of(path("p")), HasSubstr("the events belong to the plan"));
}

TEST_F(PacketTest, IdentitySaysWhatTheStartsSaid) {
  FakeBench().write(path("p"));
  std::string identity = read_text(path("p") + "/identity.json");
  identity.replace(identity.find("\"f16\""), 5, "\"f32\"");
  write_text(path("p") + "/identity.json", identity);
  std::vector<ManifestEntry> entries = read_manifest(read_text(path("p") + "/MANIFEST"));
  for (ManifestEntry& e : entries)
    if (e.name == "identity.json") e = manifest_entry(e.name, identity);
  write_text(path("p") + "/MANIFEST", manifest_text(entries));
  EXPECT_THAT(error_of(path("p")), HasSubstr("identity.json: does not say"));
}

TEST_F(PacketTest, NothingIsOverwritten) {
  FakeBench().write(path("p"));
  EXPECT_THROW(PacketWriter(path("p"), FakeBench().plan()), Error);
  std::filesystem::create_directory(path("q.partial"));
  EXPECT_THROW(PacketWriter(path("q"), FakeBench().plan()), Error);
  write_text(path("r"), "a file");
  EXPECT_THROW(PacketWriter(path("r"), FakeBench().plan()), Error);
}

TEST_F(PacketTest, AnotherPacketThatTookTheNameStays) {
  const FakeBench bench;
  PacketWriter writer(path("p"), bench.plan());
  std::filesystem::create_directory(path("p"));
  write_text(path("p") + "/mine", "kept");
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_EQ(read_text(path("p") + "/mine"), "kept");
  EXPECT_TRUE(exists("p.partial"));
}

TEST_F(PacketTest, AnUnfinishedPacketSaysSo) {
  {
    PacketWriter writer(path("p"), FakeBench().plan());
    writer.add(FakeBench().start(0));
  }
  EXPECT_THAT(error_of(path("p")), HasSubstr("incomplete: its run did not finish"));
  EXPECT_THAT(error_of(path("p.partial")), HasSubstr("incomplete"));
}

TEST_F(PacketTest, FoldersThatCannotBeWritten) {
  const auto code_of = [&](const std::string& where) {
    try {
      PacketWriter writer(where, FakeBench().plan());
    } catch (const Error& e) {
      return e.code();
    }
    return Code::kInternal;
  };
  EXPECT_EQ(code_of(path("missing/p")), Code::kResource);
  EXPECT_EQ(code_of(""), Code::kUsage);
  if (::geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(code_of(path("p")), Code::kResource);
}

// A limit on the size of files stands for a full disk: the write comes back short, then fails.
TEST_F(PacketTest, AFullDiskTakesNothingAway) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    FakeBench bench;
    PacketWriter writer(path("p"), bench.plan());
    writer.add(bench.start(0));
    writer.add(bench.request(0, 0));
    const rlim_t room = std::filesystem::file_size(path("p.partial/events.jsonl")) + 5000;
    const rlimit limit{room, room};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 1;
    try {
      writer.add(bench.request(0, 1));
    } catch (const Error& e) {
      code = e.code() == Code::kResource ? 0 : 2;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // The request that found no room is gone as a whole; the one before it stands.
  const EventLog log = read_events(read_text(path("p.partial/events.jsonl")));
  EXPECT_EQ(log.requests.size(), 1u);
}

TEST_F(PacketTest, KilledAtAnyMomentItIsCompleteOrSaysThatItIsNot) {
  FakeBench bench;
  bench.steps = {"letter"};
  // How long all of it takes, so that the kills fall everywhere.
  const auto begin = std::chrono::steady_clock::now();
  bench.write(path("whole"));
  const auto whole =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  int complete = 0, partial = 0, nothing = 0;
  for (int i = 0; i < 16; ++i) {
    const std::string name = "p" + std::to_string(i);
    const pid_t child = ::fork();
    if (child == 0) {
      bench.write(path(name));
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(whole * (i + 1) / 14));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(exists(name) && exists(name + ".partial"));
    if (exists(name)) {
      const Packet p = read_packet(path(name));
      EXPECT_EQ(recompute_results(p), p.results_json);
      ++complete;
    } else if (exists(name + ".partial")) {
      EXPECT_THAT(error_of(path(name)), HasSubstr("incomplete"));
      ++partial;
    } else {
      ++nothing;
    }
  }
  EXPECT_GT(partial + nothing, 0) << complete << " complete";
}

TEST_F(PacketTest, APlanThatNobodyCanJudgeIsRefusedBeforeAnything) {
  EXPECT_THROW(PacketWriter(path("p"), R"({"kind":"horoscope"})"), Error);
  EXPECT_THROW(PacketWriter(path("p"), R"({"kind":"bench"})"), Error);
  EXPECT_THROW(PacketWriter(path("p"), "no JSON"), Error);
  EXPECT_FALSE(exists("p.partial"));
  EXPECT_THROW((void)judge_of("horoscope"), Error);
}

TEST_F(PacketTest, EventsOutOfOrderAreRefusedWhenTheyAreWritten) {
  const FakeBench bench;
  PacketWriter writer(path("p"), bench.plan());
  EXPECT_THROW(writer.add(bench.request(0, 0)), Error) << "its start is missing";
}

TEST(Manifest, IsReadStrictly) {
  const std::string text = manifest_text({manifest_entry("a", "x"), manifest_entry("b", "")});
  ASSERT_EQ(read_manifest(text).size(), 2u);
  EXPECT_EQ(read_manifest(text)[1].bytes, 0u);
  const std::string hash(64, 'a');
  for (const std::string& bad :
       {std::string("x"), hash + "  1  a", hash + " 1  a\n", hash + "  -1  a\n", hash + "  01  a\n",
        hash + "  1  ../a\n", hash + "  1  .a\n", hash + "  1  \n", hash + "  1  b\n" + hash + "  1  a\n",
        hash + "  1  a\n" + hash + "  1  a\n", std::string("A") + hash.substr(1) + "  1  a\n"})
    EXPECT_THROW((void)read_manifest(bad), Error) << bad;
}

}  // namespace
}  // namespace stet
