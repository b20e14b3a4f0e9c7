// What a checkpoint's own draft is, as data: blocks that propose tokens for the model they were trained beside. The
// target's list keeps what they read as rows of ModelDesc::states; their own lists run over these
// (state/draft_lists.h).
#pragma once

#include "models/model_desc.h"

namespace stet {

// The lists of a draft.
enum class DraftPass : uint8_t {
  // "mtp": rows join what the target keeps of a position and the token behind it
  rows,   // any number of rows: only what later rows read of them
  first,  // one row, to its streams
  next,   // the same, from the streams of the row before instead of what the target keeps
  // "dspark"
  block,   // rows of a block behind the verified ones, to their streams
  choose,  // head list, one row: the row's logits and confidence, given the token before it (buffers kDraftLogits ..)
  // both
  head,  // head list: from streams to logits
};

inline constexpr const char* kDraftLogits = "draft_logits";
inline constexpr const char* kDraftConfidence = "draft_confidence";

struct DraftDesc {
  std::string kind;               // its name on the command line: "mtp", "dspark"
  uint32_t depth = 0;             // proposals, where nobody asks for a number
  uint32_t window = 0;            // rows that a row reads
  int32_t noise = -1;             // dspark: the token of places to be drafted
  std::vector<StateSpec> states;  // of its own, beside the target's
  void (*record)(const ModelDesc& target, const ModelWeights& weights, DraftPass pass, ListBuilder& list) = nullptr;
};

}  // namespace stet
