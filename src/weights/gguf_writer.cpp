#include "weights/gguf_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "weights/gguf_types.h"

namespace stet {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

uint64_t aligned(uint64_t position, uint64_t alignment) { return (position + alignment - 1) / alignment * alignment; }

uint64_t alignment_of(const Metadata& metadata) {
  const auto it = metadata.find("general.alignment");
  return it == metadata.end() ? 32 : std::get<uint64_t>(it->second.value);
}

class HeaderWriter {
 public:
  template <typename T>
  void number(T value) {
    const auto* data = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), data, data + sizeof(T));
  }

  void string(std::string_view text) {
    number<uint64_t>(text.size());
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), data, data + text.size());
  }

  void value(const MetaValue& v) {
    number(type_of({&v, 1}));
    payload(v, type_of({&v, 1}));
  }

  void pad(uint64_t alignment) { bytes_.resize(aligned(bytes_.size(), alignment)); }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  // The narrowest type that holds all of these, which are of one kind.
  static GgufType type_of(std::span<const MetaValue> values) {
    if (values.empty()) return GgufType::kU32;
    const auto all = [&](auto kind, auto fits) {
      using T = decltype(kind);
      return std::all_of(values.begin(), values.end(), [&](const MetaValue& v) { return fits(std::get<T>(v.value)); });
    };
    switch (values[0].value.index()) {
      case 0:
        return all(uint64_t{}, [](uint64_t x) { return x <= 0xffffffffu; }) ? GgufType::kU32 : GgufType::kU64;
      case 1:
        return all(int64_t{}, [](int64_t x) { return x == static_cast<int32_t>(x); }) ? GgufType::kI32 : GgufType::kI64;
      case 2:
        return all(double{}, fits_f32) ? GgufType::kF32 : GgufType::kF64;
      case 3:
        return GgufType::kBool;
      case 4:
        return GgufType::kString;
      default:
        return GgufType::kArray;
    }
  }

  static bool fits_f32(double x) {
    const bool finite = x - x == 0.0;
    return !finite || (x >= -std::numeric_limits<float>::max() && x <= std::numeric_limits<float>::max() &&
                       static_cast<double>(static_cast<float>(x)) == x);
  }

  void payload(const MetaValue& v, GgufType type) {
    switch (type) {
      case GgufType::kU32:
        return number(static_cast<uint32_t>(std::get<uint64_t>(v.value)));
      case GgufType::kU64:
        return number(std::get<uint64_t>(v.value));
      case GgufType::kI32:
        return number(static_cast<int32_t>(std::get<int64_t>(v.value)));
      case GgufType::kI64:
        return number(std::get<int64_t>(v.value));
      case GgufType::kF32:
        return number(static_cast<float>(std::get<double>(v.value)));
      case GgufType::kF64:
        return number(std::get<double>(v.value));
      case GgufType::kBool:
        return number(static_cast<uint8_t>(std::get<bool>(v.value)));
      case GgufType::kString:
        return string(std::get<std::string>(v.value));
      default:
        return array(v);
    }
  }

  void array(const MetaValue& v) {
    if (const auto* strings = std::get_if<std::shared_ptr<const std::vector<std::string>>>(&v.value)) {
      number(GgufType::kString);
      number<uint64_t>((*strings)->size());
      for (const std::string& text : **strings) string(text);
      return;
    }
    const MetaArray& values = *std::get<std::shared_ptr<const MetaArray>>(v.value);
    const GgufType type = type_of(values);
    number(type);
    number<uint64_t>(values.size());
    for (const MetaValue& element : values) payload(element, type);
  }

  std::vector<std::byte> bytes_;
};

void check_tensor(const TensorInfo& t) {
  const FormatTraits& format = traits(t.format);
  if (format.ggml_type >= kNotInGguf)
    fail(Code::kUsage, "tensor '{}' cannot be written as {}: GGUF has no such type", t.name, format.name);
  if (t.name.empty() || t.name.size() > 64)
    fail(Code::kUsage, "tensor '{}' cannot be written: its name has {} bytes, and GGUF allows 1 to 64", t.name,
         t.name.size());
  if (t.shape.empty() || t.shape.size() > 4)
    fail(Code::kUsage, "tensor '{}' cannot be written: it has {} dimensions, and GGUF allows 1 to 4", t.name,
         t.shape.size());
  if (t.shape[0] % format.block_elements != 0)
    fail(Code::kUsage, "tensor '{}' cannot be written as {}: its rows of {} elements are not whole blocks of {}",
         t.name, format.name, t.shape[0], format.block_elements);
  STET_CHECK(t.bytes == t.elements() / format.block_elements * format.block_bytes && t.bytes > 0);
}

}  // namespace

std::vector<std::byte> gguf_header(const Metadata& metadata, const std::vector<TensorInfo>& tensors) {
  HeaderWriter out;
  out.number<uint32_t>(0x46554747);  // "GGUF"
  out.number<uint32_t>(3);
  out.number<uint64_t>(tensors.size());
  out.number<uint64_t>(metadata.size());
  for (const auto& [key, value] : metadata) {
    out.string(key);
    out.value(value);
  }
  const uint64_t alignment = alignment_of(metadata);
  uint64_t offset = 0;
  for (const TensorInfo& t : tensors) {
    check_tensor(t);
    out.string(t.name);
    out.number(static_cast<uint32_t>(t.shape.size()));
    for (const uint64_t n : t.shape) out.number(n);
    out.number(traits(t.format).ggml_type);
    out.number(offset);
    offset = aligned(offset + t.bytes, alignment);
  }
  out.pad(alignment);
  return out.take();
}

uint64_t write_gguf(const TensorSource& source, const std::string& path, const WriteGgufOptions& options) {
  const std::vector<std::byte> header = gguf_header(source.metadata(), source.tensors());
  const uint64_t alignment = alignment_of(source.metadata());
  uint64_t total = header.size();
  for (const TensorInfo& t : source.tensors()) total += aligned(t.bytes, alignment);
  AtomicFile file(path, {.expected_bytes = total, .overwrite = options.overwrite});
  file.write(header);
  std::vector<std::byte> chunk;
  for (const TensorInfo& t : source.tensors()) {
    for (uint64_t done = 0; done < t.bytes; done += chunk.size()) {
      chunk.resize(std::min(kChunkBytes, t.bytes - done));
      source.read(t, done, chunk);
      file.write(chunk);
      if (options.progress) options.progress(file.written(), total);
    }
    const std::vector<std::byte> padding(aligned(t.bytes, alignment) - t.bytes);
    file.write(padding);
    source.release(t);
  }
  file.commit();
  return total;
}

}  // namespace stet
