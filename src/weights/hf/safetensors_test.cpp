#include "weights/hf/safetensors.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "weights/hf/hf_folder_test.h"

namespace stet {
namespace {

using test::safetensors_bytes;
using test::safetensors_of;
using ::testing::HasSubstr;

SafetensorsHeader parse(const std::string& bytes) {
  return parse_safetensors(ByteInput::of(std::as_bytes(std::span(bytes)), "m"));
}

void expect_refused(const std::string& bytes, Code code, const std::string& part) {
  try {
    parse(bytes);
    ADD_FAILURE() << "accepted: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
    EXPECT_TRUE(std::string_view(e.what()).starts_with("m: ")) << e.what();
  }
}

// A header of one tensor; members as text.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data_bytes) {
  return safetensors_bytes(
      R"({"t": {"dtype": )" + dtype + R"(, "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}",
      std::string(data_bytes, 'x'));
}

TEST(Safetensors, ReadsWhatTheFormatHas) {
  const std::string bytes = safetensors_of({{"b", "BF16", {2, 3}, std::string(12, 'b')},
                                            {"none", "F32", {0, 5}, ""},
                                            {"a", "F8_E8M0", {3}, "abc"},
                                            {"scalar", "I64", {}, "12345678"},
                                            {"nibbles", "F4", {4}, "ab"}});
  const SafetensorsHeader h = parse(bytes);
  EXPECT_EQ(h.metadata.at("format"), "pt");
  ASSERT_EQ(h.tensors.size(), 5u);
  EXPECT_EQ(h.tensors[0].name, "b");
  EXPECT_EQ(h.tensors[0].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(h.tensors[2].name, "a");
  EXPECT_EQ(bytes.substr(h.tensors[2].offset, h.tensors[2].bytes), "abc");
  EXPECT_EQ(bytes.substr(h.tensors[4].offset, h.tensors[4].bytes), "ab");
  EXPECT_TRUE(parse(safetensors_bytes("{}   ", "")).tensors.empty()) << "padded with spaces";
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = safetensors_of({{"a", "F32", {4}, std::string(16, 'a')}, {"b", "U8", {3}, "abc"}});
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(parse(bytes.substr(0, n)), Error) << n;
  expect_refused(bytes + "x", Code::kInput, "1 bytes behind the last tensor");
}

TEST(Safetensors, RefusesByName) {
  expect_refused("", Code::kInput, "no safetensors file");
  expect_refused(std::string(8, '\xff') + "{}", Code::kInput, "no safetensors file, or damaged");
  expect_refused(safetensors_bytes("[]", ""), Code::kInput, "no JSON object");
  expect_refused(safetensors_bytes("{", ""), Code::kInput, "not JSON");
  expect_refused(safetensors_bytes(R"({"__metadata__": {"a": 1}})", ""), Code::kInput, "__metadata__");
  expect_refused(safetensors_bytes(R"({"t": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "t": 1})", "x"),
                 Code::kInput, "two members");
  expect_refused(safetensors_bytes(R"({"t": 5})", ""), Code::kInput, "tensor 't'");
  expect_refused(one("5", "[1]", "[0, 1]", 1), Code::kInput, "not dtype, shape and data_offsets");
  expect_refused(one(R"("F128")", "[1]", "[0, 16]", 16), Code::kUnsupported, "dtype 'F128'");
  expect_refused(one(R"("U8")", "[-1]", "[0, 1]", 1), Code::kInput, "not a count");
  expect_refused(one(R"("U8")", "[1.5]", "[0, 1]", 1), Code::kInput, "not a count");
  expect_refused(one(R"("U8")", "5", "[0, 1]", 1), Code::kInput, "no list");
  expect_refused(one(R"("U8")", "[1,1,1,1,1,1,1,1,1]", "[0, 1]", 1), Code::kInput, "up to 8 sizes");
  expect_refused(one(R"("F32")", "[4294967296, 4294967296]", "[0, 1]", 1), Code::kInput, "overflows");
  expect_refused(one(R"("F4")", "[3]", "[0, 2]", 2), Code::kInput, "whole bytes");
  expect_refused(one(R"("U8")", "[2]", "[0, 1]", 1), Code::kInput, "takes 2 bytes");
  expect_refused(one(R"("U8")", "[1]", "[1, 0]", 1), Code::kInput, "data_offsets are 1 to 0");
  expect_refused(one(R"("U8")", "[1]", "[0]", 1), Code::kInput, "not two");
  expect_refused(one(R"("U8")", "[1]", "[1, 2]", 1), Code::kInput, "truncated");
  expect_refused(one(R"("U8")", "[1]", "[1, 2]", 2), Code::kInput, "begins at byte");
  expect_refused(
      safetensors_bytes(
          R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
          "xyz"),
      Code::kInput, "the one before it ends at");
}

}  // namespace
}  // namespace stet
