#include "replay/cuda/spec_twins.h"

#include "replay/cuda/twins.h"

namespace stet {
namespace {

using EachWeight = std::function<void(const void* host, uint64_t bytes)>;

struct Weights {
  const EachWeight& f;

  void floats(const float* data, uint64_t count) const { f(data, count * sizeof(float)); }
  void matrix(const PackedMatrix& m) const {
    if (m.data != nullptr) f(m.data, m.bytes());
  }

  template <typename Spec>
  void operator()(const Spec&) const {}
  void operator()(const HyperSpec& s) const {
    floats(s.base, s.outputs());
    floats(s.scale, s.iterations == 0 ? 1 : 3);
  }
  void operator()(const PoolRowSpec& s) const { matrix(s.position); }
  void operator()(const EntrySpec& s) const { floats(s.norm, s.pool.size()); }
  void operator()(const UnionAttendSpec& s) const { floats(s.attend.sinks, s.attend.heads); }
  void operator()(const RouteSpec& s) const {
    if (s.bias != nullptr) floats(s.bias, s.experts);
  }
  void operator()(const std::shared_ptr<const ExpertsSpec>& s) const {
    for (const auto* matrices : {&s->gate, &s->up, &s->down})
      for (const PackedMatrix& m : *matrices) matrix(m);
  }
};

// Replaces the addresses of a spec, which is a copy.
struct Translate {
  const Twins& twins;

  void rows(StateRows& r) const { r.first = twins.of(r.first); }
  void rope(RopeRows& r) const { r.first = twins.of(r.first); }

  template <typename Spec>
  void operator()(Spec&) const {}
  void operator()(HyperSpec& s) const {
    s.base = twins.of(s.base);
    s.scale = twins.of(s.scale);
  }
  void operator()(HeadsSpec& s) const { rope(s.rope); }
  void operator()(CacheSpec& s) const {
    rows(s.rows);
    rope(s.rope);
  }
  void operator()(PoolRowSpec& s) const {
    rows(s.rows);
    s.position.data = twins.of(s.position.data);
  }
  void operator()(EntrySpec& s) const {
    rows(s.pool.rows);
    rows(s.pool.entries);
    s.norm = twins.of(s.norm);
    rope(s.rope);
  }
  void operator()(ChooseSpec& s) const { rows(s.keys); }
  void operator()(UnionAttendSpec& s) const {
    rows(s.attend.rows);
    rows(s.attend.entries);
    s.attend.sinks = twins.of(s.attend.sinks);
    rope(s.rope);
  }
  void operator()(RouteSpec& s) const { s.bias = twins.of(s.bias); }
  void operator()(KeepSpec& s) const { rows(s.rows); }
};

}  // namespace

void each_weight(const Command& c, const EachWeight& f) {
  const Weights weights{f};
  weights.matrix(c.matrix);
  if (c.weight != nullptr) weights.floats(c.weight, c.in->width);
  std::visit(weights, c.spec);
}

OpSpec on_device(const OpSpec& spec, const Twins& twins) {
  OpSpec translated = spec;
  std::visit(Translate{twins}, translated);
  return translated;
}

}  // namespace stet
