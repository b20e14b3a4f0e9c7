// Feeds arbitrary bytes to the safetensors reader. An accepted file's tensors cover its data; anything but that or a
// clean refusal is a bug.
#include <cstdlib>

#include "base/error.h"
#include "weights/hf/safetensors.h"

namespace {

void use_safetensors(std::span<const std::byte> bytes) {
  const auto header = stet::parse_safetensors(stet::ByteInput::of(bytes, "fuzz"));
  uint64_t data = 0;
  for (const stet::SafetensorsTensor& t : header.tensors) {
    if (t.offset > bytes.size() || t.bytes > bytes.size() - t.offset) std::abort();
    data += t.bytes;
  }
  if (!header.tensors.empty() && header.tensors.front().offset + data != bytes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    use_safetensors(std::as_bytes(std::span(data, size)));
  } catch (const stet::Error& e) {
    // The file's fault, never ours.
    if (e.code() != stet::Code::kInput && e.code() != stet::Code::kUnsupported) std::abort();
  }
  return 0;
}
