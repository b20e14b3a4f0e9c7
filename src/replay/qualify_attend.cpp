// The sample of rotation, storing and attending: on a cache of its own with the layout of the lists.
#include <bit>
#include <set>
#include <tuple>

#include "base/error.h"
#include "device/memory.h"
#include "replay/qualify_detail.h"

namespace stet::detail {
namespace {

constexpr uint32_t kSalt = 3;
// Rows whose attention is compared: the first, around groups of 16 slots, and around the ends of chunks.
constexpr uint32_t kRows[] = {0, 1, 15, 16, 17, kSlots - 1, kSlots, 2 * kSlots - 1, 2 * kSlots, kQualifyPositions - 1};

struct AttendSample {
  AttendSample(Qualifier& qualifier, const AttendShape& attend_shape)
      : q(qualifier), shape(attend_shape), layout(shape.layout), positions(std::min(q.scope.positions, kQualifyPositions)) {
    layout.chunk_stride = layout.chunk_bytes();
    const uint64_t bytes = layout.chunk_stride * ((positions + kSlots - 1) / kSlots);
    got_kv = AlignedBuffer(bytes);
    want_kv = AlignedBuffer(bytes);
    keys.resize(size_t{positions} * layout.head_dim);
    values.resize(keys.size());
    queries.resize(size_t{shape.queries()} * layout.head_dim);
  }
  uint8_t* got_layer() const { return got_kv.as<uint8_t>().data(); }
  uint8_t* want_layer() const { return want_kv.as<uint8_t>().data(); }
  std::string name() const {
    static constexpr const char* kFormats[] = {"f32", "f16", "q8", "fp8"};
    return fmt::format("{} KV, {} heads on {} of {}", kFormats[static_cast<int>(layout.format)], shape.heads, layout.heads, layout.head_dim);
  }

  // Slots that are never written hold NaN patterns: nothing of them may show.
  void poison(uint32_t head) const {
    const size_t bytes = layout.key_bytes() + layout.value_bytes();
    for (uint32_t p = 0; p < positions; p += kSlots) {
      std::fill_n(layout.keys(got_layer(), p / kSlots, head), bytes, uint8_t{0xff});
      std::fill_n(layout.keys(want_layer(), p / kSlots, head), bytes, uint8_t{0xff});
    }
  }

  void store(uint32_t head, uint32_t round) {
    const uint32_t dim = layout.head_dim;
    fill_sample(keys, round, kSalt + head);
    fill_sample(values, round, kSalt + 16 + head);
    float got[kMaxHeadDim], want[kMaxHeadDim];
    for (uint32_t p = 0; p < positions; ++p) {
      const float* value = values.data() + size_t{p} * dim;
      q.kernels.rope(keys.data() + size_t{p} * dim, shape.rope_row(p), shape.rope_dim, dim, got);
      q.reference.rope(keys.data() + size_t{p} * dim, shape.rope_row(p), shape.rope_dim, dim, want);
      q.same_floats("rope", got, want, dim, [&](size_t i) { return fmt::format("{}, position {}, element {}", name(), p, i); });
      q.kernels.store_kv(layout, got_layer(), head, p, got, value);
      q.reference.store_kv(layout, want_layer(), head, p, want, value);
    }
    for (uint32_t chunk = 0; chunk * kSlots < positions; ++chunk)
      q.same_bytes("store_kv", layout.keys(got_layer(), chunk, head), layout.keys(want_layer(), chunk, head),
                   layout.key_bytes() + layout.value_bytes(),
                   [&](size_t i) { return fmt::format("{}, chunk {}, head {}, byte {}", name(), chunk, head, i); });
  }

  // One row's output through runs of run_chunks chunks.
  std::vector<float> attend(const Kernels& kernels, uint8_t* layer, uint32_t head, uint32_t position, uint32_t run_chunks) const {
    const uint32_t n = shape.queries(), dim = layout.head_dim, count = position / kSlots / run_chunks + 1;
    std::vector<AttendPart> run(n), parts(size_t{n} * count);
    for (uint32_t i = 0; i < count; ++i) {
      kernels.attend({layout, layer, head, n, position, i * run_chunks, run_chunks, shape.scale, queries.data()}, run.data());
      for (uint32_t j = 0; j < n; ++j) parts[j * count + i] = run[j];
    }
    std::vector<float> y(queries.size());
    for (uint32_t j = 0; j < n; ++j) kernels.join(parts.data() + j * count, count, dim, y.data() + j * dim);
    return y;
  }

  void compare(uint32_t head, uint32_t position, uint32_t round) {
    fill_sample(queries, round, kSalt + 32 + position);
    const uint32_t all = std::bit_ceil(position / kSlots + 1);
    const std::vector<float> want = attend(q.reference, want_layer(), head, position, all);
    for (uint32_t run_chunks = 1; run_chunks <= all; run_chunks *= 2) {
      const std::vector<float> got = attend(q.kernels, got_layer(), head, position, run_chunks);
      q.same_floats("attend", got.data(), want.data(), got.size(), [&](size_t i) {
        return fmt::format("{}, position {}, KV head {}, runs of {}, output {}", name(), position, head, run_chunks, i);
      });
    }
  }

  Qualifier& q;
  const AttendShape& shape;
  KvLayout layout;
  uint32_t positions;
  AlignedBuffer got_kv, want_kv;
  std::vector<float> keys, values, queries;
};

}  // namespace

void Qualifier::attention() {
  std::set<std::tuple<KvFormat, uint32_t, uint32_t, uint32_t, uint32_t, float>> seen;
  for (const CommandList* list : scope.lists)
    for (const Command& c : list->commands) {
      if (c.op != Op::attend) continue;
      const AttendShape& s = *c.shape;
      if (!seen.emplace(s.layout.format, s.layout.heads, s.layout.head_dim, s.heads, s.rope_dim, s.scale).second) continue;
      AttendSample sample(*this, s);
      std::set<uint32_t> heads = {0, s.layout.heads - 1};
      for (const uint32_t head : heads) sample.poison(head);
      for (uint32_t round = 0; round < kRounds; ++round)
        for (const uint32_t head : heads) {
          sample.store(head, round);
          for (const uint32_t position : kRows)
            if (position < sample.positions) sample.compare(head, position, round);
        }
    }
}

}  // namespace stet::detail
