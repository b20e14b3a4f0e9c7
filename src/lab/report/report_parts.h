// The parts of a report. Each gives HTML, and says "not in this packet" where what it shows is missing.
#pragma once

#include <string>
#include <vector>

#include "lab/packet/packet.h"
#include "lab/report/look.h"

namespace stet {

struct ReportInput {
  const Packet& packet;
  Json plan, results, identity;  // results: without their envelope
  std::string kind;              // of the plan
};

// What a kind of plan shows of itself.
struct ReportKind {
  std::string_view kind, title;
  std::string (*verdicts)(const ReportInput& input);
  std::string (*figures)(const ReportInput& input);
  std::string (*pictures)(const ReportInput& input);
};
const ReportKind& report_kind(std::string_view kind);  // unknown ones are shown member by member

std::string bench_verdicts(const ReportInput& input);
std::string bench_figures(const ReportInput& input);
std::string bench_pictures(const ReportInput& input);
std::string bench_requests(const ReportInput& input);
std::string compare_verdicts(const ReportInput& input);
std::string compare_figures(const ReportInput& input);
std::string compare_pictures(const ReportInput& input);
std::string plain_verdicts(const ReportInput& input);
std::string plain_figures(const ReportInput& input);
std::string no_pictures(const ReportInput& input);

std::string identity_part(const ReportInput& input);
std::string plan_part(const ReportInput& input);

// "not in this packet", as a paragraph.
std::string missing_part(std::string_view what);
// What is proved, what is not, and what makes it invalid, as three lists; empty ones are left out.
std::string verdict_lists(const std::vector<std::string>& proved, const std::vector<std::string>& unproven,
                          const std::vector<std::string>& invalid);
// A table with a row for every leaf.
std::string leaf_table(std::string_view caption, const Json& json);
// Requests of one arm as lines over time, where `counts` says that their speed may be shown.
std::string timeline_part(const ReportInput& input, const std::vector<std::string>& arms,
                          bool (*counts)(const ReportInput&, const RequestRecord&));

}  // namespace stet
