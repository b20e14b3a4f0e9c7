// Qualification catches a wrong bit in one kernel at one width, and then nothing runs.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/fp.h"
#include "kernels/attend/kv_element.h"
#include "replay/verdict.h"
#include "state/decoder.h"
#include "state/test_model.h"

namespace stet {
namespace {

constexpr DecoderOptions kOptions{.context = 512};
const ArmOptions kLater{.qualify = Qualify::later, .cache_dir = "", .progress = nullptr};

const Kernels& best() { return kernels(available_isas().back()); }

void flip(float& x) { x = float_of_bits(bits_of_float(x) ^ 1u); }

// Mutants: the right kernels with one wrong bit. The width or place where it happens.
uint32_t wrong_at = 0;

void wrong_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  best().matvec(w, tile, x, out);
  if (x.rows == wrong_at && tile == w.tiles() - 1) flip(out[(x.rows - 1) * kTileRows]);
}
void wrong_quantize(const float* x, uint32_t row, const Activations& out) {
  best().quantize(x, row, out);
  if (out.rows == wrong_at && row == 0) act_record(out, 0, 0).q(0)[31] ^= 1;
}
void wrong_rmsnorm(const float* x, const float* w, float eps, uint32_t k, float* y) {
  best().rmsnorm(x, w, eps, k, y);
  flip(y[k - 1]);
}
void wrong_swiglu(const float* gate, const float* up, uint32_t n, float* y) {
  best().swiglu(gate, up, n, y);
  if (n == wrong_at * kTileRows) flip(y[n - 1]);
}
void wrong_rope(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y) {
  best().rope(x, row, rope_dim, head_dim, y);
  flip(y[1]);
}
void wrong_store(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key, const float* value) {
  best().store_kv(layout, layer, head, position, key, value);
  if (position == kSlots) *value_address(layout, layer, head, position, 3) ^= 1;
}
void wrong_attend(const AttendRun& run, AttendPart* parts) {
  best().attend(run, parts);
  if (run.first_chunk == 1) flip(parts[0].l);
}
void wrong_join(const AttendPart* parts, uint32_t count, uint32_t head_dim, float* y) {
  best().join(parts, count, head_dim, y);
  if (count == 3) flip(y[0]);
}
Argmax wrong_argmax(const float*, uint32_t n) { return {0, n}; }

// Arms a decoder with these kernels and expects the refusal to name the kernel.
void expect_caught(const test::TestModel& m, const Kernels& mutant, const std::string& kernel) {
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.desc, *m.pack, mutant, pool, kOptions, kLater);
  try {
    decoder.arm({});
    FAIL() << "not caught: " << kernel << " at " << wrong_at;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDiverged);
    EXPECT_NE(std::string(e.what()).find("the " + kernel + " kernel"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("reference 0x"), std::string::npos) << e.what();
  }
  EXPECT_EQ(decoder.life(), LifeState::cold);
  const std::vector<int32_t> tokens = {1};
  EXPECT_THROW(decoder.forward(tokens, 0, 1), Error);
  EXPECT_THROW(decoder.arm({}), Error);
}

TEST(Qualify, AWrongBitAtOneWidthIsCaught) {
  const test::TestModel m("synth:tiny-gqa:q4_0");
  for (uint32_t width : {1u, 2u, 7u, 8u, 9u, 16u, 128u}) {
    wrong_at = width;
    Kernels k = best();
    k.matvec = wrong_matvec;
    expect_caught(m, k, "matvec");
    k = best();
    k.quantize = wrong_quantize;
    expect_caught(m, k, "quantize");
    k = best();
    k.swiglu = wrong_swiglu;
    expect_caught(m, k, "swiglu");
  }
}

TEST(Qualify, AWrongBitInAnyOtherKernelIsCaught) {
  const test::TestModel m("synth:tiny-gqa:q8_0");
  const auto caught = [&](auto Kernels::*member, auto wrong, const char* name) {
    Kernels k = best();
    k.*member = wrong;
    expect_caught(m, k, name);
  };
  caught(&Kernels::rmsnorm, wrong_rmsnorm, "rmsnorm");
  caught(&Kernels::rope, wrong_rope, "rope");
  caught(&Kernels::store_kv, wrong_store, "store_kv");
  caught(&Kernels::attend, wrong_attend, "attend");
  caught(&Kernels::join, wrong_join, "attend");
  Kernels k = best();
  k.sample.argmax = wrong_argmax;
  expect_caught(m, k, "argmax");
}

// A kernel that remembers: right for the first input at an address, wrong for the second.
const void* first_seen = nullptr;
float remembered[16];
void stale_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  best().matvec(w, tile, x, out);
  if (x.rows != 1 || tile != 0 || w.cols != 96) return;
  if (first_seen == nullptr) first_seen = x.data, std::memcpy(remembered, out, sizeof remembered);
  if (first_seen == x.data) std::memcpy(out, remembered, sizeof remembered);
}

TEST(Qualify, AResultThatWasKeptForAnAddressIsCaught) {
  const test::TestModel m("synth:tiny-gqa:q4_0");
  Kernels k = best();
  k.matvec = stale_matvec;
  first_seen = nullptr;
  WorkerPool pool(test::pool_options(1));
  EXPECT_THROW(Decoder(m.desc, *m.pack, k, pool, kOptions), Error);
}

void expect_armed(const char* name, Isa isa, KvFormat kv) {
  const test::TestModel m(name);
  WorkerPool pool(test::pool_options(2));
  const Decoder decoder(m.desc, *m.pack, kernels(isa), pool, {.context = 512, .kv = kv});
  EXPECT_EQ(decoder.life(), LifeState::armed);
  EXPECT_EQ(decoder.qualification().how, Qualification::How::now);
  EXPECT_GT(decoder.qualification().compared_rows, 1000u) << name;
}

TEST(Qualify, RightKernelsAreArmed) {
  for (Isa isa : available_isas())
    for (KvFormat kv : {KvFormat::f16, KvFormat::f32, KvFormat::q8}) expect_armed("synth:tiny-gqa:q4_1", isa, kv);
  for (const char* name : {"synth:tiny:f32", "synth:tiny-gqa:bf16", "synth:tiny-wide:f16", "synth:tiny-256:q6_k"})
    expect_armed(name, available_isas().back(), KvFormat::f16);
}

TEST(Qualify, NothingRunsBeforeArming) {
  const test::TestModel m("synth:tiny:q4_0");
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.desc, *m.pack, best(), pool, kOptions, kLater);
  EXPECT_EQ(decoder.life(), LifeState::loaded);
  const std::vector<int32_t> tokens = {1, 2};
  EXPECT_THROW(decoder.forward(tokens, 0, 1), Error);
  EXPECT_THROW(decoder.forward_all(tokens, 0, [](uint32_t, const float*) {}), Error);
  decoder.arm({.qualify = Qualify::skip, .cache_dir = "", .progress = nullptr});
  EXPECT_EQ(decoder.qualification().how, Qualification::How::no);
  EXPECT_NO_THROW(decoder.forward(tokens, 0, 1));
  EXPECT_THROW(decoder.arm({}), Error);
}

bool broken = false;
void breaking_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  STET_CHECK(!broken);
  best().matvec(w, tile, x, out);
}

TEST(Qualify, AFailedCheckInsideAListEndsItsLife) {
  const test::TestModel m("synth:tiny:q4_0");
  Kernels k = best();
  k.matvec = breaking_matvec;
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.desc, *m.pack, k, pool, kOptions);
  const std::vector<int32_t> tokens = {1, 2};
  EXPECT_NO_THROW(decoder.forward(tokens, 0, 1));
  broken = true;
  EXPECT_THROW(decoder.forward(tokens, 2, 1), Error);
  broken = false;
  EXPECT_EQ(decoder.life(), LifeState::cold);
  EXPECT_THROW(decoder.forward(tokens, 2, 1), Error);
}

// Warming and comparing leave nothing that a later step can see, also in contexts shorter than the sample.
TEST(Qualify, ArmingIsInvisible) {
  const test::TestModel m("synth:tiny-gqa:q4_0");
  WorkerPool pool(test::pool_options(2));
  for (uint32_t context : {1u, 5u, 16u, 20u, 512u}) {
    const auto tokens = test::test_tokens(m.desc, std::min(context, 40u));
    Decoder skipped(m.desc, *m.pack, best(), pool, {.context = context}, {.qualify = Qualify::skip, .cache_dir = "", .progress = nullptr});
    Decoder compared(m.desc, *m.pack, best(), pool, {.context = context});
    const float* want = skipped.forward(tokens, 0, 1);
    const float* got = compared.forward(tokens, 0, 1);
    EXPECT_EQ(std::memcmp(got, want, m.desc.vocab * sizeof(float)), 0) << context;
    EXPECT_EQ(skipped.kv_hash(static_cast<uint32_t>(tokens.size())), compared.kv_hash(static_cast<uint32_t>(tokens.size())));
  }
}

class VerdictTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "stet-verdict-" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Qualification::How arm(const test::TestModel& m, const DecoderOptions& options = kOptions, Isa isa = available_isas().back()) const {
    WorkerPool pool(test::pool_options(1));
    ArmOptions arm_options;
    arm_options.cache_dir = folder_;
    return Decoder(m.desc, *m.pack, kernels(isa), pool, options, arm_options).qualification().how;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/verdicts")) out.push_back(entry.path());
    return out;
  }
  std::string folder_;
};

using How = Qualification::How;

TEST_F(VerdictTest, IsKeptUnderItsKeyAndTakenOnceMore) {
  const test::TestModel m("synth:tiny:q4_0"), other("synth:tiny:q4_0:7");
  EXPECT_EQ(arm(m), How::now);
  EXPECT_EQ(arm(m), How::cached);
  ASSERT_EQ(files().size(), 1u);
  struct stat status {};
  ASSERT_EQ(stat(files()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  // Another model, KV format, prompt width or instruction set is another question.
  EXPECT_EQ(arm(other), How::now);
  EXPECT_EQ(arm(m, {.context = 512, .kv = KvFormat::f32}), How::now);
  EXPECT_EQ(arm(m, {.context = 512, .prompt_rows = 64}), How::now);
  EXPECT_EQ(arm(m, kOptions, Isa::scalar), How::now);
  EXPECT_EQ(arm(m), How::cached);
}

TEST_F(VerdictTest, ADamagedOneIsNone) {
  const test::TestModel m("synth:tiny:q4_0");
  EXPECT_EQ(arm(m), How::now);
  const std::string path = files().at(0);
  for (const char* damage : {"", "stet verdict 1\ncompared 5\n", "\ncompared 99999999999999999999999\n"}) {
    std::filesystem::resize_file(path, 0);
    FILE* f = std::fopen(path.c_str(), "w");
    std::fputs(damage, f);
    std::fclose(f);
    EXPECT_EQ(arm(m), How::now) << damage;
    EXPECT_EQ(arm(m), How::cached);
  }
}

TEST_F(VerdictTest, ClearingForgetsThemAndNothingElse) {
  EXPECT_EQ(VerdictStore::clear(folder_).files, 0u);
  EXPECT_FALSE(std::filesystem::exists(folder_));
  const test::TestModel m("synth:tiny:q4_0");
  EXPECT_EQ(arm(m), How::now);
  std::fclose(std::fopen((folder_ + "/verdicts/notes").c_str(), "w"));
  EXPECT_EQ(VerdictStore::clear(folder_).files, 1u);
  EXPECT_EQ(files(), std::vector<std::string>{folder_ + "/verdicts/notes"});
  EXPECT_EQ(arm(m), How::now);
}

TEST_F(VerdictTest, OneThatOthersCanWriteIsRefused) {
  const test::TestModel m("synth:tiny:q4_0");
  EXPECT_EQ(arm(m), How::now);
  ASSERT_EQ(chmod(files()[0].c_str(), 0666), 0);
  EXPECT_THROW(arm(m), Error);
}

}  // namespace
}  // namespace stet
