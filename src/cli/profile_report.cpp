#include "cli/profile_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string plural(uint32_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

std::string heading(const ProfileReport& r, const ProfileOptions& o, const EngineInfo& info) {
  const std::string machine = info.device == "cuda"
                                  ? info.device_name
                                  : fmt::format("the processor ({}, {})", info.isa, plural(info.threads, "thread"));
  return fmt::format(
      "{}{}: a pass of {} behind {} of context, on {}; {} KV, weights {}\n"
      "read ceiling {:.1f} GB/s ({:.1f} before, {:.1f} after)\n\n",
      info.model_name, info.synthetic ? " (synthetic)" : "", plural(o.rows, "row"), plural(o.context, "token"), machine,
      info.kv, info.weights_place, r.ceiling() / 1e9, r.ceiling_before / 1e9, r.ceiling_after / 1e9);
}

std::string stage_line(const StageTime& s, const std::string& name, const std::string& count, double whole,
                       double ceiling) {
  return fmt::format("{:<34} {:>4} {:>10.1f} {:>6.1f} {:>9.2f} {:>8.1f} {:>9.1f}\n", name, count, s.seconds * 1e6,
                     percent(s.seconds, whole), static_cast<double>(s.reads.total()) / 1e6, s.bytes_per_second() / 1e9,
                     percent(s.bytes_per_second(), ceiling));
}

std::string time_line(const char* name, double seconds, double whole, const std::string& note = "") {
  return fmt::format("{:<34} {:>4} {:>10.1f} {:>6.1f}{}{}\n", name, "", seconds * 1e6, percent(seconds, whole),
                     note.empty() ? "" : "  ", note);
}

std::string outside_name(const EngineInfo& info) {
  return info.device == "cuda" ? "logits to the host" : "outside the stages";
}

std::string pass_table(const ProfileReport& r, const EngineInfo& info, bool all) {
  const PassProfile& p = r.pass;
  const double whole = p.whole.measured;
  std::string out = fmt::format("{:<34} {:>4} {:>10} {:>6} {:>9} {:>8} {:>9}\n", "stage", "n", "us", "%", "MB read",
                                "GB/s", "% ceiling");
  for (const StageTime& s : all ? p.stages : p.by_kind())
    out += stage_line(s, all ? s.name : s.kind, all ? "1" : s.name, whole, r.ceiling());
  StageTime sum{"", "", p.sum(), p.reads()};
  out += stage_line(sum, "all stages", std::to_string(p.stages.size()), whole, r.ceiling());
  out += time_line(outside_name(info).c_str(), p.outside, whole);
  out += time_line("gap", p.whole.gap(), whole, p.whole.holds() ? "" : "does not reconcile: above 3 %");
  out +=
      time_line("the pass, nothing watching", whole, whole,
                p.watched > 0 ? fmt::format("watched {:.1f} us, {:+.1f} %", p.watched * 1e6, 100 * p.overhead()) : "");
  return out + fmt::format("\nstages: {}; {}\n", p.how,
                           info.device == "cuda" ? plural(p.repeats, "run") + " of each"
                                                 : plural(p.repeats, "pair") + " of runs, the fastest quarter of each");
}

std::string cycle_table(const CycleProfile& c, const EngineInfo& info) {
  if (c.cycles == 0) return "";
  const double whole = c.whole.measured;
  std::string out = fmt::format("\na cycle, draft {}{}: {}, {:.2f} tokens proposed and {:.2f} committed in each\n",
                                info.draft, info.draft_depth > 0 ? fmt::format(", depth {}", info.draft_depth) : "",
                                plural(c.cycles, "cycle"), c.proposed, c.tokens);
  out += time_line("draft", c.draft, whole);
  out += time_line("verify", c.verify, whole);
  const bool on_device = info.device == "cuda" && c.watched == 0;
  out += time_line(on_device ? "accept and commit" : "accept", c.accept, whole);
  if (!on_device) out += time_line("commit", c.commit, whole);
  out += time_line("between two cycles", c.between, whole);
  out += time_line("gap", c.whole.gap(), whole, c.whole.holds() ? "" : "does not reconcile: above 3 %");
  const std::string watched =
      c.watched > 0 ? fmt::format("watched {:.1f} us, {:+.1f} %", c.watched * 1e6, percent(c.watched - whole, whole))
                    : "";
  const char* name = c.watched > 0 ? "the cycle, nothing watching" : "the cycle, by the host's clock";
  return out + time_line(name, whole, whole, watched);
}

Json reads_json(const StageReads& r) {
  return {{"weight_bytes", r.weights}, {"kv_bytes", r.kv}, {"activation_bytes", r.activations}};
}

Json stage_json(const StageTime& s, double ceiling) {
  Json out = reads_json(s.reads);
  out["seconds"] = s.seconds;
  out["ceiling_share"] = s.bytes_per_second() / ceiling;
  return out;
}

Json whole_json(const Reconciliation& w) {
  return {{"measured_seconds", w.measured},
          {"parts_seconds", w.parts},
          {"gap_seconds", w.gap()},
          {"reconciles", w.holds()}};
}

Json pass_json(const ProfileReport& r) {
  const PassProfile& p = r.pass;
  Json stages = Json::array(), kinds = Json::array();
  for (const StageTime& s : p.stages) {
    stages.push_back(stage_json(s, r.ceiling()));
    stages.back()["name"] = s.name;
  }
  for (const StageTime& s : p.by_kind()) {
    kinds.push_back(stage_json(s, r.ceiling()));
    kinds.back()["kind"] = s.kind;
    kinds.back()["stages"] = std::stoul(s.name);
  }
  Json out = whole_json(p.whole);
  out["how"] = p.how;
  out["repeats"] = p.repeats;
  out["stages"] = stages;
  out["kinds"] = kinds;
  out["outside_seconds"] = p.outside;
  out["watched_seconds"] = p.watched > 0 ? Json(p.watched) : Json(nullptr);
  return out;
}

Json cycle_json(const CycleProfile& c) {
  if (c.cycles == 0) return nullptr;
  Json out = whole_json(c.whole);
  out["cycles"] = c.cycles;
  out["proposed"] = c.proposed;
  out["tokens"] = c.tokens;
  out["draft_seconds"] = c.draft;
  out["verify_seconds"] = c.verify;
  out["accept_seconds"] = c.accept;
  out["commit_seconds"] = c.commit;
  out["between_seconds"] = c.between;
  out["watched_seconds"] = c.watched > 0 ? Json(c.watched) : Json(nullptr);
  return out;
}

std::string missed(const char* what, const Reconciliation& w) {
  if (w.holds()) return "";
  return fmt::format("the parts of {} are {:.1f} us and it takes {:.1f}, {:+.1f} %", what, w.parts * 1e6,
                     w.measured * 1e6, percent(w.gap(), w.measured));
}

}  // namespace

std::string profile_table(const ProfileReport& report, const ProfileOptions& options, const EngineInfo& info,
                          bool all) {
  return heading(report, options, info) + pass_table(report, info, all) + cycle_table(report.cycle, info);
}

std::string profile_json(const ProfileReport& report, const ProfileOptions& options, const EngineInfo& info) {
  const Json out = {{"model", info.model_name},
                    {"synthetic", info.synthetic},
                    {"device", info.device},
                    {"device_name", info.device_name},
                    {"isa", info.isa},
                    {"threads", info.threads},
                    {"kv", info.kv},
                    {"activations", info.activations},
                    {"weights", info.weights_place},
                    {"context", options.context},
                    {"rows", options.rows},
                    {"draft", info.draft},
                    {"draft_depth", info.draft_depth},
                    {"ceiling_bytes_per_second", report.ceiling()},
                    {"ceiling_before", report.ceiling_before},
                    {"ceiling_after", report.ceiling_after},
                    {"pass", pass_json(report)},
                    {"cycle", cycle_json(report.cycle)},
                    {"reconciles", report.reconciles()}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string unreconciled(const ProfileReport& report) {
  std::string out = missed("the pass", report.pass.whole);
  if (report.cycle.cycles == 0) return out;
  const std::string cycle = missed("the cycle", report.cycle.whole);
  return out + (out.empty() || cycle.empty() ? "" : "; ") + cycle;
}

}  // namespace stet
