// The drafts of tiny DeepSeek V4 checkpoints (tests/golden/deepseek_v4/mtp and dspark) against their transcription in
// binary64, against wrong engines, and against themselves in pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "models/deepseek_v4_parts.h"
#include "state/deepseek_v4_golden.h"
#include "state/draft_passes.h"

namespace stet {
namespace {

using deepseek_v4::kDraftBlock;
using deepseek_v4::settings;
using deepseek_v4::Settings;
using ::testing::HasSubstr;

struct DraftModel : test::DeepseekV4Golden {
  explicit DraftModel(const std::string& name, bool drafts = true, const std::string& mode = "f32")
      : DeepseekV4Golden(name, mode, drafts) {
    const std::string file = test::kDeepseekV4Goldens + name + (mode == "f32" ? "/" : "/checkpoint_") + "draft.npy";
    const std::string bytes = test::bytes_of(file);
    const uint64_t columns = model.desc.vocab + (name == "dspark" ? 1 : 0);
    const size_t header = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
    golden = test::last_elements<double>(file, (bytes.size() - header) / sizeof(double));
    STET_CHECK(golden.size() % columns == 0);
  }
  double tolerance() const { return record["tolerance"]["f32"].get<double>(); }

  std::vector<double> golden;
};

// How the draft is asked, and how the rows came to be.
struct Way {
  Isa isa = Isa::scalar;
  unsigned threads = 1;
  ReplayMode mode = ReplayMode::replayed;
  uint32_t prompt_rows = kWideRows;
  uint32_t rejected = 0;                         // rows that are run at every position and taken back
  bool own_token = false, mean_streams = false;  // mutants
};

struct Fixture {
  Fixture(const DraftModel& m, const ModelDesc& desc, const Way& way)
      : pool(test::pool_options(way.threads)),
        decoder(desc, *m.model.pack, kernels(way.isa), pool, {256, KvFormat::f32, way.mode, way.prompt_rows},
                test::unqualified()) {
    const auto tokens = std::span(m.tokens);
    if (way.rejected == 0) {
      decoder.forward(tokens, 0, 1);
      return;
    }
    const std::vector<int32_t> wrong = test::test_tokens(desc, way.rejected, 9);
    for (uint32_t t = 0; t < tokens.size(); ++t) {
      decoder.forward(wrong, t, 0);
      decoder.forward(tokens.subspan(t, 1), t, 1);
    }
  }
  WorkerPool pool;
  Decoder decoder;
};

// Logits of the row of every position: as first rows, and the last ones of them once more in one pass of rows.
std::vector<float> mtp_logits(const DraftModel& m, const ModelDesc& desc, const Way& way) {
  Fixture f(m, desc, way);
  const auto behind = std::span(m.tokens).subspan(way.own_token ? 0 : 1);
  if (way.mean_streams) {
    const uint32_t n = settings(desc).streams;
    for (uint32_t t = 0; t < m.tokens.size(); ++t) {
      float* row = f.decoder.states().at("mtp.streams").row(t);
      for (uint32_t d = 0; d < desc.hidden; ++d) {
        float sum = 0;
        for (uint32_t k = 0; k < n; ++k) sum += row[k * desc.hidden + d];
        for (uint32_t k = 0; k < n; ++k) row[k * desc.hidden + d] = sum / static_cast<float>(n);
      }
    }
  }
  MtpPasses passes(f.decoder, test::unqualified());
  std::vector<float> all;
  for (uint32_t i = 0; i + 1 < m.tokens.size(); ++i) {
    // Its window in passes of other widths than one.
    const uint32_t from = i < passes.window() ? 0 : i + 1 - passes.window();
    if (i % 3 != 0) passes.rows(behind.subspan(from, i - from), from);
    const float* logits = passes.first(behind[i], i);
    all.insert(all.end(), logits, logits + desc.vocab);
    // Guesses at the next positions leave no trace.
    if (i % 2 == 0) passes.next(3, i + 1);
  }
  return all;
}

// Logits and confidence of every row of every case of the golden.
std::vector<float> dspark_rows(const DraftModel& m, const ModelDesc& desc, const Way& way,
                               std::vector<std::vector<int32_t>>* drafted = nullptr) {
  Fixture f(m, desc, way);
  DSparkPasses passes(f.decoder, test::unqualified());
  std::vector<float> all;
  for (size_t i = 0; i < m.record["cases"].size(); ++i) {
    const uint32_t verified = m.record["cases"][i]["verified"].get<uint32_t>();
    const uint32_t drafts = m.record["cases"][i]["drafts"].get<uint32_t>();
    const std::string mode(activation_mode_name(desc.activations));
    int32_t before = m.record["anchors"][mode][i].get<int32_t>();
    passes.block(before, drafts, verified);
    if (drafted != nullptr) drafted->emplace_back();
    for (uint32_t row = 0; row < drafts; ++row) {
      const DSparkPasses::Choice c = passes.choose(row, before);
      all.insert(all.end(), c.logits, c.logits + desc.vocab);
      all.push_back(c.confidence);
      before = static_cast<int32_t>(std::max_element(c.logits, c.logits + desc.vocab) - c.logits);
      if (drafted != nullptr) drafted->back().push_back(before);
    }
  }
  return all;
}

double worst_error(const std::vector<float>& got, const std::vector<double>& want) {
  EXPECT_EQ(got.size(), want.size());
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

TEST(Mtp, LogitsAreWithinTheToleranceOfTheTranscription) {
  const DraftModel m("mtp");
  ASSERT_NE(m.model.desc.draft, nullptr);
  EXPECT_EQ(m.model.desc.draft->kind, "mtp");
  const double worst = worst_error(mtp_logits(m, m.model.desc, {}), m.golden);
  EXPECT_LE(worst, m.tolerance());
  std::printf("    mtp: error %.3g, %.2f of the tolerance\n", worst, worst / m.tolerance());
}

TEST(Mtp, WrongEnginesMissTheTolerance) {
  const DraftModel m("mtp");
  EXPECT_GT(worst_error(mtp_logits(m, m.model.desc, {.own_token = true}), m.golden), 1000 * m.tolerance());
  EXPECT_GT(worst_error(mtp_logits(m, m.model.desc, {.mean_streams = true}), m.golden), 1000 * m.tolerance());
}

TEST(DSpark, LogitsConfidencesAndTokensAreThoseOfTheTranscription) {
  const DraftModel m("dspark");
  ASSERT_NE(m.model.desc.draft, nullptr);
  EXPECT_EQ(m.model.desc.draft->kind, "dspark");
  EXPECT_EQ(settings(m.model.desc).draft.stages, 3u);
  std::vector<std::vector<int32_t>> drafted;
  const double worst = worst_error(dspark_rows(m, m.model.desc, {}, &drafted), m.golden);
  EXPECT_LE(worst, m.tolerance());
  EXPECT_EQ(drafted, m.record["drafted"]["f32"].get<std::vector<std::vector<int32_t>>>());
  std::printf("    dspark: error %.3g, %.2f of the tolerance\n", worst, worst / m.tolerance());
}

// Mode checkpoint: rows that errors of f32 arithmetic move over no boundary have those errors' tolerance.
void expect_rows_within(const DraftModel& m, const std::vector<float>& got) {
  const auto tolerances = m.record["checkpoint_tolerance_at_rows"].get<std::vector<double>>();
  ASSERT_EQ(got.size(), m.golden.size());
  const size_t columns = got.size() / tolerances.size();
  // The logits of a golden row are exact in f32 where its tolerance is 0.
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), m.golden[i], std::max(tolerances[i / columns], 1e-6)) << i / columns;
}

TEST(Mtp, RoundsWhereThePublishedReferenceDoes) {
  const DraftModel m("mtp", true, "checkpoint");
  expect_rows_within(m, mtp_logits(m, m.model.desc, {}));
}

TEST(DSpark, RoundsWhereThePublishedReferenceDoes) {
  const DraftModel m("dspark", true, "checkpoint");
  std::vector<std::vector<int32_t>> drafted;
  expect_rows_within(m, dspark_rows(m, m.model.desc, {}, &drafted));
  EXPECT_EQ(drafted, m.record["drafted"]["checkpoint"].get<std::vector<std::vector<int32_t>>>());
}

// ---- wrong engines: the right lists over something wrong

const DraftDesc& right(const char* name) {
  static std::map<std::string, std::unique_ptr<DraftModel>> models;
  auto& m = models[name];
  if (!m) m = std::make_unique<DraftModel>(name);
  return *m->model.desc.draft;
}

// The anchor at the last verified row: everything turned by the angle of the position before.
void anchor_early(const ModelDesc& d, const ModelWeights& w, DraftPass pass, ListBuilder& list) {
  std::vector<RopeRows> ropes = w.ropes;
  for (RopeRows& r : ropes) r.first -= 2 * size_t{r.dim};
  right("dspark").record(d, {w.pack, w.attend, ropes, w.states}, pass, list);
}

// Rows of the block are stored as if they were verified, and see those before them only.
void causal_block(const ModelDesc& d, const ModelWeights& w, DraftPass pass, ListBuilder& list) {
  if (pass != DraftPass::block) return right("dspark").record(d, w, pass, list);
  const Buffer* token = list.buffer("token", d.hidden);
  list.embed("token_embd", w.matrix("token_embd.weight"), token);
  list.row(Op::repeat, "streams", token, list.buffer("streams", d.hidden * settings(d).streams));
  for (uint32_t i = 0; i < settings(d).draft.stages; ++i)
    deepseek_v4::record_block(d, w, list, kDraftBlock + i, deepseek_v4::Rows::stored);
}

void short_window(const ModelDesc& d, const ModelWeights& w, DraftPass pass, ListBuilder& list) {
  auto s = std::make_shared<Settings>(settings(d));
  --s->window;
  ModelDesc other = d;
  other.settings = s;
  right("dspark").record(other, w, pass, list);
}

// The stages' rows are made of the tap as main_proj leaves it.
void tap_not_normed(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  static const DraftModel m("dspark");
  m.model.desc.record_body(d, w, list);
  for (uint32_t i = 0; i < settings(d).draft.stages; ++i)
    deepseek_v4::record_kept_row(d, w, list, kDraftBlock + i, list.buffer("main", d.hidden));
}

TEST(DSpark, WrongEnginesMissTheTolerance) {
  const DraftModel m("dspark");
  for (const auto record : {anchor_early, causal_block, short_window}) {
    auto wrong = std::make_shared<DraftDesc>(*m.model.desc.draft);
    wrong->record = record;
    ModelDesc d = m.model.desc;
    d.draft = wrong;
    EXPECT_GT(worst_error(dspark_rows(m, d, {}), m.golden), 1000 * m.tolerance());
  }
  ModelDesc d = m.model.desc;
  d.record_body = tap_not_normed;
  EXPECT_GT(worst_error(dspark_rows(m, d, {}), m.golden), 1000 * m.tolerance());
}

// ---- every way the same bits

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const Isa isa : available_isas())
    for (const ReplayMode mode : {ReplayMode::eager, ReplayMode::recorded, ReplayMode::replayed})
      for (const uint32_t rejected : {0u, 1u, 5u, 16u})
        all.push_back({.isa = isa,
                       .threads = 1 + rejected % 3,
                       .mode = mode,
                       .prompt_rows = rejected == 0 ? 7u : kWideRows,
                       .rejected = rejected});
  return all;
}

TEST(Mtp, EveryWayGivesTheSameBits) {
  const DraftModel m("mtp");
  const std::vector<float> want = mtp_logits(m, m.model.desc, {.mode = ReplayMode::eager});
  for (const Way& way : ways()) {
    const std::vector<float> got = mtp_logits(m, m.model.desc, way);
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
        << isa_name(way.isa) << way.rejected;
  }
}

TEST(DSpark, EveryWayGivesTheSameBits) {
  const DraftModel m("dspark");
  const std::vector<float> want = dspark_rows(m, m.model.desc, {.mode = ReplayMode::eager});
  for (const Way& way : ways()) {
    const std::vector<float> got = dspark_rows(m, m.model.desc, way);
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
        << isa_name(way.isa) << way.rejected;
  }
}

class OwnDraft : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, OwnDraft, testing::Values("mtp", "dspark"));

// A plain source has nothing of the blocks, and the target's bits do not know of them.
TEST_P(OwnDraft, TheTargetIsTheSameWithAndWithout) {
  const DraftModel with(GetParam()), without(GetParam(), false);
  EXPECT_EQ(without.model.desc.draft, nullptr);
  for (const TensorInfo& t : without.model.source->tensors()) EXPECT_FALSE(t.name.starts_with("mtp.")) << t.name;
  EXPECT_NE(with.model.pack->key(), without.model.pack->key());
  EXPECT_NE(with.model.source->identity(), without.model.source->identity());
  Fixture a(with, with.model.desc, {}), b(without, without.model.desc, {});
  const uint32_t vocab = with.model.desc.vocab, n = static_cast<uint32_t>(with.tokens.size());
  std::vector<float> logits[2];
  for (Fixture* f : {&a, &b})
    f->decoder.forward_all(with.tokens, 0, [&](uint32_t, const float* row) {
      auto& to = logits[f == &b];
      to.insert(to.end(), row, row + vocab);
    });
  EXPECT_EQ(std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)), 0);
  for (const auto& [name, rows] : b.decoder.states())
    for (uint32_t i = 0; i < n / rows.ratio; ++i)
      EXPECT_EQ(std::memcmp(rows.row(i), a.decoder.states().at(name).row(i), rows.width * sizeof(float)), 0) << name;
}

TEST_P(OwnDraft, QualifiesOnThisMachine) {
  const DraftModel m(GetParam());
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(available_isas().back()), pool, {64, KvFormat::f32});
  const bool mtp = std::string(GetParam()) == "mtp";
  const auto ask = mtp ? std::vector<DraftLists::Ask>{{DraftPass::first, 1, RowSet::pass}}
                       : std::vector<DraftLists::Ask>{{DraftPass::block, kNarrowRows, RowSet::pass}};
  EXPECT_GT(DraftLists(decoder, ask, {}).compared_rows(), 100u);
}

// ---- checkpoints that are not as they should be

struct Copy {
  explicit Copy(const std::string& name) : folder(testing::TempDir() + "stet-own-draft-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder);
    std::filesystem::copy(test::kDeepseekV4Goldens + name, folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  }
  ~Copy() { std::filesystem::remove_all(folder); }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = test::bytes_of(folder + "/" + file);
    const size_t at = text.find(from);
    STET_CHECK(at != std::string::npos);
    text.replace(at, from.size(), to);
    std::filesystem::remove(folder + "/" + file);
    std::ofstream(folder + "/" + file, std::ios::binary) << text;
  }
  std::string refusal(bool drafts = true) const {
    try {
      describe_model(*HfCheckpoint::open(folder, drafts));
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }
  std::string folder;
};

TEST_P(OwnDraft, WhatIsWrongWithItsTensorsIsNamed) {
  const Copy unknown(GetParam());
  unknown.replace("model.safetensors", "\"mtp.0.attn.q_norm.weight\"", "\"mtp.0.attn.q_xxxx.weight\"");
  EXPECT_THAT(unknown.refusal(), HasSubstr("mtp.0.attn.q_xxxx.weight"));
  EXPECT_EQ(unknown.refusal(false), "") << "nobody asks for the draft";
  const Copy lacking(GetParam());
  lacking.replace("model.safetensors", "\"mtp.0.attn.q_norm.weight\"", "\"__metadata_.q_norm.weight\"");
  EXPECT_NE(lacking.refusal(), "");
}

TEST(DSpark, WhatIsWrongWithItsKeysIsNamed) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"\"dspark_noise_token_id\": 29", "\"dspark_noise_token_id\": 31", "dspark_noise_token_id is 31"},
      {"\"dspark_noise_token_id\": 29,", "", "dspark_noise_token_id"},
      {"\"dspark_markov_rank\": 8,", "", "dspark_markov_rank"},
      {"\"dspark_markov_rank\": 8", "\"dspark_markov_rank\": 4", "markov"},
      {"\"dspark_target_layer_ids\": [\n  0,\n  1", "\"dspark_target_layer_ids\": [\n  0,\n  2", "names layer 2"},
      {"\"dspark_target_layer_ids\": [\n  0,\n  1", "\"dspark_target_layer_ids\": [\n  1,\n  0", "not ascending"},
      {"\"dspark_target_layer_ids\": [\n  0,\n  1", "\"dspark_target_layer_ids\": [\n  0", "main_proj"}};
  for (const auto& [from, to, part] : cases) {
    const Copy c("dspark");
    c.replace("config.json", from, to);
    EXPECT_THAT(c.refusal(), HasSubstr(part)) << to;
    EXPECT_EQ(c.refusal(false), "") << to;
  }
  const Copy c("dspark");
  c.replace("config.json", "\"dspark_block_size\": 5,", "");
  EXPECT_EQ(describe_model(*HfCheckpoint::open(c.folder, true)).draft->depth, 5u);
}

}  // namespace
}  // namespace stet
