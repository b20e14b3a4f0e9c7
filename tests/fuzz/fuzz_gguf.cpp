// Feeds arbitrary bytes to the GGUF reader and reads every tensor that it accepts. Anything but a clean refusal is a
// bug.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/visible_text.h"
#include "weights/gguf.h"
#include "weights/gguf_writer.h"

namespace {

// An accepted file must be readable to its last byte, and its metadata and tensor table must survive being written
// again.
void use(std::span<const std::byte> bytes) {
  const auto file = stet::GgufFile::parse(bytes, "fuzz");
  for (const auto& [key, value] : file->metadata()) (void)stet::visible_text(key);
  (void)file->identity();
  std::vector<std::byte> data;
  for (const stet::TensorInfo& t : file->tensors()) {
    data.resize(t.bytes);
    file->read(t, 0, data);
    file->read(t, t.bytes / 2, std::span(data).first(t.bytes - t.bytes / 2));
    file->release(t);
  }
  const std::vector<std::byte> header = stet::gguf_header(file->metadata(), file->tensors());
  uint64_t data_bytes = 0;
  for (const stet::TensorInfo& t : file->tensors()) data_bytes += t.bytes + file->files()[0].alignment;
  if (data_bytes > (uint64_t{1} << 24)) return;
  std::vector<std::byte> copy = header;
  copy.resize(header.size() + data_bytes);
  const auto again = stet::GgufFile::parse(copy, "fuzz");
  if (stet::gguf_header(again->metadata(), again->tensors()) != header) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    use(std::as_bytes(std::span(data, size)));
  } catch (const stet::Error& e) {
    // The file's fault, never ours.
    if (e.code() != stet::Code::kInput && e.code() != stet::Code::kUnsupported) std::abort();
  }
  return 0;
}
