#include "base/npy.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"

namespace stet {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr uint64_t kElementBytes = 4;
constexpr size_t kDataAlignment = 64;

// Bytes of an array, or nothing when they do not fit 63 bits.
bool array_bytes(const std::vector<uint64_t>& shape, uint64_t* bytes) {
  *bytes = kElementBytes;
  for (uint64_t extent : shape)
    if (__builtin_mul_overflow(*bytes, extent, bytes) || *bytes > INT64_MAX) return false;
  return true;
}

uint64_t checked_bytes(const std::vector<uint64_t>& shape) {
  uint64_t bytes = 0;
  STET_CHECK(array_bytes(shape, &bytes));
  return bytes;
}

std::string header_of(NpyType type, const std::vector<uint64_t>& shape) {
  std::string extents;
  for (uint64_t extent : shape) extents += fmt::format("{}, ", extent);
  if (shape.size() > 1) extents.resize(extents.size() - 2);  // Python writes (2, 3) but (2,)
  if (shape.size() == 1) extents.resize(extents.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   type == NpyType::kF32 ? "<f4" : "<i4", extents);
  const size_t before = kMagic.size() + 4;
  while ((before + header.size() + 1) % kDataAlignment != 0) header += ' ';
  header += '\n';
  STET_CHECK(header.size() <= UINT16_MAX);
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header;
}

// Reads the dictionary of a header. It is a Python literal; what NumPy writes of that are strings, True, False and
// tuples.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        descr = quoted();
      } else if (key == "fortran_order") {
        fortran_order = boolean();
      } else if (key == "shape") {
        shape = tuple();
        has_shape = true;
      } else {
        damaged(fmt::format("an unknown key \"{}\"", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty()) damaged("text behind the header's dictionary");
    if (descr.empty() || !has_shape) damaged("a header without descr or shape");
  }

  std::string descr;
  bool fortran_order = false;
  bool has_shape = false;
  std::vector<uint64_t> shape;

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    fail(Code::kInput, "{}: damaged .npy file: {}", path_, what);
  }
  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) damaged(fmt::format("its header lacks a \"{}\"", c));
  }
  std::string quoted() {
    skip_space();
    const char quote = text_.empty() ? '\0' : text_[0];
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) damaged("its header lacks a string");
    const std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(0, word.size()) != word) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    damaged("fortran_order is neither True nor False");
  }
  std::vector<uint64_t> tuple() {
    std::vector<uint64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      uint64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc()) damaged("its shape holds something else than numbers");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string& path_;
  std::string_view text_;
};

// The header's text; sets *data to where the elements start.
std::string read_header(const MappedFile& file, uint64_t* data) {
  unsigned char start[12] = {};
  const uint64_t size = file.size();
  if (size < sizeof start) fail(Code::kInput, "{}: {} bytes are no .npy file", file.path(), size);
  file.read(0, std::as_writable_bytes(std::span(start)));
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0) fail(Code::kInput, "{}: not a .npy file", file.path());
  const unsigned version = start[6];
  if (version < 1 || version > 3)
    fail(Code::kUnsupported, "{}: .npy format version {}; save it with version 1", file.path(), version);
  const bool wide = version > 1;
  uint64_t bytes = start[8] | static_cast<uint64_t>(start[9]) << 8;
  if (wide) bytes |= static_cast<uint64_t>(start[10]) << 16 | static_cast<uint64_t>(start[11]) << 24;
  const uint64_t offset = wide ? 12 : 10;
  constexpr uint64_t kMaxHeaderBytes = 1 << 20;
  if (bytes > kMaxHeaderBytes || bytes > size - offset)
    fail(Code::kInput, "{}: damaged .npy file: a header of {} bytes in a file of {}", file.path(), bytes, size);
  std::string header(bytes, '\0');
  file.read(offset, std::as_writable_bytes(std::span(header)));
  *data = offset + bytes;
  return header;
}

}  // namespace

NpyWriter::NpyWriter(const std::string& path, NpyType type, const std::vector<uint64_t>& shape)
    : type_(type),
      bytes_left_(checked_bytes(shape)),
      file_(path, AtomicFile::Options{.expected_bytes = bytes_left_, .overwrite = true}) {
  const std::string header = header_of(type, shape);
  file_.write(std::as_bytes(std::span(header)));
}

void NpyWriter::write(std::span<const float> values) { append(NpyType::kF32, std::as_bytes(values)); }

void NpyWriter::write(std::span<const int32_t> values) { append(NpyType::kI32, std::as_bytes(values)); }

void NpyWriter::append(NpyType type, std::span<const std::byte> bytes) {
  STET_CHECK(type == type_ && bytes.size() <= bytes_left_);
  bytes_left_ -= bytes.size();
  file_.write(bytes);
}

void NpyWriter::commit() {
  STET_CHECK(bytes_left_ == 0);
  file_.commit();
}

NpyArray read_npy(const std::string& path) {
  const MappedFile file(path);
  uint64_t data = 0;
  const std::string header = read_header(file, &data);
  HeaderParser parser(path, header);
  parser.parse();
  if (parser.fortran_order) fail(Code::kUnsupported, "{}: Fortran order; save it in C order", path);
  if (parser.descr != "<f4" && parser.descr != "<i4")
    fail(Code::kUnsupported, "{}: elements of type \"{}\"; only <f4 and <i4 are read", path, parser.descr);
  uint64_t bytes = 0;
  if (!array_bytes(parser.shape, &bytes) || bytes != file.size() - data)
    fail(Code::kInput, "{}: damaged .npy file: shape ({}) does not match its {} bytes of data", path,
         fmt::join(parser.shape, ", "), file.size() - data);
  NpyArray array;
  array.type = parser.descr == "<f4" ? NpyType::kF32 : NpyType::kI32;
  array.shape = parser.shape;
  const uint64_t elements = bytes / kElementBytes;
  if (array.type == NpyType::kF32) {
    array.f32.resize(elements);
    file.read(data, std::as_writable_bytes(std::span(array.f32)));
  } else {
    array.i32.resize(elements);
    file.read(data, std::as_writable_bytes(std::span(array.i32)));
  }
  return array;
}

}  // namespace stet
