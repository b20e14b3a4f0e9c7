// How a source finds its pack in the cache, or gets one.
#include "base/error.h"
#include "base/visible_text.h"
#include "weights/pack_store.h"

namespace stet {
namespace {

class StoredPackLoader {
 public:
  StoredPackLoader(const TensorSource& source, PackPlan plan, const std::string& cache_dir, bool mapped,
                   WorkerPool& pool, const PackProgress& progress)
      : source_(source),
        store_(cache_dir),
        mapped_(mapped),
        pool_(pool),
        progress_(progress),
        identity_(source.identity()),
        record_name_(PackStore::record_name(identity_, plan.dequantize)) {
    header_.plan = std::move(plan);
    const auto name = source.metadata().find("general.name");
    if (name != source.metadata().end())
      if (const auto* text = std::get_if<std::string>(&name->second.value)) header_.label = text->substr(0, 256);
    place_pack_data(header_);
  }

  StoredPack load() {
    if (auto pack = open_recorded()) return std::move(*pack);
    store_.packs().require_writable();
    store_.sources().require_writable();
    const CacheLock lock = wait_for_lock();
    // Whoever held the lock before may have made it.
    if (auto pack = open_recorded()) return std::move(*pack);
    if (auto pack = open_by_content()) return std::move(*pack);
    return make();
  }

 private:
  void tell(std::string_view what) const {
    if (progress_) progress_(what, 0, header_.file_bytes);
  }

  // A pack that cannot be used is a reason to make it again, not an error; one that others can write is an error.
  std::optional<StoredPack> try_open(const std::string& key) {
    try {
      return store_.open(key, header_.plan, mapped_, pool_, progress_);
    } catch (const Error& e) {
      if (e.code() != Code::kInput) throw;
      const bool told = problem_ == e.what();
      problem_ = e.what();
      unusable_key_ = key;
      if (!told) tell(fmt::format("{}; it is made again", visible_text(problem_)));
      return std::nullopt;
    }
  }

  std::optional<StoredPack> open_recorded() {
    const std::optional<SourceRecord> record = store_.read_record(record_name_);
    // Two identities may share a name by chance.
    if (!record || record->identity != identity_ || record->dequantize != header_.plan.dequantize) return std::nullopt;
    return try_open(record->key);
  }

  // The same tensors may have come from another file, or from this one before it was copied or touched: then reading
  // it is enough.
  std::optional<StoredPack> open_by_content() {
    if (!store_.has_similar(header_.plan)) return std::nullopt;
    PackPlan plan = header_.plan;
    build_pack(source_, plan, pool_, nullptr, progress_);
    const std::string key = pack_key(plan);
    auto pack = try_open(key);
    if (pack) store_.write_record({identity_, plan.dequantize, key});
    return pack;
  }

  CacheLock wait_for_lock() const {
    double told = -1.0;
    return store_.sources().lock(record_name_, [&](double seconds) {
      if (told < 0 || seconds - told >= 0.5) {
        told = seconds;
        tell("waiting: another process packs this model");
      }
      return true;
    });
  }

  StoredPack make() {
    remove_dead_temporaries(store_.packs());
    tell(fmt::format("writing the packed weights, {} bytes, to {} (once; --pack none keeps them in memory)",
                     header_.file_bytes, visible_text(store_.packs().path())));
    {
      PackWriter writer(store_.packs(), header_);
      build_pack(source_, header_.plan, pool_, &writer, progress_);
      header_.key = pack_key(header_.plan);
      tell("finishing the pack on disk");
      writer.commit(header_);
    }
    store_.write_record({identity_, header_.plan.dequantize, header_.key});
    // A pack of another version has another key, and nothing leads to it any more.
    if (!unusable_key_.empty() && unusable_key_ != header_.key) store_.packs().remove(pack_name(unusable_key_));
    auto pack = store_.open(header_.key, header_.plan, mapped_, pool_, progress_);
    if (!pack) fail(Code::kResource, "{}: the pack vanished after it was written; start again", store_.packs().path());
    return std::move(*pack);
  }

  const TensorSource& source_;
  const PackStore store_;
  const bool mapped_;
  WorkerPool& pool_;
  const PackProgress& progress_;
  const std::string identity_;
  const std::string record_name_;
  PackHeader header_;
  std::string problem_;       // why the last pack could not be used
  std::string unusable_key_;  // and which it was
};

}  // namespace

StoredPack load_stored_pack(const TensorSource& source, PackPlan plan, const std::string& cache_dir, bool mapped,
                            WorkerPool& pool, const PackProgress& progress) {
  return StoredPackLoader(source, std::move(plan), cache_dir, mapped, pool, progress).load();
}

}  // namespace stet
