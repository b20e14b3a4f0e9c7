// A draft proposes tokens for the target to verify. It reads the session and never writes it; whatever it proposes, the output stays.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/sampling.h"
#include "state/session.h"
#include "weights/packed_model.h"

namespace stet {

// How a CUDA device drafts without the host.
struct DeviceDraft {
  enum class Kind : uint8_t { host, ngram, model };
  Kind kind = Kind::host;                // it does not: the host has to propose
  Decoder* decoder = nullptr;            // of a model, on the same device
  std::vector<int32_t>* seen = nullptr;  // tokens that have KV rows there
};

class Draft {
 public:
  virtual ~Draft() = default;
  // A request begins, sampled with these parameters.
  virtual void begin(const SamplingParams& sampling) { (void)sampling; }
  // Appends at most `depth` proposals for the positions behind view.tokens.
  virtual void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) = 0;
  // Of the proposals that the last propose() appended: the logit of each being accepted if all before it are. Empty: the
  // draft makes none.
  virtual std::span<const float> confidences() const { return {}; }
  // How a device makes the same proposals by itself; the default: it does not, and steps end on the host.
  virtual DeviceDraft on_device() { return {}; }
};

// What a draft is made from.
struct DraftContext {
  std::string argument;            // what follows the colon of its name: the file of "model:FILE"
  const ModelDesc& target;
  std::function<std::unique_ptr<TensorSource>(const std::string& name)> open;
  std::function<std::string(const TensorSource&)> vocab_hash;  // equal for models whose ids mean the same text
  std::string target_vocab_hash;
  const Kernels& kernels;
  WorkerPool& pool;
  uint32_t context = 0;            // positions
  KvFormat kv = KvFormat::f16;
  const CudaDeviceInfo* cuda = nullptr;  // the device that the target runs on; null: the processor. Outlives the draft
  PackOptions pack;
  ArmOptions arm;
  Decoder* decoder = nullptr;  // the target's, for drafts that read its rows. Outlives the draft
};

struct DraftKind {
  std::string_view name;
  // Learns from the text it continues: its rate says little about new text, and is printed as such.
  bool history_accelerated;
  std::unique_ptr<Draft> (*make)(const DraftContext& context);  // null for "none"
  bool own;  // blocks of the target's checkpoint: its source has to be opened with them
};

// "none", "ngram", "model:FILE". Throws Error(kUsage) listing what there is.
const DraftKind& draft_kind(std::string_view text);
std::string draft_argument(std::string_view text);

// Whether a draft of that name is blocks of the target's checkpoint; false for names that are none.
bool is_own_draft(std::string_view name);
// Throws Error(kUnsupported), naming what the target has instead, unless it has the blocks of the draft `name`; Error(kUsage) for an
// argument.
void check_own_draft(std::string_view name, const DraftContext& context);
void check_own_draft(std::string_view name, const ModelDesc& target);

}  // namespace stet
