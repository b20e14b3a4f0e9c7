#include "replay/cuda/expert_tables.h"

#include "base/error.h"

namespace stet {
namespace {

bool alike(const PackedMatrix& a, const PackedMatrix& b) {
  return a.format == b.format && a.rows == b.rows && a.cols == b.cols && a.input == b.input;
}

void check_alike(const Command& c, const std::vector<PackedMatrix>& matrices, const PackedMatrix& first) {
  for (const PackedMatrix& m : matrices)
    if (!alike(m, first))
      fail(Code::kUnsupported,
           "command {} has experts of different kinds ({} and {}), for which there is no CUDA kernel: use --device cpu", c.name,
           describe_matrix(first), describe_matrix(m));
}

}  // namespace

ExpertTables::ExpertTables(const std::vector<const LoweredList*>& lists, const Twins& twins, CudaStream& stream) {
  std::vector<const uint8_t*> entries;
  for (const LoweredList* list : lists)
    for (const Command& c : list->list->commands) {
      const auto* spec = std::get_if<std::shared_ptr<const ExpertsSpec>>(&c.spec);
      if (spec == nullptr) continue;
      for (const auto* matrices : {&(*spec)->gate, &(*spec)->up, &(*spec)->down}) {
        if (matrices->empty() || !first_.try_emplace(key_of(*matrices), entries.size()).second) continue;
        check_alike(c, *matrices, (*spec)->gate.empty() ? matrices->front() : (*spec)->gate.front());
        for (const PackedMatrix& m : *matrices) entries.push_back(twins.of(m.data));
      }
    }
  if (entries.empty()) return;
  memory_ = CudaMemory(entries.size() * sizeof entries[0], "tables of experts");
  stream.to_device(memory_.data(), entries.data(), memory_.bytes());
  stream.wait();
}

const uint8_t* const* ExpertTables::of(const std::vector<PackedMatrix>& matrices) const {
  if (matrices.empty()) return nullptr;
  return reinterpret_cast<const uint8_t* const*>(memory_.data()) + first_.at(key_of(matrices));
}

}  // namespace stet
