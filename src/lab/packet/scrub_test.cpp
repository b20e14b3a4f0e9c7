#include "lab/packet/scrub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

const PrivateNames kNames{"carola", "bluebox", "/home/carola"};

std::string found(const std::string& text, ScrubScope scope = ScrubScope::metadata) {
  return private_content(text, kNames, scope).value_or("");
}

TEST(Scrub, NamesAreFoundAsWholeWords) {
  EXPECT_EQ(found("run by carola"), "the user's name");
  EXPECT_EQ(found("Linux bluebox 6.1.0"), "this machine's name");
  EXPECT_EQ(found("carolatype bluebox2 notbluebox"), "");
  EXPECT_EQ(found("http://bluebox:8000/v1"), "this machine's name");
  EXPECT_EQ(found("/data/carola/model.gguf"), "the user's name");
  EXPECT_EQ(found("/home/carola/model.gguf"), "the home directory");
  EXPECT_EQ(found("/home/carolatype/model.gguf"), "");
  EXPECT_EQ(found("model.gguf"), "");
}

TEST(Scrub, RunningTextMayUseANameAsAWord) {
  EXPECT_EQ(found("Write a letter to carola.", ScrubScope::prompt), "");
  EXPECT_EQ(found("Mail carola@example.org", ScrubScope::prompt), "the user's name");
  EXPECT_EQ(found("ssh root@bluebox", ScrubScope::prompt), "this machine's name");
  EXPECT_EQ(found("Read /srv/carola/notes", ScrubScope::prompt), "the user's name");
  EXPECT_EQ(found("cd /home/carola", ScrubScope::prompt), "the home directory");
}

TEST(Scrub, KeysAreFoundByTheirForm) {
  const std::string tail(24, 'x');
  for (const std::string& key :
       {"sk-" + tail, "ghp_" + tail, "hf_" + tail, "AKIA" + tail, "Authorization: Bearer " + tail,
        std::string("-----BEGIN OPENSSH PRIVATE KEY-----"), "xoxb-" + tail, "token=glpat-" + tail})
    for (const ScrubScope scope : {ScrubScope::metadata, ScrubScope::prompt})
      EXPECT_THAT(found("a " + key, scope), testing::HasSubstr("looks like a key")) << key;
  EXPECT_EQ(found("risk-" + tail), "") << "a word that ends like the beginning of a key";
  EXPECT_EQ(found("sk-short"), "");
  EXPECT_EQ(found(std::string(64, 'a')), "") << "a hash is no key";
  EXPECT_THAT(found("sk-" + tail), testing::Not(testing::HasSubstr(tail))) << "the key is not repeated";
}

TEST(Scrub, JsonIsSearchedBehindItsEscapes) {
  const auto in_json = [](const std::string& json) {
    return private_json_content(json, kNames, ScrubScope::metadata).value_or("");
  };
  EXPECT_EQ(in_json(R"({"a":{"b":["x","line\ncarola"]}})"), "the user's name (at 'b') (at 'a')");
  EXPECT_EQ(in_json(R"({"bluebox":1})"), "this machine's name");
  EXPECT_EQ(in_json(R"({"a":[1,null,"fine"]})"), "");
  EXPECT_EQ(in_json(R"({"a":"\/home\/carola\/x"})"), "the home directory (at 'a')");
  EXPECT_THROW((void)in_json("{"), Error);
}

TEST(Scrub, ThisProcessKnowsItsNames) {
  const PrivateNames names = private_names();
  EXPECT_FALSE(names.home.ends_with('/'));
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  EXPECT_TRUE(names.host.empty() || names.host == host);
}

class ScrubbedPacketTest : public PacketFolderTest {};

TEST_F(ScrubbedPacketTest, NothingPrivateReachesAPacket) {
  const std::string home = private_names().home;
  if (home.empty()) GTEST_SKIP() << "no home directory here";
  const std::string private_path = home + "/models/m.gguf";
  FakeBench bench;
  Json plan = bench.plan_json();
  plan["model"] = private_path;
  EXPECT_THROW(PacketWriter(path("p"), plan.dump()), Error);
  EXPECT_FALSE(std::filesystem::exists(path("p.partial")));

  PacketWriter writer(path("p"), bench.plan());
  StartRecord start = bench.start(0);
  start.identity_json = Json({{"cmdline", private_path}}).dump();
  EXPECT_THROW(writer.add(start), Error);
  writer.add(bench.start(0));
  RequestRecord r = bench.request(0, 0);
  r.prompt = "look into " + private_path;
  EXPECT_THROW(writer.add(r), Error);
  EXPECT_THROW(writer.note("n", Json({{"path", private_path}}).dump()), Error);
  r = bench.request(0, 0);
  r.error = "cannot open " + private_path;
  writer.add(r);
  const std::string events = read_text(path("p.partial/events.jsonl"));
  EXPECT_EQ(events.find(home + "/"), std::string::npos);
  EXPECT_NE(events.find("withheld: the message held the home directory"), std::string::npos);
}

}  // namespace
}  // namespace stet
