#include "lab/ledger/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace stet {
namespace {

constexpr size_t kLastShown = 5;

void read_journal(Ledger& ledger, LabState& state) {
  for (const JournalRow& row : ledger.journal()) {
    if (row.kind == "lane") {
      state.lane = row.text;
      state.lane_since = row.at;
    } else if (row.kind == "next") {
      state.next = row.text;
      state.next_since = row.at;
    } else if (row.kind == "protect" || row.kind == "release") {
      std::erase_if(state.protected_work, [&](const ProtectedWork& p) { return p.what == row.subject; });
      if (row.kind == "protect") state.protected_work.push_back({row.subject, row.text, row.at});
    }
  }
}

void read_attempts(Ledger& ledger, LabState& state) {
  std::vector<AttemptRow> rows = ledger.attempts();
  std::reverse(rows.begin(), rows.end());
  for (const AttemptRow& row : rows) {
    if (row.live) state.live_attempts.push_back(row);
    if (!row.live && row.outcome != "refused" && state.last.size() < kLastShown) state.last.push_back(row);
    std::error_code ignored;
    const std::string partial = row.plan.packet + ".partial";
    if (!row.plan.packet.empty() && row.outcome != "refused" && std::filesystem::exists(partial, ignored))
      state.unfinished.push_back({row.id, partial, row.live});
  }
}

void suggest(LabState& state) {
  for (const AttemptRow& row : state.live_attempts)
    state.suggestions.push_back(fmt::format("attempt {} ({}) is running{}: leave the machine to it", row.id,
                                            row.plan.kind,
                                            row.treated.empty() ? "" : " and has reached its treatment"));
  for (const UnfinishedPacket& packet : state.unfinished)
    if (!packet.live)
      state.suggestions.push_back(fmt::format("attempt {} left {} incomplete: keep it as evidence, or remove it",
                                              packet.attempt, packet.partial));
  if (state.lane.empty()) state.suggestions.emplace_back("no lane is named: stet state --lane TEXT");
}

}  // namespace

LabState lab_state(Ledger& ledger) {
  LabState state;
  read_journal(ledger, state);
  read_attempts(ledger, state);
  state.running = running_processes(running_folder(ledger.path()));
  std::sort(state.running.begin(), state.running.end(),
            [](const RunningProcess& x, const RunningProcess& y) { return x.since < y.since; });
  for (ClassState& c : ledger.classes())
    if (c.closed) state.closed_classes.push_back(std::move(c));
  suggest(state);
  return state;
}

}  // namespace stet
