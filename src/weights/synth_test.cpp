#include "weights/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/philox.h"
#include "weights/gguf.h"
#include "weights/gguf_writer.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::byte> whole(const TensorSource& source, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  source.read(tensor, 0, bytes);
  return bytes;
}

void expect_usage_error(std::string_view name, const std::string& text) {
  try {
    SynthSource::create(name);
    ADD_FAILURE() << "no error for " << name;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(text));
  }
}

TEST(PhiloxFill, EqualsOneCounterAtATime) {
  const uint64_t key = 0x0123456789abcdefu;
  for (const uint64_t first :
       {uint64_t{0}, uint64_t{7}, uint64_t{0xfffffffau}, uint64_t{0x123456789abcu}, ~uint64_t{0} - 3}) {
    std::vector<uint32_t> words(4 * 37);
    philox_fill(key, 5, first, words);
    for (size_t i = 0; i < 37; ++i) {
      const uint64_t n = first + i;
      const Philox one =
          philox4x32({{static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 5, 0}}, 0x89abcdefu, 0x01234567u);
      for (size_t j = 0; j < 4; ++j) ASSERT_EQ(words[4 * i + j], one.word[j]) << first << " " << i;
    }
  }
}

TEST(Synth, NamesWhatThereIs) {
  expect_usage_error("synth:llama-2b:q4_0",
                     "no synthetic geometry 'llama-2b'; there are llama-1b, llama-8b, smollm-135m, tiny");
  expect_usage_error("synth:tiny:q4_7", "no format 'q4_7'; there are F32, F16, BF16, Q4_0");
  for (const char* name : {"synth:", "synth", "synth:tiny", "synth:tiny:q4_0:1:2", "tiny:q4_0:3"})
    expect_usage_error(name, "synth:GEOMETRY:FORMAT");
  for (const char* name :
       {"synth:tiny:q4_0:", "synth:tiny:q4_0:x", "synth:tiny:q4_0:-1", "synth:tiny:q4_0:99999999999999999999"})
    expect_usage_error(name, "the seed");
  EXPECT_TRUE(SynthSource::is_name("synth:x"));
  EXPECT_FALSE(SynthSource::is_name("synth.gguf"));
}

TEST(Synth, EveryRangeHoldsTheSameBytes) {
  for (const FormatTraits& format : all_formats()) {
    const auto source = SynthSource::create(fmt::format("synth:tiny-256:{}", format.name));
    for (const char* name : {"blk.0.ffn_down.weight", "output_norm.weight", "token_embd.weight"}) {
      const TensorInfo& tensor = *source->find(name);
      const std::vector<std::byte> all = whole(*source, tensor);
      for (uint64_t step : {uint64_t{1}, uint64_t{13}, uint64_t{1000}, uint64_t{4099}}) {
        const uint64_t limit = std::min<uint64_t>(tensor.bytes, step * 200);
        for (uint64_t at = 0; at < limit; at += step) {
          std::vector<std::byte> piece(std::min(step, tensor.bytes - at));
          source->read(tensor, at, piece);
          ASSERT_TRUE(std::equal(piece.begin(), piece.end(), all.begin() + static_cast<long>(at)))
              << format.name << " " << name << " " << at << " " << step;
        }
      }
    }
  }
}

TEST(Synth, ThreadsReadTheSameBytes) {
  const auto source = SynthSource::create("synth:tiny-256:q8_0");
  const TensorInfo& tensor = *source->find("token_embd.weight");
  const std::vector<std::byte> all = whole(*source, tensor);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(whole(*source, tensor), all); });
  for (std::thread& t : threads) t.join();
}

// What a seed generates is part of every recorded figure and golden: it changes only with the generator's version.
TEST(Synth, BytesOfSeedOneStayWhatTheyAre) {
  std::string digests;
  for (const FormatTraits& format : all_formats()) {
    const auto source = SynthSource::create(fmt::format("synth:tiny-256:{}", format.name));
    const std::vector<std::byte> bytes = whole(*source, *source->find("blk.1.ffn_up.weight"));
    digests += fmt::format("{} {:016x}\n", format.name, xxh3(bytes.data(), bytes.size()));
  }
  EXPECT_EQ(digests,
            "F32 642326f035dd79d1\n"
            "F16 27dd0a80b3c02c8a\n"
            "BF16 7bc23d0f96656397\n"
            "Q4_0 1a1fd377d878e837\n"
            "Q4_1 783a652c17ddce86\n"
            "Q8_0 90cf65d14af455ff\n"
            "Q6_K f8f4b8b5380df6ff\n"
            "F8_E4M3 cf8af966d673adb2\n"
            "MXFP4 b66d1cbcbcceecb0\n");
}

TEST(Synth, WhatGgufLacksIsNotWritten) {
  const auto source = SynthSource::create("synth:tiny-256:f8_e4m3");
  try {
    gguf_header(source->metadata(), source->tensors());
    ADD_FAILURE() << "a GGUF header with F8_E4M3";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage);
    EXPECT_NE(std::string(e.what()).find("as F8_E4M3: GGUF has no such type"), std::string::npos) << e.what();
  }
}

TEST(Synth, SeedsAndTensorsDiffer) {
  const auto one = SynthSource::create("synth:tiny:q4_0"), same = SynthSource::create("synth:tiny:Q4_0:1"),
             two = SynthSource::create("synth:tiny:q4_0:2");
  const TensorInfo& up = *one->find("blk.0.ffn_up.weight");
  EXPECT_EQ(whole(*one, up), whole(*same, up));
  EXPECT_NE(whole(*one, up), whole(*two, up));
  EXPECT_NE(whole(*one, up), whole(*one, *one->find("blk.0.ffn_gate.weight")));
  EXPECT_EQ(one->identity(), same->identity());
  EXPECT_NE(one->identity(), two->identity());
  EXPECT_TRUE(one->synthetic());
}

// Mean 0 and standard deviation 1 / sqrt(K): with n elements of bounded spread the mean of n is within 6 / sqrt(n)
// deviations, and so, relative, is the deviation; Q6_K's scale may add its f16 rounding (2 % where it is subnormal).
TEST(Synth, WeightsHaveTheSizeTheyShould) {
  for (const FormatTraits& format : all_formats()) {
    const auto source = SynthSource::create(fmt::format("synth:tiny-256:{}", format.name));
    const TensorInfo& tensor = *source->find("blk.0.ffn_down.weight");
    ASSERT_EQ(tensor.format, format.format);
    const std::vector<std::byte> bytes = whole(*source, tensor);
    std::vector<float> x(tensor.elements());
    format.dequantize(bytes.data(), x.data(), x.size());
    double sum = 0, squares = 0;
    for (const float v : x) {
      ASSERT_TRUE(std::isfinite(v));
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    const double n = static_cast<double>(x.size()), deviation = 1 / std::sqrt(512.0);
    EXPECT_LE(std::abs(sum / n), 6 * deviation / std::sqrt(n)) << format.name;
    EXPECT_NEAR(std::sqrt(squares / n) / deviation, 1, 6 / std::sqrt(n) + 0.02) << format.name;
  }
}

TEST(Synth, FormatsAreChosenAsStated) {
  const auto gqa = SynthSource::create("synth:tiny-gqa:q6_k");  // 96 and 224 are no whole blocks of 256
  for (const TensorInfo& t : gqa->tensors())
    EXPECT_EQ(t.format, t.shape.size() == 1 ? Format::f32 : Format::q8_0) << t.name;
  const auto big = SynthSource::create("synth:llama-8b:q4_0");
  EXPECT_EQ(big->find("token_embd.weight")->format, Format::q8_0);
  EXPECT_EQ(big->find("output.weight")->format, Format::q8_0);
  EXPECT_EQ(big->find("blk.31.ffn_down.weight")->format, Format::q4_0);
  EXPECT_EQ(SynthSource::create("synth:llama-1b:bf16")->find("output.weight"), nullptr);
  EXPECT_EQ(SynthSource::create("synth:llama-1b:bf16")->find("token_embd.weight")->format, Format::bf16);
}

TEST(Synth, MetadataIsAWholeModel) {
  const auto source = SynthSource::create("synth:tiny-gqa:f32");
  const Metadata& m = source->metadata();
  const auto& tokens = *std::get<std::shared_ptr<const std::vector<std::string>>>(m.at("tokenizer.ggml.tokens").value);
  ASSERT_EQ(tokens.size(), 330u);
  EXPECT_EQ(tokens[4 + 'a'], "a");
  EXPECT_EQ(tokens[4 + ' '], "\u0120");
  EXPECT_EQ(tokens[4 + '\n'], "\u010a");
  EXPECT_EQ(tokens[4 + 0xad], "\u0143");
  EXPECT_EQ(tokens[4 + 0xff], "\u00ff");
  EXPECT_EQ(tokens[329], "<synth_000329>");
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
  EXPECT_EQ(std::get<uint64_t>(m.at("llama.attention.head_count_kv").value), 2u);
  EXPECT_TRUE(std::get<bool>(m.at("stet.synthetic").value));
}

// A file written from the generator holds the same bytes, shapes and metadata.
TEST(Synth, SurvivesAFile) {
  const fs::path folder = fs::path(testing::TempDir()) / ("stet_synth_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  for (const char* name : {"synth:tiny-gqa:q4_1", "synth:tiny-256:q6_k", "synth:tiny:bf16"}) {
    const auto source = SynthSource::create(name);
    const std::string path = folder / "m.gguf";
    uint64_t last = 0;
    const uint64_t bytes =
        write_gguf(*source, path, {.overwrite = true, .progress = [&](uint64_t done, uint64_t) { last = done; }});
    EXPECT_EQ(fs::file_size(path), bytes);
    EXPECT_GT(last, bytes - 64);
    const auto file = GgufFile::open(path);
    ASSERT_EQ(file->tensors().size(), source->tensors().size());
    for (const TensorInfo& t : source->tensors()) {
      const TensorInfo& read = *file->find(t.name);
      EXPECT_EQ(read.format, t.format);
      EXPECT_EQ(read.shape, t.shape);
      EXPECT_EQ(whole(*file, read), whole(*source, t)) << t.name;
    }
    EXPECT_EQ(gguf_header(file->metadata(), file->tensors()), gguf_header(source->metadata(), source->tensors()));
  }
  fs::remove_all(folder);
}

TEST(Synth, AWriteThatFailsLeavesNoFile) {
  const fs::path folder = fs::path(testing::TempDir()) / ("stet_synth_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto source = SynthSource::create("synth:tiny:q4_0");
  const auto cancel = [](uint64_t, uint64_t) { fail(Code::kCancelled, "stopped"); };
  EXPECT_THROW(write_gguf(*source, folder / "m.gguf", {.progress = cancel}), Error);
  EXPECT_TRUE(fs::is_empty(folder));
  write_gguf(*source, folder / "m.gguf");
  EXPECT_THROW(write_gguf(*source, folder / "m.gguf"), Error);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace stet
