// model.safetensors.index.json: which tensor lies in which shard.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/strict_json.h"
#include "weights/hf/safetensors.h"

namespace stet {

inline constexpr const char* kHfSingle = "model.safetensors";
inline constexpr const char* kHfIndex = "model.safetensors.index.json";

struct HfIndex {
  std::vector<std::string> shards;                       // names of files, in the order of their names
  std::map<std::string, std::set<std::string>> tensors;  // of each shard
};

// Throws Error(kInput) for an index that is not one, or names a file outside its folder.
HfIndex read_hf_index(const LargeJson& json, const std::string& path);

// Throws Error(kInput), naming tensor and file, unless the shard has just the tensors that the index says.
void check_shard(const HfIndex& index, const std::string& shard, const SafetensorsHeader& header,
                 const std::string& path);

}  // namespace stet
