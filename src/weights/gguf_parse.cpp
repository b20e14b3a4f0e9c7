#include "weights/gguf_parse.h"

#include <unordered_set>

#include "weights/gguf_cursor.h"
#include "weights/gguf_types.h"

namespace stet {
namespace {

// Bounds no sound file comes near; they keep a damaged one from asking for more memory than it could fill.
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxStringBytes = uint64_t{1} << 26;
constexpr uint64_t kMaxArrayValues = uint64_t{1} << 24;  // of all arrays together
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr int kMaxNesting = 4;
constexpr uint64_t kMaxNameBytes = 64;
constexpr uint64_t kSmallestValueBytes = 8 + 1 + 4 + 1;           // key of one byte, type, payload
constexpr uint64_t kSmallestTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name of one byte, one dimension

// The first bytes of what people hand over by mistake.
struct ForeignStart {
  std::string_view bytes;
  std::string_view what;
};
constexpr ForeignStart kForeign[] = {
    {"lmgg", "a GGML file, the format before GGUF; convert it to GGUF"},
    {"fmgg", "a GGMF file, a format before GGUF; convert it to GGUF"},
    {"tjgg", "a GGJT file, the format before GGUF; convert it to GGUF"},
    {"algg", "a GGLA adapter, not a model"},
    {"PK\x03\x04", "a zip archive (a wheel or a PyTorch checkpoint); unpack or convert it to GGUF"},
    {"vers", "a text file, perhaps a Git LFS pointer; fetch the file itself"},
    {"<!DO", "a web page; download the file itself"},
    {"<htm", "a web page; download the file itself"},
};

void check_magic(GgufCursor& in) {
  if (in.left() == 0) fail(Code::kInput, "{}: is empty; fetch it again", in.file());
  if (in.left() < 4) fail(Code::kInput, "{}: not a GGUF file: it has only {} bytes", in.file(), in.left());
  char magic[4];
  const uint32_t word = in.number<uint32_t>("the magic");
  std::memcpy(magic, &word, 4);
  const std::string_view start(magic, 4);
  if (start == "GGUF") return;
  if (start == "FUGG") fail(Code::kUnsupported, "{}: a big-endian GGUF file; stet reads little-endian ones", in.file());
  for (const ForeignStart& f : kForeign)
    if (start == f.bytes) fail(Code::kInput, "{}: not a GGUF file: it looks like {}", in.file(), f.what);
  fail(Code::kInput, "{}: not a GGUF file: it starts with '{}' instead of 'GGUF'", in.file(), visible_text(start));
}

uint32_t read_version(GgufCursor& in) {
  const uint32_t version = in.number<uint32_t>("the version");
  if (version == 2 || version == 3) return version;
  if (version == 1)
    fail(Code::kUnsupported, "{}: GGUF version 1; stet reads versions 2 and 3: convert the model again", in.file());
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3)
    fail(Code::kUnsupported, "{}: a big-endian GGUF file (version {}); stet reads little-endian ones", in.file(),
         swapped);
  fail(Code::kUnsupported, "{}: GGUF version {}; stet reads versions 2 and 3", in.file(), version);
}

uint64_t read_count(GgufCursor& in, uint64_t smallest_bytes, std::string_view what) {
  const uint64_t count = in.number<uint64_t>(what);
  if (count > in.left() / smallest_bytes)
    fail(Code::kInput, "{}: truncated or damaged: it declares {} {}, which do not fit into the {} bytes that follow",
         in.file(), count, what, in.left());
  return count;
}

// Reads metadata payloads.
class ValueReader {
 public:
  explicit ValueReader(GgufCursor& in) : in_(in) {}

  // REQUIRES: key outlives the call.
  MetaValue read(std::string_view key) {
    key_ = key;
    return read_payload(read_type(), 0);
  }

 private:
  GgufType read_type() {
    const uint32_t type = in_.number<uint32_t>("a value type");
    if (type > static_cast<uint32_t>(GgufType::kF64))
      fail(Code::kInput, "{}: damaged: key '{}' has the unknown value type {}", in_.file(), shown_name(key_), type);
    return static_cast<GgufType>(type);
  }

  template <typename Stored, typename Wide>
  MetaValue number() {
    return {static_cast<Wide>(in_.number<Stored>("a metadata value"))};
  }

  MetaValue boolean() {
    const uint8_t value = in_.number<uint8_t>("a metadata value");
    if (value > 1)
      fail(Code::kInput, "{}: damaged: key '{}' holds the boolean {}; 0 and 1 are sound", in_.file(), shown_name(key_),
           value);
    return {value == 1};
  }

  MetaValue read_payload(GgufType type, int depth) {
    switch (type) {
      case GgufType::kU8:
        return number<uint8_t, uint64_t>();
      case GgufType::kI8:
        return number<int8_t, int64_t>();
      case GgufType::kU16:
        return number<uint16_t, uint64_t>();
      case GgufType::kI16:
        return number<int16_t, int64_t>();
      case GgufType::kU32:
        return number<uint32_t, uint64_t>();
      case GgufType::kI32:
        return number<int32_t, int64_t>();
      case GgufType::kU64:
        return number<uint64_t, uint64_t>();
      case GgufType::kI64:
        return number<int64_t, int64_t>();
      case GgufType::kF32:
        return number<float, double>();
      case GgufType::kF64:
        return number<double, double>();
      case GgufType::kBool:
        return boolean();
      case GgufType::kString:
        return {in_.string(kMaxStringBytes, "a metadata string")};
      case GgufType::kArray:
        return read_array(depth + 1);
    }
    STET_CHECK(false);
  }

  static uint64_t smallest_bytes(GgufType type) {
    switch (type) {
      case GgufType::kU8:
      case GgufType::kI8:
      case GgufType::kBool:
        return 1;
      case GgufType::kU16:
      case GgufType::kI16:
        return 2;
      case GgufType::kU32:
      case GgufType::kI32:
      case GgufType::kF32:
        return 4;
      case GgufType::kArray:
        return 12;
      default:
        return 8;
    }
  }

  MetaValue read_array(int depth) {
    if (depth > kMaxNesting)
      fail(Code::kInput, "{}: damaged: key '{}' nests arrays more than {} deep", in_.file(), shown_name(key_), kMaxNesting);
    const GgufType type = read_type();
    const uint64_t n = read_count(in_, smallest_bytes(type), "array values");
    values_ += n;
    if (values_ > kMaxArrayValues)
      fail(Code::kInput, "{}: damaged: with key '{}' the metadata arrays hold more than {} values", in_.file(),
           shown_name(key_), kMaxArrayValues);
    if (type == GgufType::kString) {
      auto strings = std::make_shared<std::vector<std::string>>();
      strings->reserve(n);
      for (uint64_t i = 0; i < n; ++i) strings->push_back(in_.string(kMaxStringBytes, "a string of an array"));
      return {std::shared_ptr<const std::vector<std::string>>(std::move(strings))};
    }
    auto array = std::make_shared<MetaArray>();
    array->reserve(n);
    for (uint64_t i = 0; i < n; ++i) array->push_back(read_payload(type, depth));
    return {std::shared_ptr<const MetaArray>(std::move(array))};
  }

  GgufCursor& in_;
  std::string_view key_;
  uint64_t values_ = 0;
};

Metadata read_metadata(GgufCursor& in, uint64_t count) {
  Metadata metadata;
  ValueReader values(in);
  for (uint64_t i = 0; i < count; ++i) {
    std::string key = in.string(kMaxKeyBytes, "a metadata key");
    if (key.empty()) fail(Code::kInput, "{}: damaged: metadata key {} of {} is empty", in.file(), i + 1, count);
    MetaValue value = values.read(key);
    const auto [at, fresh] = metadata.emplace(std::move(key), std::move(value));
    if (!fresh) fail(Code::kInput, "{}: damaged: metadata key '{}' appears twice", in.file(), shown_name(at->first));
  }
  return metadata;
}

uint64_t alignment_of(const Metadata& metadata, const std::string& file) {
  const auto it = metadata.find("general.alignment");
  if (it == metadata.end()) return 32;
  const uint64_t* value = std::get_if<uint64_t>(&it->second.value);
  if (value == nullptr) fail(Code::kInput, "{}: damaged: general.alignment is not an unsigned integer", file);
  if (*value < 8 || *value > kMaxAlignment || (*value & (*value - 1)) != 0)
    fail(Code::kInput, "{}: damaged: general.alignment is {}; powers of two from 8 to {} are sound", file, *value,
         kMaxAlignment);
  return *value;
}

void read_shape(GgufCursor& in, GgufTensor& tensor) {
  const uint32_t dimensions = in.number<uint32_t>("the dimensions of a tensor");
  if (dimensions < 1 || dimensions > 4)
    fail(Code::kInput, "{}: damaged: tensor '{}' has {} dimensions; 1 to 4 are sound", in.file(), shown_name(tensor.name),
         dimensions);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint64_t n = in.number<uint64_t>("a dimension of a tensor");
    if (n == 0) fail(Code::kInput, "{}: damaged: dimension {} of tensor '{}' is 0", in.file(), i, shown_name(tensor.name));
    if (__builtin_mul_overflow(elements, n, &elements) || elements > uint64_t{1} << 48)
      fail(Code::kInput, "{}: damaged: tensor '{}' has more than 2^48 elements", in.file(), shown_name(tensor.name));
    tensor.shape.push_back(n);
  }
}

GgufTensor read_tensor(GgufCursor& in) {
  GgufTensor tensor;
  tensor.name = in.string(kMaxNameBytes, "a tensor name");
  if (tensor.name.empty()) fail(Code::kInput, "{}: damaged: a tensor at byte {} has no name", in.file(), in.position());
  read_shape(in, tensor);
  tensor.ggml_type = in.number<uint32_t>("a tensor type");
  tensor.format = format_from_ggml(tensor.ggml_type);
  tensor.offset = in.number<uint64_t>("a tensor offset");
  if (const std::optional<GgmlType> type = find_ggml_type(tensor.ggml_type)) {
    uint64_t elements = 1;
    for (const uint64_t n : tensor.shape) elements *= n;
    if (tensor.shape[0] % type->block_elements != 0)
      fail(Code::kInput, "{}: damaged: tensor '{}' has rows of {} elements, and {} has blocks of {}", in.file(),
           shown_name(tensor.name), tensor.shape[0], type->name, type->block_elements);
    tensor.bytes = elements / type->block_elements * type->block_bytes;
  }
  return tensor;
}

// Turns offsets into positions in the file and checks where the data lie.
void place_tensors(GgufHeader& header, const std::string& file, uint64_t file_bytes) {
  std::vector<const GgufTensor*> order;
  for (GgufTensor& t : header.tensors) {
    if (t.offset % header.alignment != 0)
      fail(Code::kInput, "{}: damaged: the data of tensor '{}' start at offset {}, which is no multiple of {}", file,
           shown_name(t.name), t.offset, header.alignment);
    uint64_t end = 0;
    if (__builtin_add_overflow(header.data_start, t.offset, &t.offset) ||
        __builtin_add_overflow(t.offset, t.bytes, &end) || end > file_bytes)
      fail(Code::kInput,
           "{}: truncated or damaged: tensor '{}' needs {} bytes at byte {}, and the file has {}; fetch it again", file,
           shown_name(t.name), t.bytes, t.offset, file_bytes);
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor &a = *order[i - 1], &b = *order[i];
    if (b.offset < a.offset + std::max<uint64_t>(a.bytes, 1))
      fail(Code::kInput, "{}: damaged: tensors '{}' and '{}' overlap at byte {}", file, shown_name(a.name), shown_name(b.name),
           b.offset);
  }
}

}  // namespace

GgufHeader parse_gguf(const ByteInput& input) {
  GgufCursor in(input);
  check_magic(in);
  GgufHeader header;
  header.version = read_version(in);
  const uint64_t tensors = read_count(in, kSmallestTensorBytes, "tensors");
  const uint64_t values = read_count(in, kSmallestValueBytes, "metadata values");
  header.metadata = read_metadata(in, values);
  header.alignment = alignment_of(header.metadata, input.name);
  std::unordered_set<std::string_view> names;
  header.tensors.reserve(tensors);
  for (uint64_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(read_tensor(in));
    if (!names.insert(header.tensors.back().name).second)
      fail(Code::kInput, "{}: damaged: tensor '{}' appears twice", input.name, shown_name(header.tensors.back().name));
  }
  header.data_start = (in.position() + header.alignment - 1) / header.alignment * header.alignment;
  place_tensors(header, input.name, input.size);
  return header;
}

}  // namespace stet
