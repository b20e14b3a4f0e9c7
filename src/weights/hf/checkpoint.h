// A folder from Hugging Face as a tensor source: config.json, generation_config.json, tokenizer.json,
// tokenizer_config.json, chat_template.jinja and the weights, model.safetensors or the shards that
// model.safetensors.index.json names.
//
// Metadata and tensors are those that a GGUF file of the model has, so that everything above reads both alike.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "weights/hf/dialect.h"
#include "weights/hf/safetensors.h"
#include "weights/hf/scaled_matrix.h"
#include "weights/tensor_source.h"

namespace stet {

class HfCheckpoint : public TensorSource {
 public:
  // Throws Error(kInput) for a folder that lacks a file, whose files contradict each other or are damaged, and
  // Error(kUnsupported), by name, for what stet does not run. drafts: with the blocks that propose tokens, where there
  // are any; else the source is as if they were not there.
  static std::unique_ptr<HfCheckpoint> open(const std::string& folder, bool drafts = false);
  ~HfCheckpoint() override;

  const Metadata& metadata() const override { return metadata_; }
  // Throws Error(kUnsupported) when stet does not run the family or a tensor's dtype; declared() lists the tensors then
  // too.
  const std::vector<TensorInfo>& tensors() const override;
  void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;
  void release(const TensorInfo& tensor) const override;
  std::string identity() const override;
  std::vector<SourceFile> files() const override;
  std::vector<DeclaredTensor> declared() const override { return declared_; }

 private:
  // Where the bytes of a tensor are.
  struct Place {
    const MappedFile* file = nullptr;  // null: computed
    uint64_t offset = 0;
    std::vector<float> computed;
    uint64_t row_bytes = 0;
    uint32_t head_rows = 0;                                // of a head whose rows change places; 0: they stay
    bool whole_numbers = false;                            // I64 in the file, F32 here
    std::shared_ptr<const ScaledMatrix> scaled = nullptr;  // codes and scales
    const MappedFile* scales_file = nullptr;
  };
  // Codes and scales of one matrix, wherever in the shards they are.
  struct Halves {
    std::string name;                                                // ours
    const MappedFile *codes_file = nullptr, *scales_file = nullptr;  // null: not seen
    SafetensorsTensor codes, scales;
  };

  HfCheckpoint() = default;
  const MappedFile& map(const std::string& path);
  Json json_of(const std::string& path);
  void read_shards(const std::string& folder, const HfDialect& dialect);
  void add_shard(const MappedFile& file, const SafetensorsHeader& header, const HfDialect& dialect);
  void add_tensor(const MappedFile& file, const SafetensorsTensor& tensor, const HfName& name,
                  std::optional<Format> format, bool scaled);
  void add_scales(const MappedFile& file, const SafetensorsTensor& tensor, const HfDialect& dialect);
  void add_scaled(const HfDialect& dialect);
  void add_computed(const HfDialect& dialect);
  void check_required(const HfDialect& dialect, const std::string& folder) const;
  void read_text(const std::string& folder, const Json& config);
  void read_chat_template(const std::string& folder);
  void read_rows(const Place& place, uint64_t offset, std::span<std::byte> out) const;
  void read_whole_numbers(const TensorInfo& tensor, const Place& place, uint64_t offset,
                          std::span<std::byte> out) const;
  const Place& place(const TensorInfo& tensor) const;

  bool drafts_ = false;
  std::vector<std::unique_ptr<MappedFile>> files_;  // in the order in which they were read
  Metadata metadata_;
  std::vector<DeclaredTensor> declared_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, Halves> halves_;                 // by the names of the codes there
  std::unordered_map<std::string, Place> places_;        // by our names
  std::unordered_map<std::string, std::string> theirs_;  // every tensor of the shards, by its name there: its file
  std::string unsupported_;                              // why tensors() refuses; empty: it does not
};

}  // namespace stet
