#include "state/draft_passes.h"

#include <algorithm>

#include "base/error.h"

namespace stet {
namespace {

// A list a width, as the target has them.
void add_widths(DraftPass pass, RowSet rows, std::vector<DraftLists::Ask>& lists) {
  for (uint32_t width = 1; width <= kNarrowRows; ++width) lists.push_back({pass, width, rows});
}

std::vector<DraftLists::Ask> mtp_lists() {
  std::vector<DraftLists::Ask> lists = {
      {DraftPass::first, 1, RowSet::pass}, {DraftPass::next, 1, RowSet::pass}, {DraftPass::head, 1, RowSet::head}};
  add_widths(DraftPass::rows, RowSet::pass, lists);
  lists.push_back({DraftPass::rows, kWideRows, RowSet::pass});
  return lists;
}

std::vector<DraftLists::Ask> dspark_lists() {
  std::vector<DraftLists::Ask> lists;
  add_widths(DraftPass::block, RowSet::pass, lists);
  add_widths(DraftPass::head, RowSet::head, lists);
  lists.push_back({DraftPass::choose, 1, RowSet::head});
  return lists;
}

}  // namespace

MtpPasses::MtpPasses(Decoder& target, const ArmOptions& arm) : lists_(target, mtp_lists(), arm) {}

void MtpPasses::rows(std::span<const int32_t> behind, uint32_t position) {
  lists_.reach(position + static_cast<uint32_t>(behind.size()));
  for (size_t done = 0; done < behind.size();) {
    const size_t n = std::min<size_t>(behind.size() - done, kWideRows);
    params_.rows = static_cast<uint32_t>(n);
    params_.position = position + static_cast<uint32_t>(done);
    std::copy_n(behind.begin() + static_cast<ptrdiff_t>(done), n, params_.tokens);
    lists_.run(DraftPass::rows, params_);
    done += n;
  }
}

const float* MtpPasses::step(DraftPass pass, int32_t behind, uint32_t position) {
  lists_.reach(position + 1);
  params_.rows = params_.head_rows = 1;
  params_.head_first = 0;
  params_.position = position;
  params_.tokens[0] = behind;
  lists_.run(pass, params_);
  lists_.run(DraftPass::head, params_);
  return lists_.row("logits", lists_.target().desc().vocab, 0);
}

const float* MtpPasses::first(int32_t behind, uint32_t position) { return step(DraftPass::first, behind, position); }
const float* MtpPasses::next(int32_t behind, uint32_t position) { return step(DraftPass::next, behind, position); }

DSparkPasses::DSparkPasses(Decoder& target, const ArmOptions& arm) : lists_(target, dspark_lists(), arm) {}

void DSparkPasses::block(int32_t anchor, uint32_t rows, uint32_t position) {
  STET_CHECK(position >= 1 && rows >= 1 && rows <= kNarrowRows);
  lists_.reach(position + rows);
  params_.rows = params_.head_rows = rows;
  params_.head_first = 0;
  params_.position = position;
  std::fill_n(params_.tokens, rows, lists_.desc().noise);
  params_.tokens[0] = anchor;
  lists_.run(DraftPass::block, params_);
  lists_.run(DraftPass::head, params_);
}

DSparkPasses::Choice DSparkPasses::choose(uint32_t row, int32_t before) {
  STET_CHECK(row < params_.rows);
  StepParams one;
  one.rows = one.head_rows = 1;
  one.head_first = row;
  one.tokens[0] = before;
  lists_.run(DraftPass::choose, one);
  return {lists_.row(kDraftLogits, lists_.target().desc().vocab, 0), *lists_.row(kDraftConfidence, 1, 0)};
}

}  // namespace stet
