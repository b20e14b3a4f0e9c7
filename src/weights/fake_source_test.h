// A model in memory, for tests of packs: random weights of a seed, a changeable identity, and counted reads.
#pragma once

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "weights/tensor_source.h"

namespace stet {

class FakeSource : public TensorSource {
 public:
  explicit FakeSource(std::string identity = "fake") : identity_(std::move(identity)) {}

  // Adds a tensor of random finite elements.
  FakeSource& add(const std::string& name, Format format, std::vector<uint64_t> shape, unsigned seed = 1) {
    const FormatTraits& t = traits(format);
    TensorInfo info{name, std::move(shape), format, 0};
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(info.elements());
    for (float& v : x) v = normal(rng);
    std::vector<std::byte> bytes(x.size() / t.block_elements * t.block_bytes);
    t.quantize(x.data(), bytes.data(), x.size());
    info.bytes = bytes.size();
    infos_.push_back(std::move(info));
    data_.push_back(std::move(bytes));
    return *this;
  }
  // One tensor of every format, and every format's vector.
  FakeSource& add_every_format() {
    for (const FormatTraits& t : all_formats()) {
      add(std::string(t.name) + ".weight", t.format, {768, 37}, t.ggml_type + 1);
      add(std::string(t.name) + ".one", t.format, {256, 1}, t.ggml_type + 2);
      add(std::string(t.name) + ".norm", t.format, {512}, t.ggml_type + 3);
    }
    return *this;
  }

  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    largest_read_ = std::max<uint64_t>(largest_read_, out.size());
    const std::vector<std::byte>& data = bytes(tensor.name);
    if (offset > data.size() || out.size() > data.size() - offset) throw std::logic_error("read outside a tensor");
    std::memcpy(out.data(), data.data() + offset, out.size());
  }
  void release(const TensorInfo&) const override { ++releases_; }
  bool synthetic() const override { return synthetic_; }
  std::string identity() const override { return identity_; }

  const std::vector<std::byte>& bytes(const std::string& name) const {
    for (size_t i = 0; i < infos_.size(); ++i)
      if (infos_[i].name == name) return data_[i];
    throw std::logic_error("no tensor " + name);
  }
  std::vector<std::byte>& bytes(const std::string& name) {
    return const_cast<std::vector<std::byte>&>(static_cast<const FakeSource*>(this)->bytes(name));
  }
  std::vector<TensorInfo>& infos() { return infos_; }
  void set_identity(std::string identity) { identity_ = std::move(identity); }
  void set_synthetic() { synthetic_ = true; }
  void set_metadata(const std::string& key, const std::string& value) { metadata_[key].value = value; }
  void set_count(const std::string& key, uint64_t value) { metadata_[key].value = value; }
  uint64_t reads() const { return reads_; }
  uint64_t releases() const { return releases_; }
  uint64_t largest_read() const { return largest_read_; }

 private:
  Metadata metadata_;
  std::vector<TensorInfo> infos_;
  std::vector<std::vector<std::byte>> data_;
  std::string identity_;
  bool synthetic_ = false;
  mutable std::atomic<uint64_t> reads_{0}, releases_{0}, largest_read_{0};
};

}  // namespace stet
