// The sample of ops that work row by row, and of sampling.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "replay/qualify_detail.h"
#include "replay/row_ops.h"

namespace stet::detail {
namespace {

constexpr uint32_t kRowSalt = 2;
constexpr uint32_t kLogits =
    8192 + 5;  // of a longer row of logits the beginning is enough: no kernel treats the rest otherwise

// A command on buffers of its own.
struct RowSample {
  explicit RowSample(const Command& command) : c(command) {
    for (const auto& [from, to] :
         {std::pair{command.in, &in}, {command.in2, &in2}, {command.in3, &in3}, {command.out, &out}}) {
      if (from == nullptr) continue;
      storage.emplace_back(from->width);
      *to = {from->name, from->width, storage.back().data()};
    }
    c.in = command.in == nullptr ? nullptr : &in;
    c.in2 = command.in2 == nullptr ? nullptr : &in2;
    c.in3 = command.in3 == nullptr ? nullptr : &in3;
    c.out = &out;
    c.from_head = false;
    params.rows = 1;
  }
  void fill(uint32_t round) {
    uint32_t salt = kRowSalt;
    for (const Buffer* b : {c.in, c.in2, c.in3})
      if (b != nullptr) fill_sample({b->data, b->width}, round, salt += 16);
    if (c.matrix.rows != 0) params.tokens[0] = static_cast<int32_t>(round == 0 ? c.matrix.rows - 1 : c.matrix.rows / 2);
  }
  std::vector<float> run(const Kernels& kernels) {
    std::fill_n(out.data, out.width, 0.0f);
    for (uint32_t part = 0; part < c.parts; ++part) row_op(c.op)(kernels, c, params, 0, part);
    return {out.data, out.data + out.width};
  }

  Command c;
  Buffer in, in2, in3, out;
  std::vector<std::vector<float>> storage;
  StepParams params;
};

// The gated projection runs swiglu in place over the 16 outputs of each row of a tile.
void gated_tiles(Qualifier& q) {
  const uint32_t most = *std::max_element(q.scope.widths.begin(), q.scope.widths.end()) * kTileRows;
  std::vector<float> gate(most), up(most), got(most), want(most);
  for (uint32_t round = 0; round < kRounds; ++round) {
    fill_sample(gate, round, kRowSalt);
    fill_sample(up, round, kRowSalt + 1);
    for (const uint32_t width : q.scope.widths) {
      got = gate;
      q.kernels.swiglu(got.data(), up.data(), width * kTileRows, got.data());
      q.reference.swiglu(gate.data(), up.data(), width * kTileRows, want.data());
      q.same_floats("swiglu", got.data(), want.data(), size_t{width} * kTileRows, [&](size_t i) {
        return fmt::format("width {}, row {}, output {}", width, i / kTileRows, i % kTileRows);
      });
    }
  }
}

}  // namespace

void Qualifier::row_ops() {
  std::set<std::tuple<Op, const float*, uint32_t, uint32_t, std::string>> seen;
  for (const CommandList* list : scope.lists)
    for (const Command& c : list->commands) {
      const uint32_t in_width = c.in == nullptr ? 0 : c.in->width;
      const std::string shape = describe_matrix(c.matrix) + describe_spec(c.spec) + (c.rounded ? " rounded" : "");
      if (row_op(c.op) == nullptr || !seen.emplace(c.op, c.weight, in_width, c.out->width, shape).second) continue;
      RowSample sample(c);
      for (uint32_t round = 0; round < kRounds; ++round) {
        sample.fill(round);
        const std::vector<float> want = sample.run(reference), got = sample.run(kernels);
        same_floats(row_op_name(c.op), got.data(), want.data(), got.size(),
                    [&](size_t i) { return fmt::format("{}, {} wide, row 0, output {}", c.name, got.size(), i); });
      }
      if (c.op == Op::swiglu) gated_tiles(*this);
    }
}

void Qualifier::sampling() {
  uint32_t n = 0;
  for (const CommandList* list : scope.lists)
    if (list->rows == RowSet::head) n = std::min(kLogits, list->commands.back().out->width);
  std::vector<float> logits(n);
  std::vector<uint32_t> got(n), want(n);
  for (uint32_t round = 0; round < kRounds && n != 0; ++round) {
    fill_sample(logits, round, kRowSalt);
    const auto name = [&] { return fmt::format("{} logits, input {}", n, round); };
    const Argmax top = reference.sample.argmax(logits.data(), n);
    same_words("argmax", kernels.sample.argmax(logits.data(), n).id, top.id, name);
    const float max = logits[top.id];
    same_words("weights", kernels.sample.weights(logits.data(), n, max, 0.7f, got.data()),
               reference.sample.weights(logits.data(), n, max, 0.7f, want.data()), name);
    for (uint32_t i = 0; i < n; ++i) same_words("weights", got[i], want[i], name);
    kernels.sample.sort_keys(logits.data(), n, got.data());
    reference.sample.sort_keys(logits.data(), n, want.data());
    for (uint32_t i = 0; i < n; ++i) same_words("sort_keys", got[i], want[i], name);
    same_words("tally", kernels.sample.tally(got.data(), n, got[n / 2]).sum,
               reference.sample.tally(got.data(), n, got[n / 2]).sum, name);
    const NoiseStream stream{0x5eed + round, 77};
    same_words("gumbel_row", kernels.sample.gumbel_row(logits.data(), n, top.id, 0.7f, stream),
               reference.sample.gumbel_row(logits.data(), n, top.id, 0.7f, stream), name);
  }
}

}  // namespace stet::detail
