// How sides are written and read, and a difference in words.
#include "base/error.h"
#include "lab/diff/replay_diff.h"

namespace stet {
namespace {

DiffSide parse_side(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view device = text.substr(0, colon);
  DiffSide side;
  side.isa = available_isas().back();
  side.cuda = device == "cuda";
  if (device != "cpu" && device != "cuda")
    fail(Code::kUsage, "--diff names the device '{}'; a side is cpu, cpu:ISA (scalar, avx2, avxvnni, avx512) or cuda",
         device);
  if (colon == std::string_view::npos) return side;
  const std::string_view isa = text.substr(colon + 1);
  if (side.cuda) fail(Code::kUsage, "--diff names {}: an instruction set belongs to cpu, and cuda has none", text);
  const auto named = isa_from_name(isa);
  if (!named)
    fail(Code::kUsage, "--diff names the instruction set '{}'; choose one of: scalar, avx2, avxvnni, avx512", isa);
  side.isa = *named;
  kernels(side.isa);  // says what there is where the processor lacks it
  return side;
}

}  // namespace

std::string DiffSide::text() const { return cuda ? "cuda" : fmt::format("cpu:{}", isa_name(isa)); }

std::array<DiffSide, 2> parse_diff_sides(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.find(',', comma + 1) != std::string_view::npos)
    fail(Code::kUsage, "--diff is '{}'; it names two sides, as in cpu,cuda or cpu:scalar,cpu:avx2", text);
  return {parse_side(text.substr(0, comma)), parse_side(text.substr(comma + 1))};
}

const char* form_name(ReplayMode mode) {
  return mode == ReplayMode::eager ? "eager" : mode == ReplayMode::recorded ? "recorded" : "replayed";
}

std::string Difference::text(const std::array<DiffSide, 2>& sides) const {
  std::string where = command.empty() ? fmt::format("the rows that layer {} stores", layer) : "command " + command;
  where += fmt::format(", {} {}", head ? "cache" : "buffer", tensor);
  if (head) {
    where += fmt::format(" of layer {}, KV head {}, position {}", layer, *head, position);
  } else {
    where += fmt::format(", row {} (position {})", row, position);
  }
  const std::string what =
      note.empty() ? fmt::format("element {}: {:#x} ({}) and {:#x} ({})", index, bits[0], values[0], bits[1], values[1])
                   : note;
  return fmt::format("{} and {} differ first in {}, {}; form {}, {}", sides[0].text(), sides[1].text(), where, what,
                     form_name(form), pass);
}

}  // namespace stet
