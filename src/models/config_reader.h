// Reads the metadata of one architecture's namespace. Every key must be read, or stand on the list of harmless ones.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/tensor_source.h"

namespace stet {

class ConfigReader {
 public:
  // Keys are looked up as "<architecture>.<key>".
  ConfigReader(const TensorSource& source, std::string architecture);

  // Throws Error(kInput) when the key is missing or no integer in [low, high].
  uint32_t u32(std::string_view key, uint32_t low, uint32_t high);
  uint32_t u32_or(std::string_view key, uint32_t low, uint32_t high, uint32_t otherwise);
  // Throws Error(kInput) when the key is missing or not a finite number in [low, high].
  double number(std::string_view key, double low, double high);
  double number_or(std::string_view key, double low, double high, double otherwise);
  // Throws Error(kInput) when the key is missing or no list of `size` integers in [low, high].
  std::vector<uint32_t> u32_list(std::string_view key, size_t size, uint32_t low, uint32_t high);
  // Throws Error(kInput) when the key is missing or no list of integers in [low, high].
  std::vector<uint32_t> u32_list(std::string_view key, uint32_t low, uint32_t high);
  std::string text_or(std::string_view key, std::string_view otherwise);
  bool has(std::string_view key) const;

  // Throws Error(kUnsupported) naming the first key of the namespace that was not read and is not in `harmless`.
  void finish(std::span<const std::string_view> harmless) const;

 private:
  const MetaValue* find(std::string_view key);
  std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }

  const TensorSource& source_;
  std::string architecture_;
  std::set<std::string> read_;
};

}  // namespace stet
