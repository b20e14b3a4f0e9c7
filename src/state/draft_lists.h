// The lists of a checkpoint's own draft (models/draft_desc.h): recorded over buffers of their own, run by an
// interpreter of their own where the decoder runs whose rows they read: in its pool, or on its CUDA device, behind what
// the decoder does there. They write none of these rows.
#pragma once

#include <map>

#include "models/draft_desc.h"
#include "state/decoder.h"

namespace stet {

class DraftLists {
 public:
  struct Ask {
    DraftPass pass;
    uint32_t width;  // rows at most
    RowSet rows;
  };
  // Records the lists of target.desc().draft, and compares their kernels of the processor with the reference
  // (Qualify::later: as compare). The target outlives the lists. Throws Error(kDiverged) at a difference,
  // Error(kResource) where a CUDA device has no room for what the draft needs beside the target.
  DraftLists(Decoder& target, const std::vector<Ask>& lists, const ArmOptions& arm);

  // The first list of that pass that is wide enough.
  void run(DraftPass pass, const StepParams& params);
  // Rows of the positions below can be read, and those of its own be stored.
  void reach(uint32_t positions);
  // Of a buffer that a list has written.
  const float* row(const char* buffer, uint32_t width, uint32_t row);

  const DraftDesc& desc() const { return desc_; }
  Decoder& target() const { return target_; }
  uint64_t compared_rows() const { return compared_rows_; }

 private:
  struct Recorded {
    DraftPass pass;
    CommandList list;
    LoweredList fused, eager;
    LoweredList cuda;  // fused for a CUDA device, where there is one
  };
  void record(const std::vector<Ask>& lists);
  void make_cuda(const ArmOptions& arm);
  Interpreter& interpreter() const;
  void place_states(std::map<std::string, StateRows>& states);
  std::string key() const;
  void qualify(const ArmOptions& arm);

  Decoder& target_;
  const DraftDesc& desc_;
  StatePlan own_plan_;
  Reservation own_;  // the draft's states, as own_plan_ lays them out
  BufferSet buffers_;
  std::vector<std::unique_ptr<Recorded>> lists_;
  std::unique_ptr<CpuInterpreter> cpu_;
  std::unique_ptr<CudaInterpreter> cuda_;  // null: the target runs on the processor
  uint64_t compared_rows_ = 0;
};

}  // namespace stet
