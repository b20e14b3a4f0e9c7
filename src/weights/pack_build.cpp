#include "weights/pack_build.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace stet {
namespace {

constexpr uint64_t kReleaseBytes = uint64_t{16} << 20;

// What one thread needs to pack a piece.
struct Scratch {
  std::vector<std::byte> source;
  std::vector<float> floats;
  std::vector<uint8_t> packed;
};

void pack_vector_piece(const PackTensor& tensor, std::span<const std::byte> source, uint8_t* out, Scratch& scratch) {
  const FormatTraits& t = traits(tensor.source_format);
  const size_t n = source.size() / t.block_bytes * t.block_elements;
  scratch.floats.resize(n);
  t.dequantize(source.data(), scratch.floats.data(), n);
  std::memcpy(out, scratch.floats.data(), n * sizeof(float));
}

// One tile: 16 rows, or fewer at the end of the tensor.
void pack_one_tile(const PackTensor& tensor, const std::byte* rows, uint64_t count, uint8_t* out, Scratch& scratch) {
  const uint64_t row_bytes = tensor.source_row_bytes();
  const void* sources[kTileRows] = {};
  if (tensor.format == tensor.source_format) {
    for (uint64_t r = 0; r < count; ++r) sources[r] = rows + r * row_bytes;
  } else {
    scratch.floats.resize(count * tensor.cols);
    traits(tensor.source_format).dequantize(rows, scratch.floats.data(), scratch.floats.size());
    for (uint64_t r = 0; r < count; ++r) sources[r] = scratch.floats.data() + r * tensor.cols;
  }
  pack_traits(tensor.format).pack_tile(sources, tensor.cols, out);
}

void pack_piece(const PackTensor& tensor, std::span<const std::byte> source, uint8_t* out, Scratch& scratch) {
  if (tensor.is_vector) return pack_vector_piece(tensor, source, out, scratch);
  const uint64_t row_bytes = tensor.source_row_bytes();
  const uint64_t tile_bytes = pack_traits(tensor.format).tile_bytes(tensor.cols);
  for (uint64_t rows = source.size() / row_bytes, r = 0; r < rows; r += kTileRows, out += tile_bytes)
    pack_one_tile(tensor, source.data() + r * row_bytes, std::min<uint64_t>(kTileRows, rows - r), out, scratch);
}

// Gives the source's pages back while a tensor is read, not only at its end: an output matrix may be a third of a
// model.
class Releaser {
 public:
  Releaser(const TensorSource& source, const PackPlan& plan) : source_(source), done_(plan.tensors.size()) {}
  void add(size_t tensor, uint64_t bytes) {
    const TensorInfo& info = source_.tensors()[tensor];
    const uint64_t before = done_[tensor].fetch_add(bytes, std::memory_order_relaxed);
    if (before / kReleaseBytes != (before + bytes) / kReleaseBytes || before + bytes == info.bytes)
      source_.release(info);
  }

 private:
  const TensorSource& source_;
  std::vector<std::atomic<uint64_t>> done_;
};

void combine_hashes(PackPlan& plan, const PackPieces& pieces, const std::vector<std::string>& digests,
                    const std::vector<uint64_t>& sums) {
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    Sha256 hash;
    for (uint32_t p = pieces.first[i]; p < pieces.first[i + 1]; ++p) hash.update(digests[p].data(), digests[p].size());
    plan.tensors[i].source_sha256 = hash.hex();
    plan.tensors[i].checksum = tensor_checksum(sums.data() + pieces.first[i], plan.tensors[i].pieces());
  }
}

}  // namespace

PackPieces::PackPieces(const PackPlan& plan) : first(1, 0) {
  for (const PackTensor& t : plan.tensors) {
    if (t.pieces() > UINT32_MAX / 2 - first.back()) fail(Code::kInput, "the model is too large to pack");
    first.push_back(first.back() + t.pieces());
  }
}

PackPieces::Place PackPieces::place(uint32_t index) const {
  const auto next = std::upper_bound(first.begin(), first.end(), index);
  const auto tensor = static_cast<uint32_t>(next - first.begin() - 1);
  return {tensor, index - first[tensor]};
}

uint64_t tensor_checksum(const uint64_t* piece_hashes, uint32_t pieces) {
  return xxh3(piece_hashes, pieces * sizeof(uint64_t));
}

void build_pack(const TensorSource& source, PackPlan& plan, WorkerPool& pool, PackSink* sink,
                const PackProgress& progress) {
  const PackPieces pieces(plan);
  std::vector<std::string> digests(pieces.count());
  std::vector<uint64_t> sums(pieces.count());
  std::vector<Scratch> scratches(pool.threads());
  Releaser releaser(source, plan);
  Meter meter(progress, sink != nullptr ? "packing" : "hashing", plan.source_bytes());
  pool.run([&](WorkerPool::Worker& worker) {
    Scratch& scratch = scratches[worker.index()];
    worker.for_tiles(pieces.count(), 1, [&](uint32_t index) {
      const PackPieces::Place at = pieces.place(index);
      const PackTensor& tensor = plan.tensors[at.tensor];
      const PackPiece piece = tensor.piece(at.piece);
      scratch.source.resize(piece.source_bytes);
      source.read(source.tensors()[at.tensor], piece.source_offset, scratch.source);
      digests[index] = sha256_hex(scratch.source.data(), scratch.source.size());
      if (sink != nullptr) {
        const uint64_t offset = tensor.offset + piece.offset;
        uint8_t* out = sink->place(offset, piece.bytes, scratch.packed);
        pack_piece(tensor, scratch.source, out, scratch);
        sums[index] = xxh3(out, piece.bytes);
        sink->put(offset, out, piece.bytes);
      }
      releaser.add(at.tensor, piece.source_bytes);
      meter.add(piece.source_bytes);
      if (worker.index() == 0) meter.show();
    });
  });
  combine_hashes(plan, pieces, digests, sums);
  meter.finish();
}

}  // namespace stet
