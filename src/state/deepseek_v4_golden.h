// The golden models of tests/golden/deepseek_v4, for tests.
#pragma once

#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/strict_json.h"
#include "state/test_model.h"
#include "weights/hf/checkpoint.h"

namespace stet::test {

inline const std::string kDeepseekV4Goldens = "tests/golden/deepseek_v4/";

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The last n elements of a NumPy file: they stand at its end.
template <typename T>
std::vector<T> last_elements(const std::string& path, size_t n) {
  const std::string bytes = bytes_of(path);
  std::vector<T> x(n);
  STET_CHECK(bytes.size() > n * sizeof(T));
  std::memcpy(x.data(), bytes.data() + bytes.size() - n * sizeof(T), n * sizeof(T));
  return x;
}

struct DeepseekV4Golden {
  // drafts: with the blocks of its draft.
  explicit DeepseekV4Golden(const std::string& name, std::string_view activations = "f32", bool drafts = false)
      : model(HfCheckpoint::open(kDeepseekV4Goldens + name, drafts), activations == "f32",
              activations == "checkpoint" ? ActKind::e4m3 : ActKind::i8) {
    choose_activations(model.desc, activations);
    record = parse_json(bytes_of(kDeepseekV4Goldens + name + "/golden.json"), name);
    tokens = record["tokens"].get<std::vector<int32_t>>();
  }
  TestModel model;
  Json record;
  std::vector<int32_t> tokens;
};

}  // namespace stet::test
