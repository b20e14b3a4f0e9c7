#include "lab/spec_eval/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/spec_eval/eval_test_util.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const Json& manifest) {
  try {
    (void)parse_manifest(manifest.dump());
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(EvalManifest, ReadsWhatItWrites) {
  EvalManifest m = fake_manifest();
  m.scale = 0.05;
  m.policy_files = {{"router.bin", 12, std::string(64, 'd')}};
  m.cites = {3};
  const std::string text = manifest_json(m);
  EXPECT_EQ(manifest_json(parse_manifest(text)), text);
  EXPECT_EQ(parse_manifest(text).contract.ordered_requests, 128u);
}

TEST(EvalManifest, RefusesWhatItDoesNotKnow) {
  const Json good = Json::parse(manifest_json(fake_manifest()));
  EXPECT_EQ(refusal(good), "");
  Json bad = good;
  bad["more"] = 1;
  EXPECT_THAT(refusal(bad), HasSubstr("'more' is not known"));
  bad = good;
  bad["policy"]["inputs"] = {"prompt hash"};
  EXPECT_THAT(refusal(bad), HasSubstr("must not read 'prompt hash'"));
  bad = good;
  bad["policy"]["inputs"] = Json::array();
  EXPECT_THAT(refusal(bad), HasSubstr("what it reads"));
  bad = good;
  bad["contract"]["scale"] = 1.5;
  EXPECT_THAT(refusal(bad), HasSubstr("scale"));
  bad = good;
  bad["contract"]["text"] = good["contract"]["text"].get<std::string>() + " ";
  EXPECT_THAT(refusal(bad), HasSubstr("has the hash"));
  bad = good;
  bad["arms"]["candidate"]["identity"].erase("build_id");
  EXPECT_THAT(refusal(bad), HasSubstr("lacks members"));
  bad = good;
  bad["arms"].erase("target");
  EXPECT_THAT(refusal(bad), HasSubstr("'target' is missing"));
}

TEST(EvalManifest, AnythingButTheContractItselfScreens) {
  EvalManifest m = fake_manifest();
  EXPECT_FALSE(m.screening());
  m.scale = 0.5;
  EXPECT_TRUE(m.screening());
  m.scale = 1;
  m.contract = small_contract();
  EXPECT_TRUE(m.screening());
}

TEST(EvalManifest, AContractIsReadStrictly) {
  EXPECT_THROW(parse_spec_eval_contract("{}", "x"), Error);
  EXPECT_THROW(parse_spec_eval_contract("[]", "x"), Error);
  Json json = Json::parse(spec_eval_contract().bytes);
  json["packs"] = {"A"};
  EXPECT_THROW(parse_spec_eval_contract(json.dump(), "x"), Error);
  json["packs"] = {"A", "B"};
  json["repetitions"] = "two";
  EXPECT_THROW(parse_spec_eval_contract(json.dump(), "x"), Error);
}

TEST(FrozenIdentity, NamesWhatChanged) {
  const std::string frozen = frozen_identity(fake_identity(EvalArm::candidate));
  EXPECT_EQ(identity_change(frozen, fake_identity(EvalArm::candidate)), "");
  Json other = Json::parse(fake_identity(EvalArm::candidate));
  other["context"] = 4096;  // what a machine decides at every start
  EXPECT_EQ(identity_change(frozen, other.dump()), "");
  other["build_id"] = "b2";
  EXPECT_EQ(identity_change(frozen, other.dump()), "build_id was b1 and is b2");
  EXPECT_EQ(identity_change(frozen, fake_identity(EvalArm::current)), "draft_depth was 2 and is 1");
  EXPECT_TRUE(unproven_members(frozen).empty());
  EXPECT_THAT(unproven_members(frozen_identity("{}")),
              ElementsAre("build_id", "model_sha256", "tokenizer_sha256", "numerics_version"));
}

TEST(FrozenIdentity, TheSubjectIsWhatIsJudged) {
  EvalManifest a = fake_manifest(), b = a;
  b.label = "another day";
  b.bootstrap_seed = 8;
  EXPECT_EQ(eval_subject_sha256(a), eval_subject_sha256(b));
  b.policy = "two";
  EXPECT_NE(eval_subject_sha256(a), eval_subject_sha256(b));
}

}  // namespace
}  // namespace stet
