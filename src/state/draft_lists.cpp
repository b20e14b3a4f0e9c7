#include "state/draft_lists.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "replay/qualify.h"
#include "replay/verdict.h"

namespace stet {
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
  if (desc_.states.empty()) return;
  ModelDesc own;
  own.context = target_.options().context;
  own.states = desc_.states;
  own_plan_ = plan_state(own, KvFormat::f32);
  own_ = Reservation(own_plan_.bytes(own.context));
  states.merge(stet::place_states(own, own_plan_, reinterpret_cast<uint8_t*>(own_.data())));
}

void DraftLists::reach(uint32_t positions) {
  target_.reach(positions);
  if (!desc_.states.empty()) own_.commit(own_plan_.bytes(positions));
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

// What the target's key says, and the draft's own lists.
std::string DraftLists::key() const {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.update(text.data(), text.size()); };
  add(target_.lists_key());
  for (const auto& r : lists_) add(describe_list(r->list));
  return hash.hex();
}

// Proposals are verified whatever they are; kernels that a verdict vouches for are compared all the same, because
// shapes differ from the target's.
void DraftLists::qualify(const ArmOptions& arm) {
  if (arm.qualify == Qualify::skip) return;
  const auto compare = [&] {
    if (arm.progress) arm.progress("comparing the draft's kernels with the reference", 0, 0);
    QualifyScope scope{{}, {}, std::min(target_.options().context, kQualifyPositions)};
    for (const auto& r : lists_) scope.lists.push_back(&r->list);
    for (uint32_t rows = 1; rows <= kNarrowRows; ++rows) scope.widths.push_back(rows);
    reach(scope.positions);
    return qualify_kernels(cpu_->kernels(), scope);
  };
  compared_rows_ = compare_once(
                       arm.cache_dir, [this] { return key(); }, compare)
                       .rows;
}

}  // namespace stet
