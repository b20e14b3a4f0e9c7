#include "replay/op_specs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace stet {
namespace {

std::string rows_text(const StateRows& r) {
  constexpr const char* kFormats[] = {"f32", "f16", "fp8"};
  const std::string row = fmt::format("{} {}", kFormats[static_cast<size_t>(r.format)], r.width);
  if (r.ring != 0) return fmt::format("[{} ring {}]", row, r.ring);
  return fmt::format("[{} every {} stride {}]", row, r.ratio, r.chunk_stride);
}

std::string rounding_text(bool rounded, bool indexed = false) {
  return indexed ? " rounded indexed" : rounded ? " rounded" : "";
}

struct Describe {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const HyperSpec& s) const {
    return fmt::format(" hyper {} sinkhorn {} eps {:a} {:a}", s.streams, s.iterations, s.norm_eps, s.eps);
  }
  std::string operator()(const HeadsSpec& s) const {
    return fmt::format(" heads of {} rope {} unit {} {:a}", s.head_dim, s.rope.dim, s.unit, s.eps) +
           rounding_text(s.rounded, s.indexed);
  }
  std::string operator()(const CacheSpec& s) const {
    return fmt::format(" cache {} rope {}", rows_text(s.rows), s.rope.dim) + rounding_text(s.rounded);
  }
  std::string operator()(const PoolRowSpec& s) const {
    return fmt::format(" pool {} of {}", rows_text(s.rows), s.position.rows);
  }
  std::string operator()(const EntrySpec& s) const {
    return fmt::format(" entry {} {} overlap {} eps {:a} rope {}", rows_text(s.pool.rows), rows_text(s.pool.entries),
                       s.pool.overlap, s.eps, s.rope.dim) +
           rounding_text(s.rounded, s.indexed);
  }
  std::string operator()(const ChooseSpec& s) const {
    return fmt::format(" choose {} of {} heads {} scale {:a}", s.top, rows_text(s.keys), s.heads, s.scale) +
           rounding_text(s.rounded);
  }
  std::string operator()(const UnionAttendSpec& s) const {
    const UnionSpec& a = s.attend;
    return fmt::format(" union {} {} window {} top {} heads {} scale {:a} rope {}", rows_text(a.rows),
                       rows_text(a.entries), a.window, a.top, a.heads, a.scale, s.rope.dim) +
           rounding_text(a.rounded);
  }
  std::string operator()(const RoundSpec& s) const { return fmt::format(" e4m3 runs of {}", s.run); }
  std::string operator()(const GroupedSpec& s) const { return fmt::format(" groups {}", s.groups); }
  std::string operator()(const RouteSpec& s) const {
    return fmt::format(" route {} of {} scale {:a} bias {}", s.chosen, s.experts, s.scale, s.bias != nullptr);
  }
  std::string operator()(const LimitSpec& s) const { return fmt::format(" limit {:a}", s.limit); }
  std::string operator()(const SliceSpec& s) const { return fmt::format(" slice at {}", s.first); }
  std::string operator()(const KeepSpec& s) const { return fmt::format(" keep {}", rows_text(s.rows)); }
  std::string operator()(const std::shared_ptr<const ExpertsSpec>& s) const {
    std::set<std::string> matrices;
    for (const auto* all : {&s->gate, &s->up, &s->down})
      for (const PackedMatrix& m : *all) matrices.insert(describe_matrix(m));
    return fmt::format(" experts {} of {} {} limit {:a}", s->chosen, s->gate.empty() ? s->down.size() : s->gate.size(),
                       fmt::join(matrices, ", "), s->limit) +
           rounding_text(s->rounded);
  }
};

}  // namespace

std::string describe_matrix(const PackedMatrix& m) {
  const bool usual = m.input == default_input(m.format);
  return fmt::format("{}{} {}x{}", traits(m.format).name, usual ? "" : fmt::format(" by {}", act_name(m.input)), m.rows,
                     m.cols);
}

std::string describe_spec(const OpSpec& spec) { return std::visit(Describe{}, spec); }

}  // namespace stet
