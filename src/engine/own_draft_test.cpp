// An engine whose draft is a part of the model's own checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "stet/engine.h"

namespace stet {
namespace {

Options own_draft_options(const std::string& model, const std::string& draft) {
  Options o;
  o.model = "tests/golden/deepseek_v4/" + model;
  o.draft = draft;
  o.kv = "f32";
  o.threads = 2;
  o.context = 128;
  o.pack = "none";
  return o;
}

Request own_draft_request(float temperature, bool reuse) {
  Request r;
  r.reuse_prefix = reuse;
  for (int32_t i = 0; i < 15; ++i) r.prompt.push_back(i * 7 % 31);
  r.max_tokens = 30;
  r.sampling.temperature = temperature;
  r.sampling.seed = 3;
  return r;
}

TEST(OwnDraft, AnswersAreThePlainOnesAndDepthsTheDraftsOwn) {
  for (const auto& [draft, depth] : {std::pair{"mtp", 1u}, {"dspark", 5u}}) {
    Engine plain(own_draft_options(draft, "none")), ngram(own_draft_options(draft, "ngram")),
        engine(own_draft_options(draft, draft));
    EXPECT_EQ(engine.info().draft_depth, depth);
    EXPECT_EQ(engine.info().draft, draft);
    EXPECT_FALSE(engine.info().history_accelerated);
    EXPECT_EQ(ngram.info().pack_key, plain.info().pack_key) << "other drafts do not read the blocks";
    EXPECT_GT(engine.info().weight_bytes, plain.info().weight_bytes);
    EXPECT_GT(engine.info().kv_bytes, plain.info().kv_bytes) << "the target keeps what the draft reads";
    for (const float temperature : {0.0f, 0.9f}) {
      const Generation want = plain.generate(own_draft_request(temperature, false));
      const Generation got = engine.generate(own_draft_request(temperature, false));
      EXPECT_EQ(got.tokens, want.tokens);
      EXPECT_EQ(got.cycles[0].proposed, 0u) << "the prompt has not been run";
      EXPECT_EQ(got.cycles[1].proposed, depth);
      // Once more, the prompt being there.
      const Generation again = engine.generate(own_draft_request(temperature, true));
      EXPECT_EQ(again.tokens, want.tokens);
      EXPECT_EQ(again.cached_tokens, 14u);
      EXPECT_EQ(again.cycles[0].proposed, depth);
    }
  }
}

TEST(OwnDraft, WhatTheCheckpointLacksIsRefusedByName) {
  for (const auto& [model, draft, part] : {std::tuple{"mtp", "dspark", "--draft mtp"},
                                           {"dspark", "mtp", "--draft dspark"},
                                           {"mixed", "mtp", "has none"},
                                           {"mixed", "dspark", "has none"}}) {
    try {
      Engine engine(own_draft_options(model, draft));
      ADD_FAILURE() << model;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kUnsupported);
      EXPECT_THAT(e.what(), testing::HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace stet
