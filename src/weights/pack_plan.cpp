#include "weights/pack_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/visible_text.h"

namespace stet {
namespace {

constexpr uint64_t kPieceSourceBytes = uint64_t{1} << 20;  // part of the digests: a change needs a new kPackVersion
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;
constexpr uint64_t kAlignment = 64;

// The name of what runs the tiles; other devices will pack in other ways.
constexpr std::string_view kTarget = "cpu";

PackTensor plan_tensor(const TensorInfo& info, bool dequantize) {
  if (info.shape.empty() || info.shape.size() > 2)
    fail(Code::kUnsupported, "tensor '{}' has {} dimensions; stet packs vectors and matrices only",
         visible_text(info.name), info.shape.size());
  PackTensor tensor;
  tensor.name = info.name;
  tensor.is_vector = info.shape.size() == 1;
  tensor.source_format = info.format;
  tensor.format = dequantize || tensor.is_vector ? Format::f32 : info.format;
  const uint64_t rows = tensor.is_vector ? 1 : info.shape[1];
  if (rows == 0 || rows > UINT32_MAX || info.shape[0] == 0 || info.shape[0] > UINT32_MAX)
    fail(Code::kInput, "tensor '{}' has {} rows of {} elements; both must be between 1 and 2^32 - 1",
         visible_text(info.name), rows, info.shape[0]);
  tensor.rows = static_cast<uint32_t>(rows);
  tensor.cols = static_cast<uint32_t>(info.shape[0]);
  return tensor;
}

}  // namespace

uint64_t PackTensor::source_row_bytes() const {
  const FormatTraits& t = traits(source_format);
  return uint64_t{cols / t.block_elements} * t.block_bytes;
}

uint64_t PackTensor::units() const {
  return is_vector ? cols / traits(source_format).block_elements : (uint64_t{rows} + kTileRows - 1) / kTileRows;
}

uint64_t PackTensor::unit_source_bytes() const {
  return is_vector ? traits(source_format).block_bytes : source_row_bytes() * kTileRows;
}

uint64_t PackTensor::unit_bytes() const {
  return is_vector ? traits(source_format).block_elements * sizeof(float) : pack_traits(format).tile_bytes(cols);
}

uint64_t PackTensor::units_of_piece() const { return std::max<uint64_t>(1, kPieceSourceBytes / unit_source_bytes()); }

uint32_t PackTensor::pieces() const {
  return static_cast<uint32_t>((units() + units_of_piece() - 1) / units_of_piece());
}

PackPiece PackTensor::piece(uint32_t index) const {
  const uint64_t first = index * units_of_piece();
  const uint64_t count = std::min(units_of_piece(), units() - first);
  PackPiece piece;
  piece.source_offset = first * unit_source_bytes();
  piece.source_bytes = std::min(count * unit_source_bytes(), source_bytes() - piece.source_offset);
  piece.offset = first * unit_bytes();
  piece.bytes = count * unit_bytes();
  return piece;
}

bool place_tensor(PackTensor& tensor, uint64_t& data_bytes) {
  const uint32_t block = traits(tensor.source_format).block_elements;
  if (tensor.rows == 0 || tensor.cols == 0 || tensor.cols % block != 0) return false;
  if (tensor.is_vector && (tensor.rows != 1 || tensor.format != Format::f32)) return false;
  if (tensor.format != Format::f32 && tensor.format != tensor.source_format) return false;
  const uint64_t tiles = (uint64_t{tensor.rows} + kTileRows - 1) / kTileRows;
  const uint64_t unit =
      tensor.is_vector ? uint64_t{tensor.cols} * 4 : pack_traits(tensor.format).tile_bytes(tensor.cols);
  // Neither product can overflow 64 bits by more than the check notices: units stay below 2^39, tiles below 2^29.
  if (unit > kMaxBytes / tiles || tensor.source_row_bytes() > kMaxBytes / tensor.rows) return false;
  tensor.offset = (data_bytes + kAlignment - 1) / kAlignment * kAlignment;
  tensor.bytes = unit * tiles;
  if (tensor.offset + tensor.bytes > kMaxBytes) return false;
  data_bytes = tensor.offset + tensor.bytes;
  return true;
}

uint64_t PackPlan::source_bytes() const {
  uint64_t sum = 0;
  for (const PackTensor& t : tensors) sum += t.source_bytes();
  return sum;
}

PackPlan plan_pack(const TensorSource& source, bool dequantize) {
  PackPlan plan;
  plan.dequantize = dequantize;
  plan.tensors.reserve(source.tensors().size());
  for (const TensorInfo& info : source.tensors()) {
    PackTensor tensor = plan_tensor(info, dequantize);
    if (!place_tensor(tensor, plan.data_bytes) || tensor.source_bytes() != info.bytes)
      fail(Code::kInput, "tensor '{}' of {} rows by {} columns as {} does not have {} bytes", visible_text(info.name),
           tensor.rows, tensor.cols, traits(info.format).name, info.bytes);
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

std::string pack_key(const PackPlan& plan) {
  Sha256 hash;
  const auto add = [&hash](const std::string& text) { hash.update(text.data(), text.size()); };
  add(fmt::format("stet pack\nlayout {}\ntarget {}\ndequantize {}\n", kPackLayout, kTarget, plan.dequantize ? 1 : 0));
  for (const PackTensor& t : plan.tensors)
    add(fmt::format("{}:{} {} {}x{} {} {} {}\n", t.name.size(), t.name, t.is_vector ? "vector" : "matrix", t.rows,
                    t.cols, traits(t.source_format).name, traits(t.format).name, t.source_sha256));
  return hash.hex();
}

}  // namespace stet
