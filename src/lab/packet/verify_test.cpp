#include "lab/packet/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "lab/packet/manifest.h"
#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

class VerifyTest : public PacketFolderTest {
 protected:
  // Exchanges a text in results.json and makes the manifest fit.
  void forge(const std::string& from, const std::string& to) const {
    std::string results = read_text(path("p/results.json"));
    const size_t at = results.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    results.replace(at, from.size(), to);
    write_text(path("p/results.json"), results);
    std::vector<ManifestEntry> entries = read_manifest(read_text(path("p/MANIFEST")));
    for (ManifestEntry& e : entries)
      if (e.name == "results.json") e = manifest_entry(e.name, results);
    write_text(path("p/MANIFEST"), manifest_text(entries));
  }
  void write_teacher() const {
    FakeBench bench;
    bench.teacher = true;
    bench.write(path("p"));
  }
};

TEST_F(VerifyTest, ASoundPacket) {
  write_teacher();
  const VerifyReport report = verify_packet(path("p"));
  EXPECT_EQ(report.mismatch, "");
  EXPECT_EQ(report.kind, "bench");
  EXPECT_EQ(report.verdict, "valid");
  EXPECT_EQ(report.frames, 720u);
  EXPECT_EQ(report.tokens, 720u);
  EXPECT_GT(report.values, 200u);
  ASSERT_EQ(report.signatures.size(), 2u);
  EXPECT_EQ(report.signatures[0].state, SignatureCheck::State::absent);
}

TEST_F(VerifyTest, AForgedFigureIsNamed) {
  write_teacher();
  forge("\"tokens_per_second\": 100.0", "\"tokens_per_second\": 102.9");
  EXPECT_EQ(verify_packet(path("p")).mismatch,
            "results.json: results/arms/0/headline/tokens_per_second is 102.9, and the events give 100.0");
}

TEST_F(VerifyTest, AForgedVerdictIsNamed) {
  FakeBench().write(path("p"));
  forge("\"verdict\": \"unproven\"", "\"verdict\": \"valid\"");
  const VerifyReport report = verify_packet(path("p"));
  EXPECT_EQ(report.mismatch, R"(results.json: results/verdict is "valid", and the events give "unproven")");
  EXPECT_EQ(report.verdict, "unproven") << "no stored verdict is believed";
}

TEST_F(VerifyTest, OtherBytesWithTheSameValuesAreFoundToo) {
  write_teacher();
  forge("\"verdict\": ", "\"verdict\":  ");
  EXPECT_EQ(verify_packet(path("p")).mismatch, "results.json holds the same values, written in another way");
}

TEST_F(VerifyTest, OtherRulesAreNotJudged) {
  write_teacher();
  forge("\"rules\": 1", "\"rules\": 2");
  try {
    (void)verify_packet(path("p"));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("version 2 of the rules"));
  }
}

TEST_F(VerifyTest, Differences) {
  EXPECT_EQ(first_json_difference("[1,2]", "[1,2,3]"), "results.json: it has 2 members, and the events give 3");
  EXPECT_EQ(first_json_difference(R"({"a":{"b":1}})", R"({"a":{"c":1}})"), "results.json: a/c is missing");
  EXPECT_EQ(first_json_difference(R"({"a":[1,"x"]})", R"({"a":[1,2]})"),
            R"(results.json: a/1 is "x", and the events give 2)");
  EXPECT_THAT(first_json_difference("{", "{}"), HasSubstr("not JSON"));
}

class SignatureTest : public VerifyTest {
 protected:
  bool shell(const std::string& command) const { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }
  // A throwaway key and the list that allows it.
  bool make_key(const std::string& name) const {
    const bool made = shell("ssh-keygen -q -t ed25519 -N '' -C " + name + " -f " + path(name));
    write_text(path(name + ".allowed"), name + "@example.org " + read_text(path(name + ".pub")));
    return made;
  }
  bool sign(const std::string& key, const std::string& file, const std::string& space = "stet-packet") const {
    return shell("ssh-keygen -Y sign -f " + path(key) + " -n " + space + " " + path(file));
  }
};

TEST_F(SignatureTest, AreCheckedAgainstTheAllowedSigners) {
  if (!make_key("one")) GTEST_SKIP() << "no ssh-keygen here";
  ASSERT_TRUE(make_key("two"));
  write_teacher();
  ASSERT_TRUE(sign("one", "p/MANIFEST"));
  ASSERT_TRUE(sign("one", "p/plan.json"));
  const auto state = [&](const std::string& signers) { return verify_packet(path("p"), signers).signatures[0]; };
  EXPECT_EQ(state("").state, SignatureCheck::State::not_checked);
  EXPECT_EQ(state(path("one.allowed")).state, SignatureCheck::State::good);
  EXPECT_EQ(state(path("one.allowed")).signer, "one@example.org");
  EXPECT_EQ(verify_packet(path("p"), path("one.allowed")).signatures[1].state, SignatureCheck::State::good);
  EXPECT_EQ(state(path("two.allowed")).state, SignatureCheck::State::bad);
  EXPECT_THROW((void)state(path("missing")), Error);
}

TEST_F(SignatureTest, OfAnotherFileOrPurposeAreBad) {
  if (!make_key("one")) GTEST_SKIP() << "no ssh-keygen here";
  write_teacher();
  ASSERT_TRUE(sign("one", "p/plan.json"));
  std::filesystem::rename(path("p/plan.json.sig"), path("p/MANIFEST.sig"));
  auto check = verify_packet(path("p"), path("one.allowed")).signatures[0];
  EXPECT_EQ(check.state, SignatureCheck::State::bad);
  EXPECT_THAT(check.why, HasSubstr("not a signature of this file by one@example.org"));
  std::filesystem::remove(path("p/MANIFEST.sig"));
  ASSERT_TRUE(sign("one", "p/MANIFEST", "git"));
  EXPECT_EQ(verify_packet(path("p"), path("one.allowed")).signatures[0].state, SignatureCheck::State::bad);
  write_text(path("p/MANIFEST.sig"), "nonsense");
  EXPECT_EQ(verify_packet(path("p"), path("one.allowed")).signatures[0].state, SignatureCheck::State::bad);
}

}  // namespace
}  // namespace stet
