#include "state/draft_lists.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "replay/qualify.h"
#include "replay/verdict.h"

namespace stet {

DraftLists::DraftLists(Decoder& target, const std::vector<Ask>& lists, const ArmOptions& arm)
    : target_(target), desc_(*target.desc().draft) {
  record(lists);
  buffers_.freeze();
  std::vector<const CommandList*> all;
  for (const auto& r : lists_) all.push_back(&r->list);
  cpu_ = std::make_unique<CpuInterpreter>(target.processor().kernels(), target.processor().pool(), all);
  if (target.cuda() != nullptr) make_cuda(arm);
  qualify(arm);
}

void DraftLists::record(const std::vector<Ask>& lists) {
  std::map<std::string, StateRows> states = target_.states();
  place_states(states);
  const std::vector<AttendShape> no_cache;
  const std::vector<RopeRows> ropes = target_.ropes();
  const ModelWeights weights{target_.pack(), no_cache, ropes, states};
  for (const Ask& ask : lists) {
    ListBuilder builder(buffers_, ask.width, ask.rows);
    desc_.record(target_.desc(), weights, ask.pass, builder);
    auto& r = *lists_.emplace_back(std::make_unique<Recorded>(Recorded{ask.pass, builder.take(), {}, {}, {}}));
    const bool wide = ask.width > kNarrowRows;
    r.fused = lower(r.list, wide ? Fusion::wide : Fusion::narrow);
    r.eager = lower(r.list, Fusion::none);
    if (target_.cuda() != nullptr) r.cuda = lower(r.list, wide ? Fusion::wide : device_fusion(ask.width));
  }
}

// What the target has on the device is read where it lies: weights that both use, its states, its rotations.
void DraftLists::make_cuda(const ArmOptions& arm) {
  CudaPlan plan;
  plan.device = *target_.options().cuda;
  for (const auto& r : lists_)
    for (const LoweredList* list : {&r->cuda, &r->eager}) plan.lists.push_back(list);
  if (!desc_.states.empty()) plan.cache = {own_.data(), own_plan_.bytes(target_.options().context)};
  plan.context = target_.options().context;
  plan.shared = target_.cuda();
  plan.progress = arm.progress;
  cuda_ = make_cuda_interpreter(plan);
}

Interpreter& DraftLists::interpreter() const {
  if (cuda_) return *cuda_;
  return *cpu_;
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
    const LoweredList& fused = cuda_ ? r->cuda : r->fused;
    return interpreter().run(mode == ReplayMode::eager ? r->eager : fused, params, mode);
  }
  fail(Code::kInternal, "internal error: no list of the draft '{}' takes {} rows", desc_.kind, params.rows);
}

const float* DraftLists::row(const char* buffer, uint32_t width, uint32_t row) {
  const Buffer* b = buffers_.get(buffer, width, kNarrowRows);
  interpreter().fetch(*b, row + 1);
  return b->row(row);
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
    target_.fetch_kv(scope.positions);  // the processor's row ops read it
    return qualify_kernels(cpu_->kernels(), scope);
  };
  compared_rows_ = compare_once(
                       arm.cache_dir, [this] { return key(); }, compare)
                       .rows;
}

}  // namespace stet
