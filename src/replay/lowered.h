// Lowering for CPUs: runs of commands become stages, each ended by one barrier. Fusing changes what is materialised, never the
// arithmetic. Stages name the last command they contain: there traces compare.
#pragma once

#include <vector>

#include "replay/command.h"

namespace stet {

enum class Fusion : uint8_t {
  none,    // a stage a command: the eager form
  narrow,  // up to kNarrowRows rows: every worker prepares the activations it needs itself
  wide,    // more rows: preparations are stages of their own
  device,  // several rows on a device: as wide, and whoever reads an attention joins its runs (one row is narrow there)
};

struct Stage {
  enum class Kind : uint8_t { rows, prepare, project, gated, store, attend_rows, attend_runs };
  Kind kind = Kind::rows;  // rows: a command of row_ops.def, row by row

  // What the activations of project, gated and prepare are made of: the buffer itself, its norm, or the joined attention parts.
  enum class Source : uint8_t { buffer, norm, join };
  Source source = Source::buffer;
  bool prepared = false;  // activations are in the shared block, made by a prepare stage

  std::vector<const Command*> commands;  // in list order; project: the matvecs; gated: gate, up, swiglu
  const Command* norm = nullptr;         // of source norm
  const Command* attend = nullptr;       // of source join
  const Buffer* input = nullptr;         // of source buffer
  std::vector<const Command*> materialised;  // commands whose `out` holds their result after this stage
};

struct LoweredList {
  const CommandList* list = nullptr;
  Fusion fusion = Fusion::none;
  std::vector<Stage> stages;
};

LoweredList lower(const CommandList& list, Fusion fusion);

// Of narrow lists on a device: one row makes its activations where it needs them; more rows have them made once.
inline Fusion device_fusion(uint32_t rows) { return rows == 1 ? Fusion::narrow : Fusion::device; }

}  // namespace stet
