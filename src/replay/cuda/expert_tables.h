// Where on the device the matrices of experts lie: a table of addresses for the gate, up and down matrices of each layer.
#pragma once

#include <map>
#include <vector>

#include "replay/cuda/twins.h"

namespace stet {

class ExpertTables {
 public:
  // Makes and sends the tables of all commands of the lists. Throws Error(kUnsupported), naming the command, where the experts of one
  // differ in format, shape or input.
  ExpertTables(const std::vector<const LoweredList*>& lists, const Twins& twins, CudaStream& stream);

  // The table of these matrices, in device memory; null without any.
  const uint8_t* const* of(const std::vector<PackedMatrix>& matrices) const;
  uint64_t bytes() const { return memory_.bytes(); }

 private:
  using Key = std::pair<const uint8_t*, size_t>;  // the first expert's matrix, and how many there are
  static Key key_of(const std::vector<PackedMatrix>& matrices) { return {matrices.front().data, matrices.size()}; }

  std::map<Key, size_t> first_;  // index of the first entry of a table among all entries
  CudaMemory memory_;
};

}  // namespace stet
