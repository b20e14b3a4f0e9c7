// A lowered list as the kernel launches that run it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/attend/attend_cuda.h"
#include "base/cuda/launch.h"
#include "kernels/matvec/matvec_cuda.h"
#include "kernels/quantize/prepare_cuda.h"
#include "replay/cuda/expert_tables.h"

namespace stet {

// Memory of the device that launches share.
struct CudaScratch {
  const CudaStep* step = nullptr;
  uint8_t *i8 = nullptr, *f32 = nullptr;  // activations of one product
  uint8_t* planes[kActKinds] = {};        // likewise, by what they are quantised to
  std::map<Op, uint8_t*> ops;             // of the launches of one op; zero at first
  float* parts = nullptr;                 // of an attention
  uint32_t* counters = nullptr;           // of the KV heads of an attention, zero
  uint64_t part_rows = 0;                 // rows that they have room for
  uint32_t context = 0;                   // positions
  uint32_t chunks = 0;                    // of the context
};

struct CudaScratchSizes {
  uint64_t i8 = 0, f32 = 0, planes[kActKinds] = {}, part_row_bytes = 0;
  uint32_t kv_heads = 0;
  std::map<Op, uint64_t> ops;
};

// What activations, parts and ops of the lists need at most; part_row_bytes: the parts of one row over the whole context.
CudaScratchSizes cuda_scratch_sizes(const std::vector<const LoweredList*>& lists, uint32_t context);

using CudaLaunchFn = std::function<void(const CudaLaunch& on)>;

// What the launches of all stages refer to.
struct CudaPlaces {
  const Twins& twins;
  const ExpertTables& experts;
  const CudaScratch& scratch;
};

// The kernels of one stage, in order.
std::vector<CudaLaunchFn> stage_launches(const LoweredList& list, const Stage& stage, const CudaPlaces& places);

}  // namespace stet
