// The target as a function of positions: tokens in, KV rows and logits out. It keeps the KV cache, the recorded lists of every width
// and the interpreter; which rows count is the Session's business.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>

#include "device/memory.h"
#include "models/model_desc.h"
#include "models/rope_table.h"
#include "replay/cuda_interpreter.h"
#include "replay/life.h"
#include "state/state_plan.h"

namespace stet {

struct DecoderOptions {
  uint32_t context = 0;  // positions to reserve
  KvFormat kv = KvFormat::f16;
  ReplayMode mode = ReplayMode::replayed;
  uint32_t prompt_rows = kWideRows;  // rows of a prompt pass, 1 .. kWideRows
  const CudaDeviceInfo* cuda = nullptr;  // run there; the processor is the reference then. Outlives the decoder
};

// What happens before the lists of a decoder may run.
enum class Qualify : uint8_t {
  compare,  // kernels and lists are compared with the reference, unless a verdict of the same key is kept
  skip,     // they are not: for tests and benches that compare by other means
  later,    // the lists stay LOADED until arm() is called
};

struct ArmOptions {
  Qualify qualify = Qualify::compare;
  std::string cache_dir;  // where verdicts are kept; empty: nowhere, every start compares
  // Told what is being done.
  std::function<void(std::string_view phase, uint64_t done, uint64_t total)> progress;
};

// How the lists of a decoder came to be armed.
struct Qualification {
  enum class How : uint8_t { no, now, cached };
  How how = How::no;
  uint64_t compared_rows = 0;
  std::string not_kept;  // why the verdict could not be written, for people; empty: it was, or no cache was given
};

// Bytes of KV cache that a context of that many tokens occupies.
uint64_t kv_bytes(const ModelDesc& desc, KvFormat format, uint64_t tokens);

class Decoder {
 public:
  // desc and pack outlive the decoder. Throws Error(kUnsupported) for a KV format that the model's heads do not allow, and
  // Error(kResource) when the addresses cannot be had.
  // Arms the lists as arm() does, unless arm.qualify is `later`.
  Decoder(const ModelDesc& desc, const PackedModel& pack, const Kernels& kernels, WorkerPool& pool, const DecoderOptions& options,
          const ArmOptions& arm = {});

  // From LOADED to ARMED: runs every kernel of every list once, freezes the addresses, compares (replay/qualify.h; then the lists of
  // every width with the eager form of width 16, on two inputs). Needs the KV rows: nothing that was stored before remains. Throws
  // Error(kDiverged) at the first difference; the lists are COLD then, and nothing runs.
  void arm(const ArmOptions& options);
  LifeState life() const { return life_.state(); }
  const Qualification& qualification() const { return qualification_; }
  // What a verdict is kept under: SHA-256 of everything that the bits may depend on.
  std::string lists_key() const;

  const ModelDesc& desc() const { return desc_; }
  const DecoderOptions& options() const { return options_; }

  // Runs tokens at positions position .. position + tokens.size() - 1, in passes of at most kNarrowRows rows, or of prompt_rows
  // where there are more. Writes their KV rows. Rows below `position` must hold their own tokens' KV; where states are
  // rings, those that can still be read (restorable()) must, and a position that cannot be returned to is an internal error.
  // The logits of the last `logit_rows` tokens (at most kNarrowRows) are at the returned address, (logit_rows, vocab), until the next
  // call; null when logit_rows is 0. Throws Error(kUsage) when the context is full, Error(kInternal) when the lists are not ARMED.
  const float* forward(std::span<const int32_t> tokens, uint32_t position, uint32_t logit_rows);
  // The same, calling sink(position, logits) for every token in order.
  void forward_all(std::span<const int32_t> tokens, uint32_t position,
                   const std::function<void(uint32_t position, const float* logits)>& sink);

  void set_mode(ReplayMode mode) { options_.mode = mode; }
  void set_prompt_rows(uint32_t rows) { options_.prompt_rows = rows; }
  // Sees every stage of eager and recorded runs; for traces.
  void set_observer(StageObserver observer) { observer_ = std::move(observer); }
  // Called between the passes of forward; may throw to stop.
  void set_between_passes(std::function<void(uint32_t done, uint32_t total)> f) { between_passes_ = std::move(f); }

  // The nearest position at or below `position` that a pass can begin at, with the rows below it that passes so far have left:
  // itself, or 0 where a ring has lost what would be read (state/state_plan.h).
  uint32_t restorable(uint32_t position) const { return plan_.intact(position, written_) ? position : 0; }

  // Rows of positions 0 .. positions - 1 can be stored and read: forward() does this for itself.
  void reach(uint32_t positions);
  // Passes that forward() did not run (src/spec/cuda) may store rows of positions below `positions`: rings lose what they replace.
  void stores(uint32_t positions) { written_ = std::max(written_, positions); }

  // For drafts whose lists read its rows (state/draft_lists.h).
  const std::map<std::string, StateRows>& states() const { return states_; }
  std::vector<RopeRows> ropes() const;
  const PackedModel& pack() const { return pack_; }
  const CpuInterpreter& processor() const { return *cpu_; }

  // For cycles that stay on the CUDA device (src/spec/cuda): null without one; the lists of passes of up to `rows` tokens, and where
  // those of `logit_rows` of them leave their logits.
  CudaInterpreter* cuda() const { return cuda_.get(); }
  struct DeviceLists {
    const LoweredList *body, *head;
    const Buffer* logits;
  };
  DeviceLists device_lists(uint32_t rows, uint32_t logit_rows);

  // Bytes on the CUDA device; 0 without one.
  uint64_t device_bytes() const { return cuda_ ? cuda_->device_bytes() : 0; }

  // The lists of such a pass on the CUDA device, body and head: seconds of the first 0, 1, ... all stages of each, as time_prefixes() of
  // replay/cuda_interpreter.h measures them, and of bringing the logits to the host. What buffers hold is lost.
  struct ListTimes {
    std::vector<std::pair<const LoweredList*, std::vector<double>>> lists;
    double fetch = 0;
  };
  ListTimes time_lists(uint32_t rows, uint32_t position, uint32_t repeats);
  // On the processor: replayed runs write down when their stages end (replay/interpreter.h); null: no more.
  void set_marks(StageMarks* marks) { cpu_->set_marks(marks); }

  // XXH3-64 of the KV rows and states of positions 0 .. positions - 1 that a later pass can see, element by element: of rings the
  // rows that one at `positions` reads. REQUIRES: restorable(positions) == positions.
  uint64_t kv_hash(uint32_t positions);
  // The KV rows of positions 0 .. positions - 1 are in the memory below when this returns, wherever the lists run.
  void fetch_kv(uint32_t positions);
  // For comparisons: the KV memory of a layer, and the layout.
  uint8_t* kv_layer(uint32_t layer) const { return attend_[layer].layer; }
  const KvLayout& kv_layout() const { return attend_[0].layout; }
  const StateRows& state(const std::string& name) const { return states_.at(name); }
  uint64_t scratch_bytes() const { return buffers_.bytes(); }

 private:
  struct Recorded {
    CommandList list;
    LoweredList fused, eager;  // for the processor
    LoweredList cuda;          // fused for a CUDA device, where there is one
  };
  // A short list of the body of one width, fused and eager (replay/list_sample.h).
  struct Sample {
    LoweredList fused, eager;
  };

  void record(const ModelWeights& weights);
  void make_interpreters(const Kernels& kernels, WorkerPool& pool, const ArmOptions& arm);
  Interpreter& interpreter() const;  // that runs for callers
  const LoweredList& fused(const Recorded& recorded) const { return cuda_ ? recorded.cuda : recorded.fused; }
  const Recorded& body(uint32_t rows) const;
  const Recorded& head(uint32_t rows) const;
  Sample sample(uint32_t rows) const;
  void run_sample(Interpreter& on, const LoweredList& list, ReplayMode mode, std::span<const int32_t> tokens, uint32_t position);
  std::vector<float> eager_rows(Interpreter& on, std::span<const int32_t> tokens);
  void compare_rows(const char* what, const Buffer& buffer, const float* got, const float* wanted, uint32_t rows) const;
  std::vector<uint32_t> widths() const;
  uint32_t sample_rows() const;
  void warm();
  void qualify(const ArmOptions& options);
  uint64_t compare_lists(uint32_t seed);
  void run(const Recorded& list, const StepParams& params);
  void run_pass(std::span<const int32_t> tokens, uint32_t position);
  const float* run_head(uint32_t first, uint32_t rows);
  uint32_t pass_rows(size_t left) const;
  void check_fits(size_t tokens, uint32_t position) const;

  const ModelDesc& desc_;
  const PackedModel& pack_;
  DecoderOptions options_;
  Life life_;
  Qualification qualification_;
  std::vector<std::unique_ptr<RopeTable>> ropes_;  // of ModelDesc::rope, then of further_ropes
  StatePlan plan_;
  Reservation kv_;                   // all state, as plan_ lays it out
  uint32_t written_ = 0;             // rows of positions below it were stored since a pass last began at 0
  std::map<std::string, StateRows> states_;
  std::vector<AttendShape> attend_;  // one a layer
  BufferSet buffers_;
  std::array<Recorded, kNarrowRows + 1> bodies_, heads_;  // by width; the last body is the wide one
  std::unique_ptr<CpuInterpreter> cpu_;
  std::unique_ptr<CudaInterpreter> cuda_;  // null: not asked for
  StepParams params_;
  StageObserver observer_;
  std::function<void(uint32_t, uint32_t)> between_passes_;
};

}  // namespace stet
