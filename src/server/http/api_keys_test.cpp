#include "server/http/api_keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace stet::http {
namespace {

class ApiKeysTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path); }
  void write(const std::string& text, mode_t mode = 0600) {
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
  }
  Code code() {
    try {
      ApiKeys::from_file(path);
    } catch (const Error& e) {
      EXPECT_NE(std::string_view(e.what()).find(path), std::string_view::npos) << e.what();
      return e.code();
    }
    return Code::kDiverged;
  }
  const std::string path = testing::TempDir() + "stet_keys_" + std::to_string(::getpid());
};

TEST_F(ApiKeysTest, OneALine) {
  write("# the lab\nkey-one\n\n  key-two \r\nkey-three");
  const ApiKeys keys = ApiKeys::from_file(path);
  for (const char* key : {"key-one", "key-two", "key-three"}) EXPECT_TRUE(keys.accepts(key)) << key;
  for (const char* key : {"", "key", "key-one ", "key-two \r", "# the lab", "key-on", "KEY-ONE", "key-one\nkey-two"})
    EXPECT_FALSE(keys.accepts(key)) << key;
  EXPECT_TRUE(ApiKeys().empty());
  EXPECT_FALSE(ApiKeys().accepts(""));
}

TEST_F(ApiKeysTest, AFileThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0644, 0604, 0602, 0601, 0777}) {
    write("key-one\n", mode);
    EXPECT_EQ(code(), Code::kResource) << std::oct << mode;
  }
  write("key-one\n", 0640);
  EXPECT_EQ(code(), Code::kResource) << "a group that was not chosen";
  write("key-one\n", 0400);
  EXPECT_TRUE(ApiKeys::from_file(path).accepts("key-one"));
}

TEST_F(ApiKeysTest, WhatHoldsNoKeysIsRefused) {
  std::filesystem::remove(path);
  EXPECT_EQ(code(), Code::kInput) << "not there";
  write("\n# nothing\n");
  EXPECT_EQ(code(), Code::kInput);
  write("two words\n");
  EXPECT_EQ(code(), Code::kInput);
  write("k\xC3\xA9y\n");
  EXPECT_EQ(code(), Code::kInput);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(code(), Code::kResource) << "a folder";
}

}  // namespace
}  // namespace stet::http
