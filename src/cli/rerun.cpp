// stet rerun: the recorded tokens of a packet, fed through the model here.
#include "lab/rerun/rerun.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "engine/identity.h"
#include "lab/packet/verify.h"

namespace stet {
namespace {

using RerunOutcome = RerunRequest::Outcome;

struct RerunFlags {
  ModelFlags model;
  std::string packet;
  bool other_model = false, json = false;

  void declare(Flags& flags) {
    flags.positional("PACKET", &packet, "the folder that stet bench, compare or spec-eval wrote");
    model.declare_model(flags);
    model.declare_context(flags);
    flags.toggle("--other-model", &other_model, "go on when the packet was made with another model file");
    model.declare_machine(flags);
    flags.section("Output");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
    flags.toggle("-q,--quiet", &model.quiet, "no progress");
  }
};

const char* outcome_name(RerunOutcome outcome) {
  switch (outcome) {
    case RerunOutcome::confirmed:
      return "confirmed";
    case RerunOutcome::differs:
      return "differs";
    case RerunOutcome::not_confirmed:
      return "not confirmed";
  }
  return "";
}

std::string request_line(const RerunRequest& r) {
  std::string line =
      fmt::format("{:<13} {} ({}): {} of {} tokens", outcome_name(r.outcome), r.id, r.step, r.confirmed, r.tokens);
  if (!r.why.empty()) line += "; " + r.why;
  if (r.tokenised_here && r.outcome != RerunOutcome::not_confirmed) line += "; its prompt was tokenised here";
  return line + "\n";
}

std::string summary_line(const RerunReport& report, const ModelMatch& match) {
  return fmt::format("{} of {} requests confirmed, {} tokens; {} differ, {} not confirmed; model file: {}\n",
                     report.count(RerunOutcome::confirmed), report.requests.size(), report.confirmed_tokens(),
                     report.count(RerunOutcome::differs), report.count(RerunOutcome::not_confirmed), match.state);
}

std::string json_of(const RerunReport& report, const ModelMatch& match) {
  nlohmann::ordered_json requests = nlohmann::ordered_json::array();
  for (const RerunRequest& r : report.requests)
    requests.push_back({{"id", r.id},
                        {"arm", r.arm},
                        {"step", r.step},
                        {"outcome", outcome_name(r.outcome)},
                        {"tokens", r.tokens},
                        {"confirmed", r.confirmed},
                        {"tokenised_here", r.tokenised_here},
                        {"why", r.why}});
  const nlohmann::ordered_json json = {{"confirmed", report.count(RerunOutcome::confirmed)},
                                       {"differ", report.count(RerunOutcome::differs)},
                                       {"not_confirmed", report.count(RerunOutcome::not_confirmed)},
                                       {"confirmed_tokens", report.confirmed_tokens()},
                                       {"model_file", match.state},
                                       {"requests", requests}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

ModelMatch checked_match(Engine& engine, const Packet& packet, const RerunFlags& flags) {
  const ModelMatch match = match_model(packet, engine_identity(engine, true));
  if (match.state == "other" && !flags.other_model)
    fail(Code::kUsage,
         "the packet was made with another model file (SHA-256 {}); name that one, or go on with --other-model",
         match.what);
  return match;
}

int exit_for(const RerunReport& report) {
  for (const RerunRequest& r : report.requests)
    if (r.outcome == RerunOutcome::differs) {
      report_error(fmt::format("request '{}': {}", r.id, r.why));
      return kExitDiverged;
    }
  if (report.count(RerunOutcome::confirmed) == 0) {
    const std::string why = report.requests.empty() ? "it has no requests" : report.requests[0].why;
    fail(Code::kUnsupported, "nothing of this packet can be run again: {}", why);
  }
  return report.count(RerunOutcome::not_confirmed) > 0 ? kExitUnproven : kExitOk;
}

}  // namespace

int rerun_main(std::span<const std::string> arguments) {
  RerunFlags flags;
  Flags parser("rerun",
               "Feeds the recorded tokens of a packet through the model here, and confirms every one of them or names "
               "the first\n"
               "that is another: with any number of threads, any instruction set and any replay mode.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  if (flags.packet.empty()) fail(Code::kUsage, "no packet given: stet rerun PACKET -m MODEL");
  flags.model.check();
  const Packet packet = read_packet(flags.packet);
  const std::unique_ptr<Engine> engine = flags.model.load();
  const ModelMatch match = checked_match(*engine, packet, flags);
  ProgressLine progress(!flags.model.quiet);
  const RerunReport report = rerun(*engine, packet, [&](size_t done, size_t total) {
    if (interrupts() > 0) fail(Code::kCancelled, "interrupted after {} of {} requests", done, total);
    progress.show(fmt::format("{} of {} requests", done, total));
  });
  progress.clear();
  if (flags.json) {
    write_out(json_of(report, match));
  } else {
    for (const RerunRequest& r : report.requests) show_out(request_line(r));
    show_out(summary_line(report, match));
  }
  return exit_for(report);
}

}  // namespace stet
