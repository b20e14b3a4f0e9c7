// The sample of matrix-vector products, and of the quantizations that feed them.
#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "device/memory.h"
#include "replay/qualify_detail.h"

namespace stet::detail {
namespace {

// Rows of the pass repeat after so many: never two equal rows in a group of 8, nor in the same place of neighbouring groups.
constexpr uint32_t kInputs = 17;
constexpr uint32_t kMatvecSalt = 1;

struct MatvecSample {
  MatvecSample(Qualifier& qualifier, const Command& command)
      : q(qualifier),
        c(command),
        m(command.matrix),
        kind(m.input),
        width(*std::max_element(q.scope.widths.begin(), q.scope.widths.end())),
        x(uint64_t{kInputs} * m.cols * sizeof(float)),
        got_input(activation_bytes(kind, width, m.cols)),
        want_input(activation_bytes(kind, std::max(width, kInputs), m.cols)),
        got(uint64_t{width} * kTileRows * sizeof(float)) {
    const uint32_t last = m.tiles() - 1;
    for (const uint32_t t : {0u, last / 2, last})
      if (std::find(tiles.begin(), tiles.end(), t) == tiles.end()) tiles.push_back(t);
    want = AlignedBuffer(uint64_t{kInputs} * kTileRows * sizeof(float) * tiles.size());
  }

  float* row(uint32_t r) const { return x.as<float>().data() + size_t{r % kInputs} * m.cols; }
  float* want_of(size_t tile) const { return want.as<float>().data() + tile * kInputs * kTileRows; }
  std::string shape() const { return fmt::format("{} ({})", c.name, describe_matrix(m)); }

  // The reference computes each input row once: what a row gives does not depend on its company, which is what is being checked.
  void prepare(uint32_t round) {
    fill_sample({x.as<float>().data(), size_t{kInputs} * m.cols}, round, kMatvecSalt);
    const Activations input{kind, kInputs, m.cols, want_input.data()};
    for (uint32_t r = 0; r < kInputs; ++r) q.reference.quantize(row(r), r, input);
    for (size_t i = 0; i < tiles.size(); ++i) q.reference.matvec(m, tiles[i], input, want_of(i));
  }

  void compare(uint32_t rows) {
    const Activations input{kind, rows, m.cols, got_input.data()}, wanted{kind, rows, m.cols, want_input.data()};
    for (uint32_t r = 0; r < rows; ++r) {
      q.kernels.quantize(row(r), r, input);
      q.reference.quantize(row(r), r, wanted);
    }
    q.same_bytes("quantize", input.group(0), wanted.group(0), activation_bytes(kind, rows, m.cols),
                 [&](size_t i) { return fmt::format("{} columns, width {}, byte {}", m.cols, rows, i); });
    for (size_t i = 0; i < tiles.size(); ++i) {
      float* out = got.as<float>().data();
      q.kernels.matvec(m, tiles[i], input, out);
      for (uint32_t r = 0; r < rows; ++r)
        q.same_floats("matvec", out + r * kTileRows, want_of(i) + r % kInputs * kTileRows, kTileRows, [&](size_t n) {
          return fmt::format("{}, width {}, row {}, output {}", shape(), rows, r, tiles[i] * kTileRows + n);
        });
    }
  }

  Qualifier& q;
  const Command& c;
  const PackedMatrix& m;
  ActKind kind;
  uint32_t width;
  AlignedBuffer x, got_input, want_input, got, want;
  std::vector<uint32_t> tiles;
};

}  // namespace

void Qualifier::matvecs() {
  std::set<std::string> seen;
  for (const CommandList* list : scope.lists)
    for (const Command& c : list->commands) {
      if (c.op != Op::matvec || !seen.insert(describe_matrix(c.matrix)).second) continue;
      MatvecSample sample(*this, c);
      for (uint32_t round = 0; round < kRounds; ++round) {
        sample.prepare(round);
        for (const uint32_t width : scope.widths) sample.compare(width);
      }
    }
}

}  // namespace stet::detail
