#include "weights/packed_model.h"

#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "device/memory.h"
#include "weights/pack_build.h"
#include "weights/pack_plan.h"
#include "weights/pack_store.h"

namespace stet {
namespace {

class Pack final : public PackedModel {
 public:
  Pack(PackPlan plan, std::string key, bool synthetic, ActKind fp_input)
      : plan_(std::move(plan)), key_(std::move(key)), synthetic_(synthetic), fp_input_(fp_input) {
    for (const PackTensor& t : plan_.tensors) index_.emplace(t.name, &t);
  }

  void keep(AlignedBuffer memory, std::string place) {
    memory_ = std::move(memory);
    place_ = std::move(place);
    point_into(reinterpret_cast<const uint8_t*>(memory_.data()));
  }
  void keep(MappedFile file, uint64_t data_start, std::string place) {
    file_.emplace(std::move(file));
    place_ = std::move(place);
    point_into(reinterpret_cast<const uint8_t*>(file_->bytes().data()) + data_start);
  }

  const PackedMatrix* matrix(std::string_view name) const override {
    const auto it = matrices_.find(name);
    return it == matrices_.end() ? nullptr : &it->second;
  }
  const float* vector(std::string_view name, uint64_t* length) const override {
    const auto it = index_.find(name);
    if (it == index_.end() || !it->second->is_vector) return nullptr;
    if (length != nullptr) *length = it->second->cols;
    return reinterpret_cast<const float*>(data_ + it->second->offset);
  }
  uint64_t bytes() const override { return plan_.data_bytes; }
  const std::string& key() const override { return key_; }
  bool synthetic() const override { return synthetic_; }
  const std::string& place() const override { return place_; }

 private:
  void point_into(const uint8_t* data) {
    data_ = data;
    for (const PackTensor& t : plan_.tensors) {
      const ActKind input = takes_input(t.format, ActKind::e4m3) ? fp_input_ : default_input(t.format);
      if (!t.is_vector) matrices_[t.name] = {t.format, t.rows, t.cols, data + t.offset, input};
    }
  }

  const PackPlan plan_;
  const std::string key_;
  const bool synthetic_;
  const ActKind fp_input_;
  std::string place_;
  const uint8_t* data_ = nullptr;
  std::unordered_map<std::string_view, const PackTensor*> index_;
  std::unordered_map<std::string_view, PackedMatrix> matrices_;
  // One of these holds the data.
  AlignedBuffer memory_;
  std::optional<MappedFile> file_;
};

class MemorySink : public PackSink {
 public:
  explicit MemorySink(uint8_t* data) : data_(data) {}
  uint8_t* place(uint64_t offset, uint64_t, std::vector<uint8_t>&) override { return data_ + offset; }
  void put(uint64_t, const uint8_t*, uint64_t) override {}

 private:
  uint8_t* data_;
};

void check_memory(uint64_t bytes) {
  const MemoryBudget budget = memory_budget();
  if (bytes > budget.available_bytes)
    fail(Code::kResource, "the packed weights need {} bytes of memory; {}; use a smaller model or free memory", bytes,
         budget.explain());
}

std::unique_ptr<PackedModel> pack_in_memory(const TensorSource& source, PackPlan plan, WorkerPool& pool,
                                            const PackOptions& options) {
  const uint64_t bytes = plan.data_bytes + kPackSlackBytes;
  check_memory(bytes);
  AlignedBuffer memory(bytes);
  MemorySink sink(reinterpret_cast<uint8_t*>(memory.data()));
  build_pack(source, plan, pool, &sink, options.progress);
  std::string key = pack_key(plan);
  auto pack = std::make_unique<Pack>(std::move(plan), std::move(key), source.synthetic(), options.fp_input);
  pack->keep(std::move(memory), "in memory");
  return pack;
}

}  // namespace

std::unique_ptr<PackedModel> PackedModel::load(const TensorSource& source, const PackOptions& options) {
  if (options.fp_input == ActKind::f32)
    fail(Code::kUsage, "F8_E4M3 and MXFP4 weights multiply i8 or e4m3; for f32 they are dequantised (--float)");
  PackPlan plan = plan_pack(source, options.dequantize);
  WorkerPool::Options threads;
  threads.threads = options.threads;
  WorkerPool pool(threads);
  // A generator is faster than a disk, and its models are for one measurement: they leave nothing behind.
  if (!options.cache_dir.empty() && !source.synthetic()) {
    StoredPack stored = load_stored_pack(source, std::move(plan), options.cache_dir, options.mapped, pool, options.progress);
    const uint64_t data_start = stored.header.data_start;
    auto pack =
        std::make_unique<Pack>(std::move(stored.header.plan), std::move(stored.header.key), false, options.fp_input);
    if (stored.memory) {
      pack->keep(std::move(*stored.memory), std::move(stored.place));
    } else {
      pack->keep(std::move(stored.file), data_start, std::move(stored.place));
    }
    return pack;
  }
  return pack_in_memory(source, std::move(plan), pool, options);
}

}  // namespace stet
