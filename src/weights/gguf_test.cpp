#include "weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "weights/gguf_test_bytes.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename F>
void expect_error(F&& f, Code code, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(text));
  }
}

void expect_refused(const GgufBytes& bytes, const std::string& text, Code code = Code::kInput) {
  expect_error([&] { GgufFile::parse(bytes.span(), "m.gguf"); }, code, text);
  expect_error([&] { GgufFile::parse(bytes.span(), "m.gguf"); }, code, "m.gguf: ");
}

template <typename T>
T value(const GgufFile& file, std::string_view key) {
  return std::get<T>(file.metadata().find(key)->second.value);
}

TEST(Gguf, ReadsEveryKindOfValue) {
  GgufBytes b;
  b.header(0, 14);
  b.string("u8").u32(0).number<uint8_t>(200);
  b.string("i8").u32(1).number<int8_t>(-100);
  b.string("u16").u32(2).number<uint16_t>(60000);
  b.string("i16").u32(3).number<int16_t>(-30000);
  b.string("u32").u32(4).u32(4000000000u);
  b.string("i32").u32(5).number<int32_t>(-2000000000);
  b.string("f32").u32(6).number(1.5f);
  b.string("bool").u32(7).number<uint8_t>(1);
  b.string("string").u32(8).string(std::string_view("a\0b", 3));
  b.string("u64").u32(10).u64(1ull << 63);
  b.string("i64").u32(11).number<int64_t>(-(1ll << 62));
  b.string("f64").u32(12).number(0.1);
  b.string("strings").u32(9).u32(8).u64(2).string("x").string("");
  b.string("nested").u32(9).u32(9).u64(2).u32(5).u64(1).number<int32_t>(-7).u32(7).u64(0);
  const auto file = GgufFile::parse(b.span(), "m.gguf");
  EXPECT_EQ(value<uint64_t>(*file, "u8"), 200u);
  EXPECT_EQ(value<int64_t>(*file, "i8"), -100);
  EXPECT_EQ(value<uint64_t>(*file, "u16"), 60000u);
  EXPECT_EQ(value<int64_t>(*file, "i16"), -30000);
  EXPECT_EQ(value<uint64_t>(*file, "u32"), 4000000000u);
  EXPECT_EQ(value<int64_t>(*file, "i32"), -2000000000);
  EXPECT_EQ(value<double>(*file, "f32"), 1.5);
  EXPECT_EQ(value<bool>(*file, "bool"), true);
  EXPECT_EQ(value<std::string>(*file, "string"), std::string("a\0b", 3));
  EXPECT_EQ(value<uint64_t>(*file, "u64"), 1ull << 63);
  EXPECT_EQ(value<int64_t>(*file, "i64"), -(1ll << 62));
  EXPECT_EQ(value<double>(*file, "f64"), 0.1);
  EXPECT_THAT(*value<std::shared_ptr<const std::vector<std::string>>>(*file, "strings"), ElementsAre("x", ""));
  const MetaArray& outer = *value<std::shared_ptr<const MetaArray>>(*file, "nested");
  ASSERT_EQ(outer.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(std::get<std::shared_ptr<const MetaArray>>(outer[0].value)->at(0).value), -7);
  EXPECT_TRUE(file->tensors().empty());
}

GgufBytes two_tensors(uint32_t version = 3) {
  GgufBytes b;
  b.header(2, 2, version).key_u32("general.alignment", 64).key_string("general.architecture", "llama");
  b.tensor("a", {32, 2}, 2, 64).tensor("b", {3}, 0, 0);
  return b.data(100, 64);
}

TEST(Gguf, ReadsAnyRangeOfATensor) {
  for (const uint32_t version : {2u, 3u}) {
    const GgufBytes b = two_tensors(version);
    const auto file = GgufFile::parse(b.span(), "m.gguf");
    EXPECT_EQ(file->files()[0].gguf_version, version);
    ASSERT_EQ(file->tensors().size(), 2u);
    const TensorInfo& a = file->tensors()[0];
    EXPECT_EQ(a.format, Format::q4_0);
    EXPECT_THAT(a.shape, ElementsAre(32, 2));
    EXPECT_EQ(a.bytes, 36u);
    EXPECT_EQ(file->find("b")->bytes, 12u);
    std::vector<std::byte> out(5);
    file->read(a, 31, out);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(out[i], static_cast<std::byte>(((64 + 31 + i) * 11 + 1) & 0xff));
    file->read(a, 36, std::span(out).first(0));
    expect_error([&] { file->read(a, 32, out); }, Code::kInternal, "offset");
    EXPECT_FALSE(file->synthetic());
  }
}

TEST(Gguf, NamesWhatIsNotGguf) {
  expect_refused(GgufBytes(), "is empty");
  expect_refused(GgufBytes().raw("GG"), "only 2 bytes");
  expect_refused(GgufBytes().raw("tjgg").u32(3).u64(0), "GGJT");
  expect_refused(GgufBytes().raw("lmgg").u32(3).u64(0), "GGML");
  expect_refused(GgufBytes().raw("PK\x03\x04zip"), "zip archive");
  expect_refused(GgufBytes().raw("version https://git-lfs"), "Git LFS pointer");
  expect_refused(GgufBytes().raw("\x1b[2J and more"), "starts with '\\x1b[2J'");
  expect_refused(GgufBytes().header(0, 0, 1), "GGUF version 1", Code::kUnsupported);
  expect_refused(GgufBytes().header(0, 0, 4), "GGUF version 4", Code::kUnsupported);
  expect_refused(GgufBytes().header(0, 0, 0x03000000), "big-endian GGUF file (version 3)", Code::kUnsupported);
  expect_refused(GgufBytes().raw("FUGG").u32(3), "big-endian", Code::kUnsupported);
}

TEST(Gguf, RefusesAbsurdCounts) {
  expect_refused(GgufBytes().header(1ull << 60, 0), "declares 1152921504606846976 tensors");
  expect_refused(GgufBytes().header(0, 1ull << 63), "metadata values");
  expect_refused(GgufBytes().header(0, 1).string("k").u32(9).u32(0).u64(~0ull), "array values");
  expect_refused(GgufBytes().header(0, 1).string("k").u32(8).u64(~0ull), "needs 18446744073709551615 bytes");
  expect_refused(GgufBytes().header(0, 1).u64(1 << 20).raw(std::string(1 << 20, 'k')).u32(0), "at most 65535");
}

TEST(Gguf, RefusesDamagedMetadata) {
  expect_refused(GgufBytes().header(0, 1).string("").u32(4).u32(0).u32(0), "key 1 of 1 is empty");
  expect_refused(GgufBytes().header(0, 1).string("k").u32(13).u64(0), "unknown value type 13");
  expect_refused(GgufBytes().header(0, 1).string("k\x1b").u32(7).number<uint8_t>(2).u64(0),
                 "'k\\x1b' holds the boolean 2");
  expect_refused(GgufBytes().header(0, 2).key_u32("twice", 1).key_u32("twice", 2), "'twice' appears twice");
  GgufBytes deep;
  deep.header(0, 1).string("k").u32(9);
  for (int i = 0; i < 4; ++i) deep.u32(9).u64(1);
  expect_refused(deep.u32(0).u64(0).u64(0), "more than 4 deep");
}

TEST(Gguf, RefusesAnAbsurdAlignment) {
  for (const uint32_t alignment : {0u, 4u, 24u, 1u << 21, 0xffffffffu})
    expect_refused(GgufBytes().header(0, 1).key_u32("general.alignment", alignment), "general.alignment is");
  expect_refused(GgufBytes().header(0, 1).key_string("general.alignment", "32"), "general.alignment is not");
}

GgufBytes one_tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type, uint64_t offset,
                     size_t bytes = 256) {
  return GgufBytes().header(1, 0).tensor(name, shape, type, offset).data(bytes);
}

TEST(Gguf, RefusesDamagedTensors) {
  expect_refused(one_tensor(std::string(65, 'n'), {4}, 0, 0), "at most 64");
  expect_refused(one_tensor("", {4}, 0, 0), "has no name");
  expect_refused(one_tensor("t", {}, 0, 0), "has 0 dimensions");
  expect_refused(one_tensor("t", {1, 1, 1, 1, 1}, 0, 0), "has 5 dimensions");
  expect_refused(one_tensor("t", {4, 0}, 0, 0), "dimension 1 of tensor 't' is 0");
  expect_refused(one_tensor("t", {1ull << 32, 1ull << 32}, 0, 0), "more than 2^48 elements");
  expect_refused(one_tensor("t", {1ull << 47}, 0, 0), "needs 562949953421312 bytes");
  expect_refused(one_tensor("t", {48}, 2, 0), "rows of 48 elements, and Q4_0 has blocks of 32");
  expect_refused(one_tensor("t", {32, 3}, 14, 0), "Q6_K has blocks of 256");
  expect_refused(one_tensor("t", {4}, 0, 8), "no multiple of 32");
  expect_refused(one_tensor("t", {4}, 0, 256), "needs 16 bytes at byte");
  expect_refused(one_tensor("t", {4}, 0, ~0ull - 31), "truncated or damaged");
  expect_refused(GgufBytes().header(2, 0).tensor("t", {4}, 0, 0).tensor("t", {4}, 0, 32).data(64), "'t' appears twice");
  expect_refused(GgufBytes().header(2, 0).tensor("t", {16}, 0, 32).tensor("u", {9}, 0, 0).data(256),
                 "'u' and 't' overlap");
  expect_refused(GgufBytes().header(2, 0).tensor("t", {4}, 0, 0).tensor("u", {4}, 99, 0).data(256), "overlap");
}

TEST(Gguf, ListsTensorsOfUnsupportedFormatsButDoesNotLoadThem) {
  const GgufBytes b = GgufBytes()
                          .header(3, 0)
                          .tensor("blk.0.attn_q.weight", {256, 2}, 12, 0)
                          .tensor("odd", {7}, 99, 320)
                          .tensor("f", {4}, 0, 352)
                          .data(400);
  const auto file = GgufFile::parse(b.span(), "m.gguf");
  ASSERT_EQ(file->declared().size(), 3u);
  EXPECT_EQ(file->declared()[0].bytes, 288u);
  EXPECT_EQ(file->declared()[1].bytes, 0u);
  expect_error(
      [&] { file->tensors(); }, Code::kUnsupported,
      "m.gguf: tensor 'blk.0.attn_q.weight' is Q4_K (and 1 more of formats like it); stet runs F32, F16, BF16");
  expect_error([&] { file->find("f"); }, Code::kUnsupported, "Q4_K");
}

// Every prefix of a sound file is refused.
TEST(Gguf, RefusesEveryTruncation) {
  const GgufBytes b = two_tensors();  // tensor 'a' ends with the file
  for (size_t n = 0; n < b.text().size(); ++n) {
    try {
      GgufFile::parse(b.span().first(n), "m.gguf");
      ADD_FAILURE() << "accepted after " << n << " bytes";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInput) << n << " " << e.what();
    }
  }
}

class GgufFiles : public testing::Test {
 protected:
  GgufFiles() : folder_(fs::path(testing::TempDir()) / ("stet_gguf_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~GgufFiles() override { fs::remove_all(folder_); }

  std::string save(const std::string& name, const GgufBytes& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes.text();
    return folder_ / name;
  }

  // Part i (from 1) of n, with one tensor.
  static GgufBytes part(int i, int n, int tensors, int claimed_number = -1) {
    GgufBytes b;
    b.header(1, i == 1 ? 4 : 3);
    if (i == 1) b.key_string("general.architecture", "llama");
    b.string("split.no").u32(2).number(static_cast<uint16_t>(claimed_number >= 0 ? claimed_number : i - 1));
    b.string("split.count").u32(2).number(static_cast<uint16_t>(n));
    b.string("split.tensors.count").u32(5).number<int32_t>(tensors);
    return b.tensor("t" + std::to_string(i), {4}, 0, 0).data(16);
  }

  fs::path folder_;
};

TEST_F(GgufFiles, OpensAFileAndSaysWhyItCannot) {
  const auto file = GgufFile::open(save("m.gguf", two_tensors()));
  std::vector<std::byte> out(36);
  file->read(file->tensors()[0], 0, out);
  EXPECT_EQ(out[0], static_cast<std::byte>((64 * 11 + 1) & 0xff));
  file->release(file->tensors()[0]);
  file->read(file->tensors()[0], 0, out);
  EXPECT_EQ(out[0], static_cast<std::byte>((64 * 11 + 1) & 0xff));
  expect_error([&] { GgufFile::open(folder_); }, Code::kInput, "is a directory");
  expect_error([&] { GgufFile::open(folder_ / "none"); }, Code::kInput, "no such file");
  expect_error([&] { GgufFile::open(save("empty.gguf", GgufBytes())); }, Code::kInput, "is empty");
}

TEST_F(GgufFiles, AShrunkenFileIsAnError) {
  const std::string path = save("m.gguf", GgufBytes().header(1, 0).tensor("t", {8192}, 0, 0).data(32768));
  const auto file = GgufFile::open(path);
  fs::resize_file(path, 4096);
  std::vector<std::byte> out(32768);
  expect_error([&] { file->read(file->tensors()[0], 0, out); }, Code::kInput, "has 4096 now");
}

TEST_F(GgufFiles, IdentityChangesWithTheFile) {
  const std::string path = save("m.gguf", two_tensors());
  const std::string first = GgufFile::open(path)->identity();
  EXPECT_EQ(GgufFile::open(path)->identity(), first);
  EXPECT_THAT(first, HasSubstr(fs::canonical(path).string()));
  fs::create_symlink(path, folder_ / "link.gguf");
  EXPECT_EQ(GgufFile::open(folder_ / "link.gguf")->identity(), first);
  fs::remove(path);
  save("m.gguf", two_tensors());
  EXPECT_NE(GgufFile::open(path)->identity(), first);
}

TEST_F(GgufFiles, FindsAllPartsFromAnyOfThem) {
  for (int i = 1; i <= 3; ++i) save(fmt::format("m-0000{}-of-00003.gguf", i), part(i, 3, 3));
  for (int i = 1; i <= 3; ++i) {
    const auto file = GgufFile::open(folder_ / fmt::format("m-0000{}-of-00003.gguf", i));
    ASSERT_EQ(file->files().size(), 3u);
    for (size_t p = 0; p < 3; ++p)
      EXPECT_EQ(file->files()[p].name, (folder_ / fmt::format("m-0000{}-of-00003.gguf", p + 1)).string());
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_EQ(std::get<std::string>(file->metadata().at("general.architecture").value), "llama");
    std::vector<std::byte> out(16);
    file->read(*file->find("t3"), 0, out);
    EXPECT_EQ(out[1], std::byte{12});
    const std::string identity = file->identity();
    EXPECT_EQ(std::count(identity.begin(), identity.end(), '\n'), 2);
  }
}

TEST_F(GgufFiles, RefusesPartsThatDoNotBelongTogether) {
  const std::string first = save("m-00001-of-00002.gguf", part(1, 2, 2));
  expect_error([&] { GgufFile::open(first); }, Code::kInput, "m-00002-of-00002.gguf: no such file");
  expect_error([&] { GgufFile::open(first); }, Code::kInput, "part 2 of 2 of the split model");
  save("m-00002-of-00002.gguf", part(1, 2, 2));
  expect_error([&] { GgufFile::open(first); }, Code::kInput, "should be part 2 of 2 and says that it is part 1 of 2");
  save("m-00002-of-00002.gguf", part(2, 3, 2));
  expect_error([&] { GgufFile::open(first); }, Code::kInput, "part 2 of 3");
  save("m-00002-of-00002.gguf", part(2, 2, 5));
  expect_error([&] { GgufFile::open(first); }, Code::kInput, "'split.tensors.count' differs");
  save("m-00002-of-00002.gguf", part(2, 2, 2));
  EXPECT_EQ(GgufFile::open(first)->tensors().size(), 2u);
  save("m-00001-of-00002.gguf", part(1, 2, 3));
  save("m-00002-of-00002.gguf", part(2, 2, 3));
  expect_error([&] { GgufFile::open(first); }, Code::kInput, "hold 2 tensors and the first one declares 3");
  expect_error([&] { GgufFile::open(save("renamed.gguf", part(1, 2, 2))); }, Code::kInput, "not named like one");
  expect_error([&] { GgufFile::parse(part(1, 2, 2).span(), "m.gguf"); }, Code::kInput, "one part of a split model");
}

}  // namespace
}  // namespace stet
