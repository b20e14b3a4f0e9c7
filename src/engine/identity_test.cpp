#include "engine/identity.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/build_id.h"
#include "base/hash.h"
#include "engine/file_hashes.h"

namespace stet {
namespace {

using Json = nlohmann::json;

const char* const kProcessMembers[] = {"program",          "version",          "build_id",     "commit",
                                       "commit_state",     "compiler",         "build_type",   "flags",
                                       "numerics_version", "libraries",        "cpu_model",    "cpu_governor",
                                       "cpu_max_khz",      "cpu_cores_online", "memory_bytes", "kernel_release"};

TEST(Identity, EveryMemberIsThere) {
  const Json process = Json::parse(process_identity());
  for (const char* member : kProcessMembers) {
    ASSERT_TRUE(process.contains(member)) << member;
    EXPECT_FALSE(process[member].is_null()) << member;
    EXPECT_NE(process[member], Json("")) << member;
  }
  EXPECT_EQ(process["build_id"], build_id());
}

TEST(Identity, LibrariesAreNamesAndHashes) {
  const Json libraries = Json::parse(process_identity())["libraries"];
  ASSERT_TRUE(libraries.is_array());
  ASSERT_GE(libraries.size(), 3u) << "this program, libc, libstdc++";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(libraries[0]["name"], std::filesystem::path(self).filename().string());
  std::ifstream in(self, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(libraries[0]["sha256"], sha256_hex(content.data(), content.size()));
  for (const Json& library : libraries) {
    EXPECT_EQ(library["name"].get<std::string>().find('/'), std::string::npos);
    EXPECT_EQ(library["sha256"].get<std::string>().size(), 64u) << library;
  }
}

TEST(Identity, MapsAreReadLineByLine) {
  const std::vector<std::string> files = code_files_of(
      "1-2 r-xp 00000000 00:00 5 /usr/lib/libz.so\n"
      "2-3 rw-p 00000000 00:00 5 /usr/lib/data.bin\n"
      "3-4 r-xp 00000000 00:00 0 [vdso]\n"
      "4-5 r-xp 00000000 00:00 6 /opt/a folder/liba.so\n"
      "5-6 r-xp 00001000 00:00 5 /usr/lib/libz.so\n"
      "6-7 r-xp 00000000 00:00 0\n");
  EXPECT_THAT(files, testing::ElementsAre("/opt/a folder/liba.so", "/usr/lib/libz.so"));
}

TEST(Identity, OfAnEngine) {
  Options options;
  options.model = "synth:tiny:q4_0";
  options.pack = "none";
  options.threads = 1;
  options.qualify = false;
  options.draft = "ngram";
  Engine engine(options);
  const Json json = Json::parse(engine_identity(engine, true));
  for (const char* member : kProcessMembers) EXPECT_TRUE(json.contains(member)) << member;
  EXPECT_EQ(json["model_sha256"], "unproven") << "a synthetic model has no file";
  EXPECT_EQ(json["model_files"], "unproven");
  EXPECT_EQ(json["draft"], "ngram");
  EXPECT_EQ(json["history_accelerated"], true);
  EXPECT_EQ(json["kv"], "f16");
  EXPECT_EQ(json["activations"], "a8");
  EXPECT_EQ(json["synthetic"], true);
  ASSERT_TRUE(json["weight_formats"].is_array());
  std::map<std::string, uint64_t> bytes;
  for (const Json& f : json["weight_formats"]) bytes[f["format"]] = f["bytes"];
  EXPECT_GT(bytes["Q4_0"], bytes["F32"]) << json["weight_formats"];
  EXPECT_EQ(json["pack"], engine.info().pack_key);
  EXPECT_EQ(json["lists_key"].get<std::string>().size(), 64u);
}

TEST(Identity, EveryFileOfAModelIsHashed) {
  Options options;
  options.model = "tests/golden/hf/key_length_64";
  options.pack = "none";
  options.threads = 1;
  options.qualify = false;
  Engine engine(options);
  const Json json = Json::parse(engine_identity(engine, true));
  std::vector<std::string> names;
  std::string lines;
  for (const Json& f : json["model_files"]) {
    names.push_back(f["name"]);
    EXPECT_EQ(f["sha256"], file_hash(options.model + "/" + names.back()).sha256);
    lines += fmt::format("{}  {}  {}\n", f["sha256"].get<std::string>(), f["bytes"].get<uint64_t>(), names.back());
  }
  EXPECT_THAT(names, testing::ElementsAre("config.json", "generation_config.json", "model.safetensors.index.json",
                                          "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                          "model-00003-of-00003.safetensors"));
  EXPECT_EQ(json["model_sha256"], sha256_hex(lines.data(), lines.size()));
}

TEST(FileHash, ChangesWithTheFile) {
  const std::string path = testing::TempDir() + "stet_file_hash";
  std::ofstream(path) << "one";
  EXPECT_EQ(file_hash(path).sha256, sha256_hex("one", 3));
  EXPECT_EQ(file_hash(path).bytes, 3u);
  std::filesystem::remove(path);
  std::ofstream(path) << "three";
  EXPECT_EQ(file_hash(path).sha256, sha256_hex("three", 5));
  std::filesystem::remove(path);
  EXPECT_EQ(file_hash(path).sha256, "");
}

}  // namespace
}  // namespace stet
