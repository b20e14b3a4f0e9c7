#include "weights/gguf.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "weights/gguf_cursor.h"
#include "weights/gguf_types.h"

namespace stet {

struct GgufFile::Part {
  ByteInput input;
  std::unique_ptr<MappedFile> file;  // null: the bytes lie in memory
  std::span<const std::byte> memory;
};

namespace {

constexpr std::string_view kExtension = ".gguf";

// NAME-00002-of-00003.gguf as {NAME, 2, 3}.
struct SplitName {
  std::string prefix;
  uint64_t number;
  uint64_t count;
};

std::optional<uint64_t> five_digits(std::string_view text) {
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return text.size() == 5 ? std::optional(value) : std::nullopt;
}

std::string split_path(const std::string& prefix, uint64_t number, uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}{}", prefix, number, count, kExtension);
}

std::optional<SplitName> parse_split_name(const std::string& path) {
  constexpr size_t kTail = std::string_view("-00001-of-00001.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kTail);
  const auto number = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(10, 5));
  if (!number || !count) return std::nullopt;
  const std::string prefix = path.substr(0, path.size() - kTail);
  if (split_path(prefix, *number, *count) != path) return std::nullopt;
  return SplitName{prefix, *number, *count};
}

// An integer of either sign. Throws when the key holds something else.
std::optional<uint64_t> find_count(const Metadata& metadata, std::string_view key, const std::string& file) {
  const auto it = metadata.find(key);
  if (it == metadata.end()) return std::nullopt;
  if (const uint64_t* value = std::get_if<uint64_t>(&it->second.value)) return *value;
  const int64_t* value = std::get_if<int64_t>(&it->second.value);
  if (value == nullptr || *value < 0) fail(Code::kInput, "{}: damaged: {} is not a count", file, key);
  return static_cast<uint64_t>(*value);
}

bool same_value(const MetaValue& a, const MetaValue& b) {
  if (a.value.index() != b.value.index()) return false;
  if (const auto* x = std::get_if<std::shared_ptr<const MetaArray>>(&a.value)) {
    const auto& y = std::get<std::shared_ptr<const MetaArray>>(b.value);
    return std::equal((*x)->begin(), (*x)->end(), y->begin(), y->end(), same_value);
  }
  if (const auto* x = std::get_if<std::shared_ptr<const std::vector<std::string>>>(&a.value))
    return **x == *std::get<std::shared_ptr<const std::vector<std::string>>>(b.value);
  return a.value == b.value;
}

std::unique_ptr<GgufFile::Part> map_part(const std::string& path) {
  auto part = std::make_unique<GgufFile::Part>();
  part->file = std::make_unique<MappedFile>(path);
  part->input = ByteInput::of(*part->file);
  return part;
}

}  // namespace

GgufFile::GgufFile() = default;
GgufFile::~GgufFile() = default;

std::unique_ptr<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto part = std::make_unique<Part>();
  part->memory = bytes;
  part->input = ByteInput::of(bytes, name);
  GgufHeader header = parse_gguf(part->input);
  if (find_count(header.metadata, "split.count", name).value_or(1) > 1)
    fail(Code::kInput, "{}: is one part of a split model; open it by its path", name);
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->add_part(std::move(part), std::move(header));
  file->finish();
  return file;
}

std::unique_ptr<GgufFile> GgufFile::open(const std::string& path) {
  auto part = map_part(path);
  GgufHeader header = parse_gguf(part->input);
  std::unique_ptr<GgufFile> file(new GgufFile);
  const uint64_t count = find_count(header.metadata, "split.count", path).value_or(1);
  if (count > 1) {
    file->open_split(path, count);
  } else {
    file->add_part(std::move(part), std::move(header));
  }
  file->finish();
  return file;
}

void GgufFile::open_split(const std::string& path, uint64_t count) {
  const std::optional<SplitName> name = parse_split_name(path);
  if (!name || name->count != count || name->number < 1 || name->number > count)
    fail(Code::kInput,
         "{}: is one of {} parts of a split model and not named like one; give the parts their names back "
         "(NAME-00001-of-{:05}.gguf and so on)",
         path, count, count);
  uint64_t tensors = 0;
  for (uint64_t i = 1; i <= count; ++i) {
    const std::string part_path = split_path(name->prefix, i, count);
    std::unique_ptr<Part> part;
    try {
      part = map_part(part_path);
    } catch (const Error& e) {
      fail(e.code(), "{} (part {} of {} of the split model {})", e.what(), i, count, path);
    }
    GgufHeader header = parse_gguf(part->input);
    check_part({part_path, part->input.size, header.version, header.alignment}, header, i, count);
    tensors += header.tensors.size();
    add_part(std::move(part), std::move(header));
  }
  const uint64_t declared = find_count(metadata_, "split.tensors.count", path).value_or(tensors);
  if (declared != tensors)
    fail(Code::kInput,
         "{}: the parts hold {} tensors and the first one declares {}; fetch all parts of one version again", path,
         tensors, declared);
}

// Does this part belong to the ones before it?
void GgufFile::check_part(const SourceFile& info, const GgufHeader& header, uint64_t number, uint64_t count) const {
  const uint64_t its_count = find_count(header.metadata, "split.count", info.name).value_or(0);
  const std::optional<uint64_t> its_number = find_count(header.metadata, "split.no", info.name);
  if (its_count != count || !its_number || *its_number + 1 != number)
    fail(Code::kInput, "{}: should be part {} of {} and says that it is part {} of {}; fetch the parts again",
         info.name, number, count, its_number ? std::to_string(*its_number + 1) : "?", its_count);
  if (number == 1) return;
  for (const auto& [key, value] : header.metadata) {
    if (key == "split.no" || key == "general.alignment") continue;
    const auto it = metadata_.find(key);
    if (it == metadata_.end() || !same_value(it->second, value))
      fail(Code::kInput, "{}: metadata key '{}' differs from the first part's; fetch all parts of one version again",
           info.name, shown_name(key));
  }
}

void GgufFile::add_part(std::unique_ptr<Part> part, GgufHeader header) {
  const uint32_t number = static_cast<uint32_t>(parts_.size());
  part_infos_.push_back({part->input.name, part->input.size, header.version, header.alignment});
  if (number == 0) metadata_ = std::move(header.metadata);
  for (GgufTensor& t : header.tensors) {
    t.part = number;
    declared_.push_back(std::move(t));
  }
  parts_.push_back(std::move(part));
}

void GgufFile::finish() {
  const std::string& name = part_infos_[0].name;
  size_t refused = 0;
  for (size_t i = 0; i < declared_.size(); ++i) {
    const GgufTensor& t = declared_[i];
    if (!index_.emplace(t.name, i).second)
      fail(Code::kInput, "{}: tensor '{}' is in two parts", part_infos_[t.part].name, shown_name(t.name));
    if (t.format) {
      tensors_.push_back({t.name, t.shape, *t.format, t.bytes});
    } else if (refused++ == 0) {
      unsupported_ = fmt::format("{}: tensor '{}' is {}", name, shown_name(t.name), ggml_type_name(t.ggml_type));
    }
  }
  if (refused > 1) unsupported_ += fmt::format(" (and {} more of formats like it)", refused - 1);
  if (refused > 0) unsupported_ += fmt::format("; stet runs {}", supported_formats());
}

const std::vector<TensorInfo>& GgufFile::tensors() const {
  if (!unsupported_.empty()) fail(Code::kUnsupported, "{}", unsupported_);
  return tensors_;
}

const GgufTensor& GgufFile::place(const TensorInfo& tensor) const {
  const auto it = index_.find(tensor.name);
  STET_CHECK(it != index_.end());
  return declared_[it->second];
}

void GgufFile::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  const GgufTensor& t = place(tensor);
  STET_CHECK(offset <= t.bytes && out.size() <= t.bytes - offset);
  parts_[t.part]->input.read(t.offset + offset, out);
}

void GgufFile::release(const TensorInfo& tensor) const {
  const GgufTensor& t = place(tensor);
  if (const auto& file = parts_[t.part]->file) file->release(t.offset, t.bytes);
}

std::vector<DeclaredTensor> GgufFile::declared() const {
  std::vector<DeclaredTensor> all;
  for (const GgufTensor& t : declared_)
    all.push_back({t.name, t.shape, ggml_type_name(t.ggml_type), t.format.has_value(), t.bytes});
  return all;
}

std::string GgufFile::identity() const {
  std::string text;
  for (const auto& part : parts_) {
    if (!text.empty()) text += '\n';
    text += part->file ? file_identity(*part->file)
                       : fmt::format("memory {} sha256 {}", part->input.name,
                                     sha256_hex(part->memory.data(), part->memory.size()));
  }
  return text;
}

}  // namespace stet
