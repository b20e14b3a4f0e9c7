// GGUF files as tensor sources: one file, or all parts of a split one.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "weights/gguf_parse.h"
#include "weights/tensor_source.h"

namespace stet {

class GgufFile : public TensorSource {
 public:
  // One file of a model. file is null where the bytes lie in memory.
  struct Part;
  // Opens a file; of a split model (NAME-00001-of-00003.gguf) any part, and finds the others beside it.
  // Throws Error(kInput) or Error(kUnsupported) as parse_gguf does, and when the parts do not belong together.
  static std::unique_ptr<GgufFile> open(const std::string& path);
  // Parses bytes that outlive the result. name stands in messages.
  static std::unique_ptr<GgufFile> parse(std::span<const std::byte> bytes, const std::string& name);
  ~GgufFile() override;

  const Metadata& metadata() const override { return metadata_; }
  // Throws Error(kUnsupported) when the file holds a tensor of a format that stet does not run; declared() lists those
  // too.
  const std::vector<TensorInfo>& tensors() const override;
  void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;
  void release(const TensorInfo& tensor) const override;
  std::string identity() const override;
  std::vector<SourceFile> files() const override { return part_infos_; }
  std::vector<DeclaredTensor> declared() const override;

 private:
  GgufFile();
  void add_part(std::unique_ptr<Part> part, GgufHeader header);
  void check_part(const SourceFile& info, const GgufHeader& header, uint64_t number, uint64_t count) const;
  void open_split(const std::string& path, uint64_t count);
  void finish();
  const GgufTensor& place(const TensorInfo& tensor) const;

  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<SourceFile> part_infos_;
  Metadata metadata_;
  std::vector<GgufTensor> declared_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> index_;  // names of declared_
  std::string unsupported_;                             // why tensors() refuses; empty: it does not
};

}  // namespace stet
