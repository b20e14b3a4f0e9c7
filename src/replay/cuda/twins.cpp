#include "replay/cuda/twins.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace stet {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kStagingBytes = 32u << 20;

uint64_t buffer_bytes(const Buffer& buffer) { return uint64_t{buffer.width} * kWideRows * sizeof(float); }

}  // namespace

Twins::Twins(const CudaPlan& plan, CudaStream& stream) {
  for (const LoweredList* list : plan.lists) add_list(*list->list);
  add(plan.cache.data, plan.cache.bytes, false);
  add(plan.rope.data, plan.rope.bytes, false);
  allocate(plan.device);
  send(plan, stream);
}

void Twins::add(const void* host, uint64_t bytes, bool sent) {
  if (host == nullptr || bytes == 0) return;
  const auto* begin = static_cast<const uint8_t*>(host);
  const auto [it, fresh] = ranges_.try_emplace(begin, Range{begin, bytes, total_, sent});
  if (!fresh) {
    STET_CHECK(it->second.bytes == bytes && it->second.sent == sent);
    return;
  }
  total_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void Twins::add_list(const CommandList& list) {
  for (const Command& c : list.commands) {
    // Head lists have fewer rows than passes, and share buffers with them.
    for (const Buffer* buffer : {c.in, c.in2, c.in3, c.out})
      if (buffer != nullptr)
        add(buffer->data,
            buffer->name == "logits" ? uint64_t{buffer->width} * kNarrowRows * sizeof(float) : buffer_bytes(*buffer),
            false);
    if (c.matrix.data != nullptr) add(c.matrix.data, c.matrix.bytes(), true);
    if (c.weight != nullptr) add(c.weight, uint64_t{c.in->width} * sizeof(float), true);
  }
}

void Twins::allocate(const CudaDeviceInfo& device) {
  const uint64_t free = cuda_free_bytes(device);
  if (total_ > free)
    fail(Code::kResource,
         "the model needs {} bytes on {}, weights, cache and buffers together, and {} are free: use a smaller --ctx, "
         "--kv q8, or --device cpu",
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

const uint8_t* Twins::find(const void* host) const {
  if (host == nullptr) return nullptr;
  const auto* p = static_cast<const uint8_t*>(host);
  auto it = ranges_.upper_bound(p);
  STET_CHECK(it != ranges_.begin());
  const Range& range = (--it)->second;
  STET_CHECK(p < range.host + range.bytes);
  return memory_.data() + range.offset + (p - range.host);
}

}  // namespace stet
