// A synthetic model with some of its bytes changed, for tests that need weights of a particular kind.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/synth.h"

namespace stet::test {

class PatchedSource : public TensorSource {
 public:
  explicit PatchedSource(std::string_view name) : base_(SynthSource::create(name)) {}

  // The bytes of a tensor, to be changed before the source is read.
  std::vector<std::byte>& bytes(const std::string& tensor) {
    const TensorInfo* info = base_->find(tensor);
    STET_CHECK(info != nullptr);
    std::vector<std::byte>& data = changed_[tensor];
    if (data.empty()) {
      data.resize(info->bytes);
      base_->read(*info, 0, data);
    }
    return data;
  }
  // The same of an F32 tensor: row r begins at r * shape[0].
  std::span<float> floats(const std::string& tensor) {
    STET_CHECK(base_->find(tensor) != nullptr && base_->find(tensor)->format == Format::f32);
    std::vector<std::byte>& data = bytes(tensor);
    return {reinterpret_cast<float*>(data.data()), data.size() / sizeof(float)};
  }

  const Metadata& metadata() const override { return base_->metadata(); }
  const std::vector<TensorInfo>& tensors() const override { return base_->tensors(); }
  void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    const auto it = changed_.find(tensor.name);
    if (it == changed_.end()) return base_->read(tensor, offset, out);
    STET_CHECK(offset <= it->second.size() && out.size() <= it->second.size() - offset);
    std::copy_n(it->second.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  bool synthetic() const override { return true; }
  std::string identity() const override { return base_->identity() + " patched"; }

 private:
  std::unique_ptr<SynthSource> base_;
  std::map<std::string, std::vector<std::byte>> changed_;
};

}  // namespace stet::test
