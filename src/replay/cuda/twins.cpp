#include "replay/cuda/twins.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "replay/cuda/spec_twins.h"

namespace stet {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kStagingBytes = 32u << 20;

// Of the plan, each once: a list is there in several lowered forms.
std::vector<const CommandList*> lists_of(const CudaPlan& plan) {
  std::vector<const CommandList*> lists;
  std::set<const CommandList*> seen;
  for (const LoweredList* lowered : plan.lists)
    if (seen.insert(lowered->list).second) lists.push_back(lowered->list);
  return lists;
}

}  // namespace

Twins::Twins(const CudaPlan& plan, CudaStream& stream) : shared_(plan.shared == nullptr ? nullptr : &plan.shared->twins()) {
  const std::vector<const CommandList*> lists = lists_of(plan);
  add_buffers(lists);
  for (const CommandList* list : lists)
    for (const Command& c : list->commands)
      each_weight(c, [this](const void* host, uint64_t bytes) { add(host, bytes, true); });
  add(plan.cache.data, plan.cache.bytes, false);
  for (const HostTable& rope : plan.ropes) add(rope.range.data, rope.range.bytes, false);
  allocate(plan.device);
  send(plan, stream);
}

void Twins::add(const void* host, uint64_t bytes, bool sent) {
  if (host == nullptr || bytes == 0) return;
  const auto* begin = static_cast<const uint8_t*>(host);
  if (const Range* there = shared_ == nullptr ? nullptr : shared_->range_of(begin)) {
    STET_CHECK(begin + bytes <= there->host + there->bytes);
    return;
  }
  const auto [it, fresh] = ranges_.try_emplace(begin, Range{begin, bytes, total_, sent});
  if (!fresh) {
    STET_CHECK(it->second.bytes == bytes && it->second.sent == sent);
    return;
  }
  total_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A head list names buffers of its own, which have fewer rows than those of passes, and some of these.
void Twins::add_buffers(const std::vector<const CommandList*>& lists) {
  std::map<const Buffer*, uint32_t> rows;
  for (const CommandList* list : lists)
    for (const Command& c : list->commands)
      for (const Buffer* buffer : {c.in, c.in2, c.in3, c.out})
        if (buffer != nullptr) rows[buffer] = std::max(rows[buffer], list->rows == RowSet::head ? kNarrowRows : kWideRows);
  for (const auto& [buffer, n] : rows) add(buffer->data, uint64_t{buffer->width} * n * sizeof(float), false);
}

void Twins::allocate(const CudaDeviceInfo& device) {
  const uint64_t free = cuda_free_bytes(device);
  if (total_ > free)
    fail(Code::kResource,
         "the model needs {} bytes on {}, weights, cache and buffers together, and {} are free: use a smaller --ctx, "
         "a smaller --kv, or --device cpu",
         total_, device.name, free);
  memory_ = CudaMemory(total_, "the model");
}

// Through two pinned buffers, so that one fills while the other is on its way.
void Twins::send(const CudaPlan& plan, CudaStream& stream) const {
  uint64_t all = 0, done = 0;
  for (const auto& [host, range] : ranges_) all += range.sent ? range.bytes : 0;
  PinnedMemory staging(2 * kStagingBytes);
  bool second = false;
  for (const auto& [host, range] : ranges_) {
    if (!range.sent) continue;
    for (uint64_t at = 0; at < range.bytes; at += kStagingBytes) {
      const uint64_t bytes = std::min(kStagingBytes, range.bytes - at);
      uint8_t* buffer = staging.data() + (second ? kStagingBytes : 0);
      std::memcpy(buffer, host + at, bytes);
      stream.wait();  // for the other buffer's copy
      stream.to_device(memory_.data() + range.offset + at, buffer, bytes);
      second = !second;
      done += bytes;
      if (plan.progress) plan.progress("sending the weights to the GPU", done, all);
    }
  }
  stream.wait();
}

const Twins::Range* Twins::range_of(const uint8_t* host) const {
  const auto it = ranges_.upper_bound(host);
  if (it == ranges_.begin()) return nullptr;
  const Range& range = std::prev(it)->second;
  return host < range.host + range.bytes ? &range : nullptr;
}

const uint8_t* Twins::find(const void* host) const {
  if (host == nullptr) return nullptr;
  const auto* p = static_cast<const uint8_t*>(host);
  for (const Twins* twins : {shared_, this})
    if (const Range* range = twins == nullptr ? nullptr : twins->range_of(p))
      return twins->memory_.data() + range->offset + (p - range->host);
  fail(Code::kInternal, "internal error: a list of the GPU names memory that has no twin there");
}

}  // namespace stet
