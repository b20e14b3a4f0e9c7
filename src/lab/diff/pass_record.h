// What one pass left on one side: a hash of every row of every command's output, in list order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "state/decoder.h"

namespace stet {

// XXH3-64 of a row, all NaN taken as one.
uint64_t row_hash(const float* row, uint32_t width);
uint32_t bits_one_nan(float x);

struct RowMismatch {
  std::string command, tensor;
  uint32_t row = 0, position = 0;
  std::vector<float> second;  // the row as the second side has it
};

// Of the first side. Numbers commands in the order in which they run.
class PassRecord {
 public:
  void add(const Stage& stage, const StepParams& params, uint32_t rows);
  // Where in the list a command stands; SIZE_MAX when it was not seen.
  size_t order(const std::string& command) const;
  // The command that stores the keys and values of a layer; empty when none was seen.
  std::string store_of(uint32_t layer) const;
  const std::vector<uint64_t>* rows_of(const std::string& command) const;

 private:
  std::map<std::string, size_t> order_;
  std::map<std::string, std::vector<uint64_t>> hashes_;
  std::vector<std::string> stores_;  // by layer
};

// Of the second side: compares as it runs, and keeps the first row that differs.
class PassComparison {
 public:
  explicit PassComparison(const PassRecord& first) : first_(first) {}
  void add(const Stage& stage, const StepParams& params, uint32_t rows);

  uint64_t commands() const { return commands_; }
  uint64_t values() const { return values_; }
  const std::optional<RowMismatch>& mismatch() const { return mismatch_; }

 private:
  void compare(const Command& command, const StepParams& params, uint32_t rows);

  const PassRecord& first_;
  uint64_t commands_ = 0, values_ = 0;
  std::optional<RowMismatch> mismatch_;
};

}  // namespace stet
