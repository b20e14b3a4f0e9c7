#include "weights/hf/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/visible_text.h"
#include "weights/hf/shards.h"
#include "weights/hf/tokenizer.h"

namespace stet {
namespace {

constexpr uint64_t kMaxTextBytes = 256u << 20;  // of a JSON file: tokenizer.json has 30 MB for the largest vocabularies

std::string text_of(const MappedFile& file) {
  if (file.size() > kMaxTextBytes)
    fail(Code::kInput, "{}: {} bytes are too many for a file of this kind; {} are possible", file.path(), file.size(),
         kMaxTextBytes);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// The format that a tensor is read as; nothing: stet cannot read it.
std::optional<Format> format_of(const std::string& dtype, const HfName& name) {
  if (name.whole_numbers) return dtype == "I64" ? std::optional(Format::f32) : std::nullopt;
  if (dtype == "F32") return Format::f32;
  if (dtype == "F16") return Format::f16;
  if (dtype == "BF16") return Format::bf16;
  return std::nullopt;
}

void check_dtype(const MappedFile& file, const SafetensorsTensor& t, bool expert, const HfDialect& dialect) {
  const std::string problem = hf_dtype_problem(dialect.quantization, expert, t.dtype);
  if (!problem.empty())
    fail(Code::kInput, "{}: tensor '{}' is {}, but {}", file.path(), shown_name(t.name), t.dtype, problem);
}

// The ids of a member that holds one, several or none.
std::vector<uint64_t> ids_of(const Json& config, const char* key, const std::string& file) {
  std::vector<uint64_t> ids;
  if (!config.contains(key) || config[key].is_null()) return ids;
  const Json list = config[key].is_array() ? config[key] : Json::array({config[key]});
  for (const Json& id : list) {
    if (!id.is_number_unsigned()) fail(Code::kInput, "{}: {} holds something that is no token id", file, key);
    ids.push_back(id.get<uint64_t>());
  }
  return ids;
}

std::optional<uint64_t> one_id_of(const Json& config, const char* key, const std::string& file) {
  const std::vector<uint64_t> ids = ids_of(config, key, file);
  if (ids.size() > 1) fail(Code::kInput, "{}: {} holds {} ids", file, key, ids.size());
  return ids.empty() ? std::nullopt : std::optional(ids[0]);
}

// "NAME" of "path/NAME", "path/NAME/" and, from inside, ".".
std::string folder_name(const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::canonical(folder, ignored);
  return path.filename().string();
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

void leave_out_drafts(HfDialect& dialect) {
  dialect.translate = [all = dialect.translate](const std::string& theirs) {
    std::optional<HfName> name = all(theirs);
    if (name && name->draft) name->name.clear();
    return name;
  };
}

}  // namespace

HfCheckpoint::~HfCheckpoint() = default;

const MappedFile& HfCheckpoint::map(const std::string& path) {
  files_.push_back(std::make_unique<MappedFile>(path));
  return *files_.back();
}

Json HfCheckpoint::json_of(const std::string& path) { return parse_json(text_of(map(path)), path); }

std::unique_ptr<HfCheckpoint> HfCheckpoint::open(const std::string& folder, bool drafts) {
  const std::string config_path = folder + "/config.json";
  if (!exists(config_path))
    fail(Code::kInput,
         "{}: is a folder without config.json; name a GGUF file, or the folder of a checkpoint from Hugging Face",
         folder);
  std::unique_ptr<HfCheckpoint> c(new HfCheckpoint);
  c->drafts_ = drafts;
  const Json config = c->json_of(config_path);
  HfDialect dialect = read_hf_dialect(config, config_path);
  if (!drafts) leave_out_drafts(dialect);
  c->metadata_ = dialect.metadata;
  c->metadata_["general.name"] = {folder_name(folder)};
  c->unsupported_ = dialect.refusal;
  if (dialect.refusal.empty()) c->read_text(folder, config);
  c->read_shards(folder, dialect);
  c->add_scaled(dialect);
  c->check_required(dialect, folder);
  c->add_computed(dialect);
  return c;
}

// ---- text

void HfCheckpoint::read_text(const std::string& folder, const Json& config) {
  HfTokenIds ids;
  Json said = config;
  std::string file = folder + "/config.json";
  ids.bos = one_id_of(config, "bos_token_id", file);
  ids.pad = one_id_of(config, "pad_token_id", file);
  if (const std::string path = folder + "/generation_config.json"; exists(path)) {
    // What ends an answer is said there when both say it.
    if (Json generation = json_of(path); generation.contains("eos_token_id")) said = std::move(generation), file = path;
  }
  ids.eos = ids_of(said, "eos_token_id", file);
  const std::string path = folder + "/tokenizer.json";
  if (!exists(path)) {
    if (exists(folder + "/tokenizer.model"))
      metadata_["tokenizer.ggml.model"] = {std::string("llama")};  // SentencePiece
    return;
  }
  const uint64_t vocab = StrictObject(config, folder + "/config.json").u32("vocab_size");
  add_hf_tokenizer(parse_large_json(text_of(map(path)), path), path, vocab, ids, metadata_);
  read_chat_template(folder);
}

// The file chat_template.jinja, else the member of tokenizer_config.json: a text, or a list of named ones with a
// default.
void HfCheckpoint::read_chat_template(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json", alone = folder + "/chat_template.jinja";
  if (exists(alone)) {
    metadata_["tokenizer.chat_template"] = {text_of(map(alone))};
    return;
  }
  if (!exists(path)) return;
  const Json config = json_of(path);
  if (!config.is_object()) fail(Code::kInput, "{}: not a JSON object", path);
  if (!config.contains("chat_template") || config["chat_template"].is_null()) return;
  const Json& templates = config["chat_template"];
  if (templates.is_string()) {
    metadata_["tokenizer.chat_template"] = {templates.get<std::string>()};
    return;
  }
  if (!templates.is_array()) fail(Code::kInput, "{}: chat_template is neither a text nor a list", path);
  for (const Json& t : templates) {
    StrictObject named(t, path + ": chat_template");
    if (named.text("name") == "default") metadata_["tokenizer.chat_template"] = {named.text("template")};
  }
}

// ---- tensors

void HfCheckpoint::read_shards(const std::string& folder, const HfDialect& dialect) {
  const std::string index_path = folder + "/" + kHfIndex;
  HfIndex index;
  if (exists(index_path)) index = read_hf_index(parse_large_json(text_of(map(index_path)), index_path), index_path);
  const std::vector<std::string> shards = exists(index_path) ? index.shards : std::vector<std::string>{kHfSingle};
  for (const std::string& name : shards) {
    const std::string path = folder + "/" + name;
    if (!exists(path))
      fail(Code::kInput, "{}: is not there{}; get the whole checkpoint", path,
           exists(index_path) ? fmt::format(" ({} names it)", kHfIndex) : "");
    const MappedFile& file = map(path);
    const SafetensorsHeader header = parse_safetensors(ByteInput::of(file));
    if (exists(index_path)) check_shard(index, name, header, path);
    add_shard(file, header, dialect);
  }
}

void HfCheckpoint::add_shard(const MappedFile& file, const SafetensorsHeader& header, const HfDialect& dialect) {
  for (const SafetensorsTensor& t : header.tensors) {
    const auto [it, fresh] = theirs_.emplace(t.name, file.path());
    if (!fresh) fail(Code::kInput, "{}: tensor '{}' is in {} too", file.path(), shown_name(t.name), it->second);
    if (dialect.scaled && !hf_name_of_codes(t.name).empty()) {
      add_scales(file, t, dialect);
      continue;
    }
    const std::optional<HfName> name = dialect.translate(t.name);
    if (!name)
      fail(Code::kUnsupported,
           "{}: tensor '{}' is not one of this architecture: leaving it out would change the answer", file.path(),
           shown_name(t.name));
    if (name->name.empty()) continue;
    if (dialect.scaled) check_dtype(file, t, name->expert, dialect);
    if (dialect.scaled && hf_codes_format(t.dtype)) {
      Halves& h = halves_[t.name];
      h.name = name->name, h.codes_file = &file, h.codes = t;
      continue;
    }
    const std::optional<Format> format = format_of(t.dtype, *name);
    declared_.push_back({name->name, {t.shape.rbegin(), t.shape.rend()}, t.dtype, format.has_value(), t.bytes});
    if (dialect.refusal.empty()) add_tensor(file, t, *name, format, dialect.scaled);
  }
}

void HfCheckpoint::add_tensor(const MappedFile& file, const SafetensorsTensor& t, const HfName& name,
                              std::optional<Format> format, bool scaled) {
  std::vector<uint64_t> shape(t.shape.rbegin(), t.shape.rend());
  if (std::ranges::find(shape, 0u) != shape.end() || shape.empty() || shape.size() > 2)
    fail(Code::kInput, "{}: tensor '{}' is neither a vector nor a matrix", file.path(), shown_name(t.name));
  if (!format) {
    if (unsupported_.empty())
      unsupported_ =
          fmt::format("{}: tensor '{}' is {}; of this architecture stet runs F32, F16 and BF16{}", file.path(),
                      shown_name(t.name), t.dtype, scaled ? ", and FP8 and packed FP4 with scales" : "");
    return;
  }
  Place place{.file = &file, .offset = t.offset, .computed = {}, .whole_numbers = name.whole_numbers};
  if (name.rotated_heads != 0) {
    const uint64_t rows = shape.size() == 2 ? shape[1] : 0;
    if (rows == 0 || rows % name.rotated_heads != 0 || rows / name.rotated_heads % 2 != 0)
      fail(Code::kInput, "{}: tensor '{}' has {} rows, which are not {} heads of pairs", file.path(),
           shown_name(t.name), rows, name.rotated_heads);
    place.row_bytes = t.bytes / rows;
    place.head_rows = static_cast<uint32_t>(rows / name.rotated_heads);
  }
  tensors_.push_back({name.name, shape, *format, name.whole_numbers ? t.bytes / 2 : t.bytes});
  if (!places_.emplace(name.name, std::move(place)).second)
    fail(Code::kInput, "{}: tensor '{}' is there under another name too", file.path(), shown_name(t.name));
}

// Scales are left out with the codes that they belong to.
void HfCheckpoint::add_scales(const MappedFile& file, const SafetensorsTensor& t, const HfDialect& dialect) {
  const std::string codes = hf_name_of_codes(t.name);
  const std::optional<HfName> name = dialect.translate(codes);
  if (!name)
    fail(Code::kUnsupported, "{}: tensor '{}' is not one of this architecture: leaving it out would change the answer",
         file.path(), shown_name(t.name));
  if (name->name.empty()) return;
  Halves& h = halves_[codes];
  h.name = name->name, h.scales_file = &file, h.scales = t;
}

void HfCheckpoint::add_scaled(const HfDialect& dialect) {
  if (dialect.quantization && halves_.empty())
    fail(Code::kInput, "{}: quantization_config says fp8, and no tensor is FP8", files_.front()->path());
  for (const auto& [codes, h] : halves_) {
    if (h.codes_file == nullptr)
      fail(Code::kInput, "{}: tensor '{}' holds the scales of '{}', which {}", h.scales_file->path(),
           shown_name(h.scales.name), shown_name(codes),
           theirs_.contains(codes) ? "is neither FP8 nor packed FP4" : "is not there; get the whole checkpoint");
    if (h.scales_file == nullptr)
      fail(Code::kInput, "{}: tensor '{}' is {}, and its scales, '{}', are not there; get the whole checkpoint",
           h.codes_file->path(), shown_name(codes), h.codes.dtype, shown_name(hf_name_of_scales(codes)));
    const auto m = std::make_shared<const ScaledMatrix>(HfPart{ByteInput::of(*h.codes_file), h.codes},
                                                        HfPart{ByteInput::of(*h.scales_file), h.scales});
    const std::vector<uint64_t> shape = {m->cols(), m->rows()};
    tensors_.push_back({h.name, shape, m->format(), m->bytes()});
    declared_.push_back({h.name, shape, std::string(traits(m->format()).name), true, m->bytes()});
    Place place{.file = h.codes_file, .offset = h.codes.offset, .computed = {}};
    place.scaled = m;
    place.scales_file = h.scales_file;
    if (!places_.emplace(h.name, std::move(place)).second)
      fail(Code::kInput, "{}: tensor '{}' is there under another name too", h.codes_file->path(), shown_name(codes));
  }
  halves_.clear();
}

void HfCheckpoint::add_computed(const HfDialect& dialect) {
  for (const auto& [name, values] : dialect.computed) {
    const uint64_t bytes = values.size() * sizeof(float);
    tensors_.push_back({name, {values.size()}, Format::f32, bytes});
    declared_.push_back({name, {values.size()}, "F32", true, bytes});
    places_.emplace(name, Place{.computed = values});
  }
}

void HfCheckpoint::check_required(const HfDialect& dialect, const std::string& folder) const {
  for (const std::string& name : dialect.required)
    if (!theirs_.contains(name))
      fail(Code::kInput, "{}: the weights lack tensor '{}'; get the whole checkpoint", folder, name);
}

const std::vector<TensorInfo>& HfCheckpoint::tensors() const {
  if (!unsupported_.empty()) fail(Code::kUnsupported, "{}", unsupported_);
  return tensors_;
}

const HfCheckpoint::Place& HfCheckpoint::place(const TensorInfo& tensor) const {
  const auto it = places_.find(tensor.name);
  STET_CHECK(it != places_.end());
  return it->second;
}

void HfCheckpoint::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  STET_CHECK(offset <= tensor.bytes && out.size() <= tensor.bytes - offset);
  const Place& p = place(tensor);
  if (p.file == nullptr) {
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(p.computed.data()) + offset, out.size());
  } else if (p.scaled != nullptr) {
    p.scaled->read(offset, out);
  } else if (p.whole_numbers) {
    read_whole_numbers(tensor, p, offset, out);
  } else if (p.head_rows != 0) {
    read_rows(p, offset, out);
  } else {
    p.file->read(p.offset + offset, out);
  }
}

// Row 2i + s of a head is row i + s * head_rows / 2 of the file.
void HfCheckpoint::read_rows(const Place& p, uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const uint64_t row = offset / p.row_bytes, within = offset % p.row_bytes;
    const uint64_t n = std::min<uint64_t>(out.size(), p.row_bytes - within);
    const uint64_t head = row / p.head_rows * p.head_rows, place = row % p.head_rows;
    const uint64_t theirs = head + place / 2 + place % 2 * (p.head_rows / 2);
    p.file->read(p.offset + theirs * p.row_bytes + within, out.first(n));
    out = out.subspan(n);
    offset += n;
  }
}

// Any piece of the tensor, so the first and the last number may be cut.
void HfCheckpoint::read_whole_numbers(const TensorInfo& tensor, const Place& p, uint64_t offset,
                                      std::span<std::byte> out) const {
  constexpr int64_t kMost = 1 << 24;  // below it every whole number is a F32
  if (out.empty()) return;
  const uint64_t first = offset / sizeof(float), end = (offset + out.size() + sizeof(float) - 1) / sizeof(float);
  std::vector<int64_t> numbers(end - first);
  p.file->read(p.offset + first * sizeof(int64_t), std::as_writable_bytes(std::span(numbers)));
  std::vector<float> floats;
  for (const int64_t n : numbers) {
    if (n < 0 || n >= kMost)
      fail(Code::kInput, "{}: tensor '{}' holds {}; ids from 0 to {} are possible", p.file->path(), tensor.name, n,
           kMost - 1);
    floats.push_back(static_cast<float>(n));
  }
  std::memcpy(out.data(), reinterpret_cast<const std::byte*>(floats.data()) + offset % sizeof(float), out.size());
}

void HfCheckpoint::release(const TensorInfo& tensor) const {
  const Place& p = place(tensor);
  if (p.scaled != nullptr) {
    p.file->release(p.offset, p.scaled->codes().bytes);
    p.scales_file->release(p.scaled->scales().offset, p.scaled->scales().bytes);
  } else if (p.file != nullptr) {
    p.file->release(p.offset, p.whole_numbers ? 2 * tensor.bytes : tensor.bytes);
  }
}

std::string HfCheckpoint::identity() const {
  std::string text;
  for (const auto& file : files_) text += (text.empty() ? "" : "\n") + file_identity(*file);
  if (drafts_) text += "\nwith drafts";  // the same files, and a pack of more tensors
  return text;
}

std::vector<SourceFile> HfCheckpoint::files() const {
  std::vector<SourceFile> all;
  for (const auto& file : files_) all.push_back({file->path(), file->size()});
  return all;
}

}  // namespace stet
