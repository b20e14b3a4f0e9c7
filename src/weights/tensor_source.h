// Where tensors come from: a file on disk or a generator. Everything above reads weights through this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "formats/format.h"

namespace stet {

// One metadata value. Integers are widened to 64 bits; an array holds values of one type.
struct MetaValue;
using MetaArray = std::vector<MetaValue>;
struct MetaValue {
  std::variant<uint64_t, int64_t, double, bool, std::string, std::shared_ptr<const MetaArray>,
               std::shared_ptr<const std::vector<std::string>>>
      value;
};
using Metadata = std::map<std::string, MetaValue, std::less<>>;

struct TensorInfo {
  std::string name;
  std::vector<uint64_t> shape;  // shape[0] is the fastest dimension: the input dimension K of a weight; then N rows
  Format format = Format::f32;
  uint64_t bytes = 0;  // of the whole tensor: rows are contiguous, no padding

  uint64_t elements() const {
    uint64_t n = 1;
    for (uint64_t d : shape) n *= d;
    return n;
  }
};

// A file of a model, for people.
struct SourceFile {
  std::string name;
  uint64_t bytes = 0;
  uint32_t gguf_version = 0;  // 0: it is no GGUF file
  uint64_t alignment = 0;
};

// A tensor as a file declares it, of a format that stet runs or not.
struct DeclaredTensor {
  std::string name;
  std::vector<uint64_t> shape;  // fastest dimension first
  std::string format;
  bool supported = true;
  uint64_t bytes = 0;  // 0: unknown, for a type that no published file uses
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const Metadata& metadata() const = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // Copies bytes [offset, offset + out.size()) of a tensor. Safe from several threads. Throws Error(kInput) when the file shrank
  // or could not be read.
  virtual void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const = 0;
  // Tells the system that a tensor's pages will not be read again soon.
  virtual void release(const TensorInfo& tensor) const { (void)tensor; }
  virtual bool synthetic() const { return false; }
  // Identifies the content cheaply: files by path, device, inode, size and times; a generator by its full recipe.
  virtual std::string identity() const = 0;

  // What it consists of. A generator has no files, and declares what it has.
  virtual std::vector<SourceFile> files() const { return {}; }
  virtual std::vector<DeclaredTensor> declared() const {
    std::vector<DeclaredTensor> all;
    for (const TensorInfo& t : tensors()) all.push_back({t.name, t.shape, std::string(traits(t.format).name), true, t.bytes});
    return all;
  }

  const TensorInfo* find(std::string_view name) const {
    for (const TensorInfo& t : tensors())
      if (t.name == name) return &t;
    return nullptr;
  }
};

}  // namespace stet
