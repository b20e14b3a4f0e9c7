// Reads the golden vectors of tests/golden/text (made by tools/oracle/make_text_vectors.py). Tests run in the root of
// the source tree.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "weights/tensor_source.h"

namespace stet::test {

inline nlohmann::json read_golden(const std::string& name) {
  const std::string path = "tests/golden/text/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << " cannot be read; run the tests in the root of the source tree";
  return file.good() ? nlohmann::json::parse(file) : nlohmann::json::object();
}

// Metadata of a byte-level BPE tokenizer; tests change single keys afterwards.
inline Metadata make_metadata(const std::string& pre, std::vector<std::string> tokens,
                              const std::vector<int64_t>& types, std::vector<std::string> merges) {
  MetaArray type_values;
  for (int64_t type : types) type_values.push_back({type});
  Metadata m;
  m["tokenizer.ggml.model"] = {std::string("gpt2")};
  m["tokenizer.ggml.pre"] = {pre};
  m["tokenizer.ggml.tokens"] = {std::make_shared<const std::vector<std::string>>(std::move(tokens))};
  m["tokenizer.ggml.token_type"] = {std::make_shared<const MetaArray>(std::move(type_values))};
  m["tokenizer.ggml.merges"] = {std::make_shared<const std::vector<std::string>>(std::move(merges))};
  return m;
}

inline Metadata read_golden_metadata(const nlohmann::json& golden) {
  return make_metadata(golden.at("pre"), golden.at("tokens"), golden.at("types"), golden.at("merges"));
}

}  // namespace stet::test
