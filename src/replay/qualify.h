// Qualification: before lists run for anybody, the kernels that they use are compared, byte by byte, with the scalar reference, on
// the real weights and for every width.
//
// The sample, per distinct (format, rows, columns) of the matrices: the first, the middle and the last tile of 16 output rows (the last
// one has the tail), all their rows, for every width of the lists; two inputs one after the other at the same addresses, one of
// spread values with outliers, one in which every code is extreme. quantize: every byte that those products read. Row ops: every
// command's own weights. Attention: the first and the last KV head at positions up to beyond the second chunk, in one run and in runs of
// one chunk. Sampling: one row of logits. `stet prove` compares whole lists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "replay/command.h"

namespace stet {

struct QualifyScope {
  std::vector<const CommandList*> lists;
  std::vector<uint32_t> widths;  // rows of the passes that will run
  uint32_t positions = 0;        // rows that the rotation tables of the lists have
};

// Positions that the attention sample covers when the tables have them: into a third chunk.
constexpr uint32_t kQualifyPositions = 2 * kSlots + 20;

// Returns how many output rows were compared. Throws Error(kDiverged) that names the kernel, its shape, the width, the row and both
// bit patterns.
uint64_t qualify_kernels(const Kernels& kernels, const QualifyScope& scope);

// A text that is equal just when two lists have the same commands on the same shapes, buffers and constants: part of a verdict's key.
std::string describe_list(const CommandList& list);

}  // namespace stet
