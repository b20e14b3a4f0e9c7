#include "weights/hf/shards.h"

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {

HfIndex read_hf_index(const LargeJson& json, const std::string& path) {
  const LargeJson map = json.is_object() ? json.value("weight_map", LargeJson()) : LargeJson();
  if (!map.is_object() || map.empty()) fail(Code::kInput, "{}: weight_map names no tensors", path);
  HfIndex index;
  for (const auto& [tensor, shard] : map.items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name == "." ||
        name == "..")
      fail(Code::kInput, "{}: the shard of '{}' is no name of a file beside it", path, shown_name(tensor));
    index.tensors[name].insert(tensor);
  }
  for (const auto& [shard, tensors] : index.tensors) index.shards.push_back(shard);
  return index;
}

void check_shard(const HfIndex& index, const std::string& shard, const SafetensorsHeader& header,
                 const std::string& path) {
  std::set<std::string> expected = index.tensors.at(shard);
  for (const SafetensorsTensor& t : header.tensors)
    if (expected.erase(t.name) == 0)
      fail(Code::kInput, "{}: has tensor '{}', and {} does not say so; get all files of one version again", path,
           shown_name(t.name), kHfIndex);
  if (!expected.empty())
    fail(Code::kInput, "{}: lacks tensor '{}', which {} places there; get all files of one version again", path,
         shown_name(*expected.begin()), kHfIndex);
}

}  // namespace stet
