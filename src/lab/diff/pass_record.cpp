#include "lab/diff/pass_record.h"

#include <algorithm>

#include "base/fp.h"
#include "base/hash.h"

namespace stet {
namespace {

// The row of the pass that row 0 of a command's output belongs to.
uint32_t first_row_of(const Command& c, const StepParams& params) {
  return c.from_head || c.out->name == "logits" ? params.head_first : 0;
}

}  // namespace

uint32_t bits_one_nan(float x) { return x == x ? bits_of_float(x) : 0x7fc00000u; }

uint64_t row_hash(const float* row, uint32_t width) {
  constexpr uint32_t kPiece = 1024;
  uint32_t piece[kPiece];
  uint64_t hash = 0;
  for (uint32_t done = 0; done < width; done += kPiece) {
    const uint32_t n = std::min(kPiece, width - done);
    for (uint32_t i = 0; i < n; ++i) piece[i] = bits_one_nan(row[done + i]);
    hash = xxh3(piece, n * sizeof(uint32_t), hash);
  }
  return hash;
}

void PassRecord::add(const Stage& stage, const StepParams&, uint32_t rows) {
  for (const Command* c : stage.commands) {
    if (order_.try_emplace(c->name, order_.size()).second && c->op == Op::store) stores_.push_back(c->name);
  }
  for (const Command* c : stage.materialised) {
    std::vector<uint64_t>& hashes = hashes_[c->name];
    for (uint32_t r = 0; r < rows; ++r) hashes.push_back(row_hash(c->out->row(r), c->out->width));
  }
}

size_t PassRecord::order(const std::string& command) const {
  const auto it = order_.find(command);
  return it == order_.end() ? SIZE_MAX : it->second;
}

std::string PassRecord::store_of(uint32_t layer) const { return layer < stores_.size() ? stores_[layer] : ""; }

const std::vector<uint64_t>* PassRecord::rows_of(const std::string& command) const {
  const auto it = hashes_.find(command);
  return it == hashes_.end() ? nullptr : &it->second;
}

void PassComparison::add(const Stage& stage, const StepParams& params, uint32_t rows) {
  for (const Command* c : stage.materialised) compare(*c, params, rows);
}

// A command that only one side holds the result of is no boundary.
void PassComparison::compare(const Command& c, const StepParams& params, uint32_t rows) {
  const std::vector<uint64_t>* want = first_.rows_of(c.name);
  if (want == nullptr) return;
  commands_ += 1;
  values_ += uint64_t{rows} * c.out->width;
  for (uint32_t r = 0; r < rows && !mismatch_; ++r) {
    const float* row = c.out->row(r);
    if (r < want->size() && (*want)[r] == row_hash(row, c.out->width)) continue;
    const uint32_t of_pass = first_row_of(c, params) + r;
    mismatch_ = {c.name, c.out->name, of_pass, params.position + of_pass, {row, row + c.out->width}};
  }
}

}  // namespace stet
