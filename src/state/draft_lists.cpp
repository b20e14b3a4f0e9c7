#include "state/draft_lists.h"

#include <algorithm>

#include "base/build_id.h"
#include "base/error.h"
#include "base/hash.h"
#include "replay/qualify.h"
#include "replay/verdict.h"

namespace stet {
namespace {

uint64_t chunk_bytes_of(const StateSpec& spec) {
  STET_CHECK(spec.ratio == 1);
  return (uint64_t{spec.width} * kSlots * sizeof(float) + 63) / 64 * 64;
}

}  // namespace

DraftLists::DraftLists(Decoder& target, const std::vector<Ask>& lists, const ArmOptions& arm)
    : target_(target), desc_(*target.desc().draft) {
  if (target.cuda() != nullptr)
    fail(Code::kUnsupported, "the draft '{}' runs on the processor only so far: use --device cpu, or another --draft",
         desc_.kind);
  std::map<std::string, StateRows> states = target.states();
  place_states(states);
  const std::vector<AttendShape> no_cache;
  const std::vector<RopeRows> ropes = target.ropes();
  const ModelWeights weights{target.pack(), no_cache, ropes, states};
  std::vector<const CommandList*> all;
  for (const Ask& ask : lists) {
    ListBuilder builder(buffers_, ask.width, ask.rows);
    desc_.record(target.desc(), weights, ask.pass, builder);
    auto& r = *lists_.emplace_back(std::make_unique<Recorded>(Recorded{ask.pass, builder.take(), {}, {}}));
    r.fused = lower(r.list, ask.width > kNarrowRows ? Fusion::wide : Fusion::narrow);
    r.eager = lower(r.list, Fusion::none);
    all.push_back(&r.list);
  }
  buffers_.freeze();
  cpu_ = std::make_unique<CpuInterpreter>(target.processor().kernels(), target.processor().pool(), all);
  qualify(arm);
}

void DraftLists::place_states(std::map<std::string, StateRows>& states) {
  for (const StateSpec& spec : desc_.states) own_chunk_bytes_ += chunk_bytes_of(spec);
  if (own_chunk_bytes_ == 0) return;
  own_ = Reservation(own_chunk_bytes_ * ((target_.options().context + kSlots - 1) / kSlots));
  uint8_t* next = reinterpret_cast<uint8_t*>(own_.data());
  for (const StateSpec& spec : desc_.states) {
    states[spec.name] = {next, own_chunk_bytes_, spec.width, spec.ratio, 0, RowFormat::f32, 0};
    next += chunk_bytes_of(spec);
  }
}

void DraftLists::reach(uint32_t positions) {
  target_.reach(positions);
  own_.commit(own_chunk_bytes_ * ((positions + kSlots - 1) / kSlots));
}

void DraftLists::run(DraftPass pass, const StepParams& params) {
  for (const auto& r : lists_) {
    const uint32_t rows = r->list.rows == RowSet::head ? params.head_rows : params.rows;
    if (r->pass != pass || r->list.width < rows) continue;
    const ReplayMode mode = target_.options().mode;
    return cpu_->run(mode == ReplayMode::eager ? r->eager : r->fused, params, mode);
  }
  fail(Code::kInternal, "internal error: no list of the draft '{}' takes {} rows", desc_.kind, params.rows);
}

const float* DraftLists::row(const char* buffer, uint32_t width, uint32_t row) {
  return buffers_.get(buffer, width, kNarrowRows)->row(row);
}

// Proposals are verified whatever they are; kernels that a verdict vouches for are compared all the same, because
// shapes differ from the target's.
void DraftLists::qualify(const ArmOptions& arm) {
  if (arm.qualify == Qualify::skip) return;
  Sha256 hash;
  const std::string key_of_target = target_.lists_key();
  hash.update(key_of_target.data(), key_of_target.size());
  QualifyScope scope{{}, {}, std::min(target_.options().context, kQualifyPositions)};
  for (const auto& r : lists_) {
    const std::string text = describe_list(r->list);
    hash.update(text.data(), text.size());
    scope.lists.push_back(&r->list);
  }
  const std::string key = hash.hex();
  std::optional<VerdictStore> store;
  if (!arm.cache_dir.empty() && !build_id().empty()) store.emplace(arm.cache_dir);
  if (const auto rows = store ? store->find(key) : std::nullopt) {
    compared_rows_ = *rows;
    return;
  }
  for (uint32_t rows = 1; rows <= kNarrowRows; ++rows) scope.widths.push_back(rows);
  if (arm.progress) arm.progress("comparing the draft's kernels with the reference", 0, 0);
  reach(scope.positions);
  compared_rows_ = qualify_kernels(cpu_->kernels(), scope);
  if (!store) return;
  try {
    store->keep(key, compared_rows_);
  } catch (const Error& e) {
    // The comparison stands; the next start only has to make it again.
    if (e.code() != Code::kResource) throw;
  }
}

}  // namespace stet
