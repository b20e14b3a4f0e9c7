// Two interpreters side by side on the same steps: the first command, buffer, row and element whose bits differ.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/parts.h"

namespace stet {

// One of the two: the processor with one instruction set, or the first GPU.
struct DiffSide {
  bool cuda = false;
  Isa isa = Isa::scalar;
  const Kernels* wrong_kernels = nullptr;  // for tests: used instead of the table of `isa`

  std::string text() const;  // as it is typed: "cpu:avx512", "cuda"
};

// "DEVICE[:ISA],DEVICE[:ISA]": cpu (the last instruction set that the processor has), cpu:scalar, cuda. Throws
// Error(kUsage).
std::array<DiffSide, 2> parse_diff_sides(std::string_view text);

struct DiffOptions {
  std::array<DiffSide, 2> sides;
  std::vector<int32_t> prompt;
  uint32_t tokens = 16;  // of the answer, chosen by the first side; end tokens do not end it
  uint32_t rows = 1;     // above 1: the answer once more in verify passes of so many rows
  unsigned threads = 1;  // of each side
  std::vector<ReplayMode> forms = {ReplayMode::eager, ReplayMode::recorded, ReplayMode::replayed};
  std::function<void(std::string_view form, uint32_t done, uint32_t total)> progress;  // may throw to stop
};

// Where the sides part.
struct Difference {
  ReplayMode form = ReplayMode::eager;
  std::string pass;     // "prompt pass", "decode pass", "verify pass"
  std::string command;  // "blk.3.attn_q"; of rows in the cache: the command that stores them, where it was seen
  std::string tensor;   // the buffer, or "keys", "values", "key scales", "value scales"
  std::optional<uint32_t> head;  // of a tensor of the cache: the KV head; `layer` is its layer
  uint32_t layer = 0;
  uint32_t row = 0;       // of the pass
  uint32_t position = 0;  // absolute
  uint32_t index = 0;     // element of the row; of a cache row: of the head
  std::array<uint32_t, 2> bits = {};
  std::array<float, 2> values = {};
  std::string note;  // what else there is to know

  std::string text(const std::array<DiffSide, 2>& sides) const;
};

struct DiffReport {
  std::vector<int32_t> answer;  // the tokens that both ran
  uint64_t passes = 0;          // of each side, all forms
  uint64_t commands = 0;        // outputs of commands that were compared
  uint64_t values = 0;          // elements of them
  uint64_t cache_values = 0;    // elements and scales of KV rows
  std::optional<Difference> difference;
};

const char* form_name(ReplayMode mode);

// Every form runs all steps on both sides. eager: every command alone. recorded: every fused stage alone, compared
// where both sides hold a result. replayed: whole lists, whose logits are compared. The KV rows of a pass are compared
// behind it in every form. All NaN compare as one. Stops at the first pass with a difference, and names the first in
// the order of the list.
DiffReport diff_replays(Engine::Parts& engine, const DiffOptions& options);

}  // namespace stet
