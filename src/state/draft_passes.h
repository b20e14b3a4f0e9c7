// What a checkpoint's own draft can be asked. Rows of positions are those of the target's session: whoever asks says
// which of them stand, and nothing here reads another one.
#pragma once

#include "state/draft_lists.h"

namespace stet {

// "mtp": row i joins what the target keeps of position i and the token at i + 1, and says what may stand at i + 2.
class MtpPasses {
 public:
  // REQUIRES: target.desc().draft->kind is "mtp".
  MtpPasses(Decoder& target, const ArmOptions& arm);

  // Rows position .. position + behind.size() - 1, so that later ones can read them. behind: the token after each.
  // REQUIRES: the target's rows of these positions stand.
  void rows(std::span<const int32_t> behind, uint32_t position);
  // The row of a position, its window having been made; logits (vocab), until the next call.
  const float* first(int32_t behind, uint32_t position);
  // The next one, from the streams of the row before it.
  const float* next(int32_t behind, uint32_t position);

  uint32_t window() const { return lists_.desc().window; }

 private:
  const float* step(DraftPass pass, int32_t behind, uint32_t position);

  DraftLists lists_;
  StepParams params_;
};

// "dspark": a block of tokens at once, then one after the other.
class DSparkPasses {
 public:
  // REQUIRES: target.desc().draft->kind is "dspark".
  DSparkPasses(Decoder& target, const ArmOptions& arm);

  // The rows position .. position + rows - 1: the anchor, then noise. REQUIRES: the target's rows of all positions
  // below stand, at least one; rows <= kNarrowRows.
  void block(int32_t anchor, uint32_t rows, uint32_t position);
  struct Choice {
    const float* logits = nullptr;  // (vocab) of the token behind the row, until the next call
    float confidence = 0.0f;        // logit of that token being accepted, if all before it are
  };
  // Row `row` of the block, `before` being the token at its place. Rows in any order.
  Choice choose(uint32_t row, int32_t before);

 private:
  DraftLists lists_;
  StepParams params_;
};

}  // namespace stet
