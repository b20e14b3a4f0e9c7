// How long a context may be: what was asked for, or what fits.
#pragma once

#include <string>

#include "models/model_desc.h"
#include "device/memory.h"
#include "kernels/attend/kv_layout.h"

namespace stet {

struct ContextChoice {
  uint32_t tokens = 0;
  uint64_t kv_bytes = 0;
  std::string why;  // for people
};

// asked 0: as many tokens as fit into 80 % of what memory and cgroup leave (the weights are loaded already), at most the trained
// length. Throws Error(kResource) with the numbers when what was asked, or a single chunk, does not fit.
ContextChoice choose_context(const ModelDesc& desc, KvFormat kv, uint32_t asked, const MemoryBudget& budget);

}  // namespace stet
