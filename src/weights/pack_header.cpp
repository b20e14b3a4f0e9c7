// The header of a pack file: grammar in weights/pack_file.h.
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/visible_text.h"
#include "weights/pack_file.h"

namespace stet {
namespace {

constexpr std::string_view kMagic = "STETPACK";
constexpr uint64_t kPage = 4096;
constexpr uint64_t kFixedBytes = 8 + 4 + 4 + 4 * 8 + 4 + 4 + 64;
constexpr uint64_t kTensorBytes = 6 * 4 + 3 * 8 + 64;  // without its name
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxPackNameBytes = 1 << 16;

uint64_t round_to_page(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

uint64_t header_bytes(const PackHeader& header) {
  uint64_t bytes = kFixedBytes + 4 + header.label.size() + 8;
  for (const PackTensor& t : header.plan.tensors) bytes += kTensorBytes + t.name.size();
  return bytes;
}

class Writer {
 public:
  template <typename T>
  Writer& number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
    return *this;
  }
  Writer& u32(uint32_t value) { return number(value); }
  Writer& u64(uint64_t value) { return number(value); }
  Writer& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  Writer& text(std::string_view bytes) { return u32(static_cast<uint32_t>(bytes.size())).raw(bytes); }
  std::string& out() { return out_; }

 private:
  std::string out_;
};

// Takes values from the front of the header's bytes; throws when they end.
class Reader {
 public:
  Reader(const std::string& file, std::string_view bytes) : file_(file), bytes_(bytes) {}

  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  std::string_view raw(uint64_t bytes) {
    if (bytes > bytes_.size()) fail_damaged("it ends inside its table");
    const std::string_view out = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return out;
  }
  std::string text() {
    const uint32_t bytes = u32();
    if (bytes > kMaxPackNameBytes) fail_damaged("a name is too long");
    return std::string(raw(bytes));
  }
  uint64_t left() const { return bytes_.size(); }
  [[noreturn]] void fail_damaged(std::string_view what) const { fail(Code::kInput, "{}: damaged: {}", file_, what); }
  void require(bool condition, std::string_view what) const {
    if (!condition) fail_damaged(what);
  }

 private:
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, raw(sizeof(T)).data(), sizeof(T));
    return value;
  }

  const std::string& file_;
  std::string_view bytes_;
};

Format read_format(Reader& reader) {
  const std::optional<Format> format = format_from_number(reader.u32());
  if (!format) reader.fail_damaged("a tensor has an unknown format");
  return *format;
}

// The next tensor of the table, which must lie where a plan puts it.
PackTensor read_tensor(Reader& reader, uint64_t& data_bytes) {
  PackTensor tensor;
  tensor.name = reader.text();
  const uint32_t is_vector = reader.u32();
  reader.require(is_vector <= 1, "a tensor is neither a vector nor a matrix");
  tensor.is_vector = is_vector == 1;
  tensor.source_format = read_format(reader);
  tensor.format = read_format(reader);
  tensor.rows = reader.u32();
  tensor.cols = reader.u32();
  const uint64_t offset = reader.u64(), bytes = reader.u64();
  tensor.checksum = reader.u64();
  tensor.source_sha256 = reader.raw(64);
  reader.require(is_pack_key(tensor.source_sha256), "a digest is not hexadecimal");
  if (!place_tensor(tensor, data_bytes) || tensor.offset != offset || tensor.bytes != bytes)
    reader.fail_damaged(
        fmt::format("tensor '{}' does not have the size or place of its shape", visible_text(tensor.name)));
  return tensor;
}

// The header's bytes, between magic and checksum consistent with the file's size.
std::string read_header_bytes(const MappedFile& file) {
  char start[24];
  if (file.size() < kFixedBytes + 12) fail(Code::kInput, "{}: damaged: only {} bytes", file.path(), file.size());
  file.read(0, std::as_writable_bytes(std::span(start)));
  if (std::string_view(start, 8) != kMagic)
    fail(Code::kInput, "{}: damaged: it does not begin as packs do", file.path());
  uint32_t version, layout;
  uint64_t bytes;
  std::memcpy(&version, start + 8, 4);
  std::memcpy(&layout, start + 12, 4);
  std::memcpy(&bytes, start + 16, 8);
  if (version != kPackVersion || layout != kPackLayout)
    fail(Code::kInput, "{}: stale: version {} of layout {}, and this program makes version {} of layout {}",
         file.path(), version, layout, kPackVersion, kPackLayout);
  if (bytes < kFixedBytes + 12 || bytes > file.size() || bytes > kMaxHeaderBytes)
    fail(Code::kInput, "{}: damaged or truncated: a header of {} bytes in {}", file.path(), bytes, file.size());
  std::string header(bytes, '\0');
  file.read(0, std::as_writable_bytes(std::span(header)));
  uint64_t checksum;
  std::memcpy(&checksum, header.data() + bytes - 8, 8);
  if (checksum != xxh3(header.data(), bytes - 8))
    fail(Code::kInput, "{}: damaged: its header does not match its checksum", file.path());
  header.resize(bytes - 8);
  return header;
}

}  // namespace

void place_pack_data(PackHeader& header) {
  header.data_start = round_to_page(header_bytes(header));
  header.file_bytes = round_to_page(header.data_start + header.plan.data_bytes + kPackSlackBytes);
}

std::string encode_pack_header(const PackHeader& header) {
  Writer writer;
  writer.raw(kMagic).u32(kPackVersion).u32(kPackLayout).u64(header_bytes(header)).u64(header.file_bytes);
  writer.u64(header.data_start).u64(header.plan.data_bytes).u32(header.plan.dequantize ? 1 : 0);
  writer.u32(static_cast<uint32_t>(header.plan.tensors.size())).raw(header.key).text(header.label);
  for (const PackTensor& t : header.plan.tensors) {
    writer.text(t.name).u32(t.is_vector ? 1 : 0).u32(traits(t.source_format).ggml_type).u32(traits(t.format).ggml_type);
    writer.u32(t.rows).u32(t.cols).u64(t.offset).u64(t.bytes).u64(t.checksum).raw(t.source_sha256);
  }
  writer.u64(xxh3(writer.out().data(), writer.out().size()));
  STET_CHECK(writer.out().size() == header_bytes(header));
  return std::move(writer.out());
}

PackHeader decode_pack_header(const MappedFile& file) {
  const std::string bytes = read_header_bytes(file);
  Reader reader(file.path(), bytes);
  reader.raw(24);
  const uint64_t file_bytes = reader.u64(), data_start = reader.u64(), data_bytes = reader.u64();
  if (file_bytes != file.size())
    fail(Code::kInput, "{}: truncated or damaged: {} bytes, and it should have {}", file.path(), file.size(),
         file_bytes);
  PackHeader header;
  const uint32_t dequantize = reader.u32(), tensors = reader.u32();
  reader.require(dequantize <= 1, "an option has no meaning");
  header.plan.dequantize = dequantize == 1;
  header.key = reader.raw(64);
  header.label = reader.text();
  // Checked before it is believed: it decides how much memory is asked for.
  reader.require(tensors <= reader.left() / kTensorBytes, "it has fewer tensors than it says");
  header.plan.tensors.reserve(tensors);
  std::unordered_set<std::string_view> names;
  for (uint32_t i = 0; i < tensors; ++i) {
    header.plan.tensors.push_back(read_tensor(reader, header.plan.data_bytes));
    reader.require(names.insert(header.plan.tensors.back().name).second, "two tensors have one name");
  }
  reader.require(reader.left() == 0, "something follows its table");
  place_pack_data(header);
  reader.require(
      header.plan.data_bytes == data_bytes && header.data_start == data_start && header.file_bytes == file_bytes,
      "its sizes do not fit its table");
  reader.require(header.key == pack_key(header.plan), "its key is not that of its table");
  return header;
}

}  // namespace stet
