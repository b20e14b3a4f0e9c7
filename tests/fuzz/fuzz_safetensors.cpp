// Feeds arbitrary bytes to the safetensors reader, and what it says of codes and scales to the reader of matrices that
// consist of both. An accepted file's tensors cover its data, and a matrix reads the same in pieces; anything but that
// or a clean refusal is a bug.
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "weights/hf/safetensors.h"
#include "weights/hf/scaled_matrix.h"

namespace {

void use_scaled(std::span<const std::byte> bytes, const stet::SafetensorsTensor& codes,
                const stet::SafetensorsTensor& scales) {
  const auto input = stet::ByteInput::of(bytes, "fuzz");
  const stet::ScaledMatrix matrix({input, codes}, {input, scales});
  std::vector<std::byte> whole(matrix.bytes()), pieces(matrix.bytes());
  matrix.read(0, whole);
  for (size_t at = 0; at < pieces.size(); at += 100)
    matrix.read(at, std::span(pieces).subspan(at, std::min<size_t>(100, pieces.size() - at)));
  if (whole != pieces) std::abort();
}

void use_safetensors(std::span<const std::byte> bytes) {
  const auto header = stet::parse_safetensors(stet::ByteInput::of(bytes, "fuzz"));
  uint64_t data = 0;
  for (const stet::SafetensorsTensor& t : header.tensors) {
    if (t.offset > bytes.size() || t.bytes > bytes.size() - t.offset) std::abort();
    data += t.bytes;
  }
  if (!header.tensors.empty() && header.tensors.front().offset + data != bytes.size()) std::abort();
  for (const stet::SafetensorsTensor& codes : header.tensors)
    for (const stet::SafetensorsTensor& scales : header.tensors)
      if (stet::hf_codes_format(codes.dtype) && stet::hf_name_of_codes(scales.name) == codes.name)
        use_scaled(bytes, codes, scales);
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
