#include "engine/context_size.h"

#include <algorithm>

#include "base/error.h"
#include "state/decoder.h"

namespace stet {

ContextChoice choose_context(const ModelDesc& desc, KvFormat kv, uint32_t asked, const MemoryBudget& budget) {
  const uint64_t usable = budget.available_bytes / 10 * 8;
  const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const uint64_t fixed = kv_bytes(desc, kv, 0), per_chunk = kv_bytes(desc, kv, kSlots) - fixed;
  if (asked != 0) {
    const uint64_t bytes = kv_bytes(desc, kv, asked);
    if (bytes > usable)
      fail(Code::kResource, "a context of {} tokens needs {:.1f} MiB of KV cache; {:.1f} MiB may be used (80 % of what is left: {}): "
           "choose a smaller --ctx or --kv q8", asked, mib(bytes), mib(usable), budget.explain());
    return {asked, bytes, fmt::format("as asked{}", asked > desc.context ? ", beyond the trained length" : "")};
  }
  const uint64_t chunks = usable < fixed ? 0 : (usable - fixed) / per_chunk;
  if (chunks == 0)
    fail(Code::kResource, "{:.1f} MiB may be used for the KV cache (80 % of what is left: {}), which is less than {} tokens need: {:.1f} MiB",
         mib(usable), budget.explain(), kSlots, mib(fixed + per_chunk));
  const uint64_t fits = std::min<uint64_t>(chunks * kSlots, UINT32_MAX / 2);
  const uint32_t tokens = static_cast<uint32_t>(std::min<uint64_t>(fits, desc.context));
  return {tokens, kv_bytes(desc, kv, tokens), tokens == desc.context ? "the trained length" : fmt::format("80 % of {}", budget.explain())};
}

}  // namespace stet
