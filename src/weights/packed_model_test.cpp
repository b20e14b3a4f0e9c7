#include "weights/packed_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/fp.h"
#include "weights/fake_source_test.h"
#include "weights/pack_plan.h"

namespace stet {
namespace {

std::vector<float> decoded(const FakeSource& source, const TensorInfo& info) {
  std::vector<float> x(info.elements());
  traits(info.format).dequantize(source.bytes(info.name).data(), x.data(), x.size());
  return x;
}

// Every element is bit for bit what the format's own decoder makes of the source, and rows past the end are zero.
void expect_matrix_is(const PackedMatrix& m, const std::vector<float>& want, const std::string& name) {
  ASSERT_EQ(uint64_t{m.rows} * m.cols, want.size()) << name;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(m.data) % 64, 0u);
  const auto element = pack_traits(m.format).element;
  for (uint32_t r = 0; r < m.rows; ++r)
    for (uint32_t k = 0; k < m.cols; ++k)
      ASSERT_EQ(bits_of_float(element(m.tile(r / 16), m.cols, r % 16, k)), bits_of_float(want[size_t{r} * m.cols + k]))
          << name << " " << r << "," << k;
}

void expect_pack_is(const PackedModel& pack, const FakeSource& source, bool dequantize) {
  for (const TensorInfo& info : source.tensors()) {
    const std::vector<float> want = decoded(source, info);
    const PackedMatrix* m = pack.matrix(info.name);
    uint64_t length = 0;
    const float* v = pack.vector(info.name, &length);
    if (info.shape.size() == 1) {
      ASSERT_EQ(m, nullptr) << info.name;
      ASSERT_NE(v, nullptr) << info.name;
      ASSERT_EQ(length, want.size());
      ASSERT_EQ(std::memcmp(v, want.data(), want.size() * 4), 0) << info.name;
    } else {
      ASSERT_EQ(v, nullptr) << info.name;
      ASSERT_NE(m, nullptr) << info.name;
      EXPECT_EQ(m->format, dequantize ? Format::f32 : info.format);
      EXPECT_EQ(m->cols, info.shape[0]);
      EXPECT_EQ(m->rows, info.shape[1]);
      expect_matrix_is(*m, want, info.name);
    }
  }
}

PackOptions in_memory(unsigned threads = 2) {
  PackOptions options;
  options.threads = threads;
  return options;
}

TEST(PackedModel, EveryElementEqualsTheSource) {
  FakeSource source;
  source.add_every_format();
  for (const bool dequantize : {false, true})
    for (const unsigned threads : {1u, 3u}) {
      PackOptions options = in_memory(threads);
      options.dequantize = dequantize;
      const auto pack = PackedModel::load(source, options);
      expect_pack_is(*pack, source, dequantize);
      EXPECT_EQ(pack->matrix("absent"), nullptr);
      EXPECT_EQ(pack->vector("absent", nullptr), nullptr);
    }
}

// The kind of input is the caller's choice where a format leaves one.
TEST(PackedModel, InputsAreChosenForFormatsThatLeaveAChoice) {
  FakeSource source;
  source.add_every_format();
  for (const ActKind kind : {ActKind::i8, ActKind::e4m3}) {
    PackOptions options = in_memory();
    options.fp_input = kind;
    const auto pack = PackedModel::load(source, options);
    EXPECT_EQ(pack->matrix("F8_E4M3.weight")->input, kind);
    EXPECT_EQ(pack->matrix("MXFP4.weight")->input, kind);
    EXPECT_EQ(pack->matrix("Q4_0.weight")->input, ActKind::i8);
    EXPECT_EQ(pack->matrix("BF16.weight")->input, ActKind::f32);
    options.dequantize = true;
    EXPECT_EQ(PackedModel::load(source, options)->matrix("F8_E4M3.weight")->input, ActKind::f32);
  }
  PackOptions options = in_memory();
  options.fp_input = ActKind::f32;
  EXPECT_THROW(PackedModel::load(source, options), Error);
}

// Sizes that end before, at and after a piece: tiles of one piece differ from the whole only in where they lie.
TEST(PackedModel, PiecesFitTogether) {
  FakeSource source;
  source.add("large", Format::q8_0, {1024, 2 * 960 + 7})
      .add("long", Format::q4_0, {32 * 70000})
      .add("wide", Format::f32, {40000, 3});
  expect_pack_is(*PackedModel::load(source, in_memory()), source, false);
  EXPECT_LE(source.largest_read(), uint64_t{1} << 20);
  EXPECT_GE(source.releases(), 3u);
}

TEST(PackedModel, SlackBehindTheLastTensorIsReadable) {
  FakeSource source;
  source.add("a", Format::q8_0, {32, 16});
  const auto pack = PackedModel::load(source, in_memory());
  const PackedMatrix* m = pack->matrix("a");
  volatile uint8_t sum = 0;
  for (uint64_t i = 0; i < m->bytes() + kPackSlackBytes; ++i) sum = static_cast<uint8_t>(sum + m->data[i]);
}

TEST(PackedModel, KeyDependsOnContentOnly) {
  FakeSource source("here"), same("there");
  source.add_every_format();
  same.add_every_format();
  const std::string key = PackedModel::load(source, in_memory())->key();
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(PackedModel::load(same, in_memory(3))->key(), key);
  PackOptions dequantize = in_memory();
  dequantize.dequantize = true;
  EXPECT_NE(PackedModel::load(same, dequantize)->key(), key);
  for (TensorInfo& info : same.infos()) {
    same.bytes(info.name).back() ^= std::byte{1};
    EXPECT_NE(PackedModel::load(same, in_memory())->key(), key) << info.name;
    same.bytes(info.name).back() ^= std::byte{1};
  }
  same.infos()[0].name += "x";
  EXPECT_NE(PackedModel::load(same, in_memory())->key(), key);
}

TEST(PackedModel, RefusesByName) {
  const auto message = [](const FakeSource& source) {
    try {
      PackedModel::load(source, in_memory());
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was refused");
  };
  FakeSource three;
  three.add("blk.0.cube", Format::f32, {4, 4, 4});
  EXPECT_THAT(message(three), testing::HasSubstr("'blk.0.cube' has 3 dimensions"));
  FakeSource ragged;
  ragged.add("ragged", Format::q4_0, {32, 2});
  ragged.infos()[0].shape[0] = 31;
  EXPECT_THAT(message(ragged), testing::HasSubstr("'ragged' of 2 rows by 31 columns as Q4_0"));
  FakeSource huge;
  huge.add("huge", Format::f32, {32, 2});
  huge.infos()[0].shape = {UINT32_MAX, UINT32_MAX};
  EXPECT_THAT(message(huge), testing::HasSubstr("'huge'"));
  huge.infos()[0].shape = {uint64_t{1} << 33, 1};
  EXPECT_THAT(message(huge), testing::HasSubstr("between 1 and 2^32 - 1"));
}

TEST(PackedModel, ReadErrorsAndCancelsComeThrough) {
  FakeSource source;
  source.add("a", Format::q8_0, {1024, 4096});
  PackOptions options = in_memory();
  options.progress = [](std::string_view, uint64_t, uint64_t) { fail(Code::kCancelled, "stopped"); };
  EXPECT_THROW(PackedModel::load(source, options), Error);
  source.bytes("a").resize(1000);
  EXPECT_THROW(PackedModel::load(source, in_memory()), std::logic_error);
}

TEST(PackedModel, AModelWithoutTensorsIsEmpty) {
  const FakeSource source;
  EXPECT_EQ(PackedModel::load(source, in_memory())->bytes(), 0u);
}

}  // namespace
}  // namespace stet
