#include "lab/submit/submission.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/submit/submitted_arm.h"

namespace stet {
namespace {

constexpr size_t kRevisionDigits = 40;

bool is_revision(const std::string& text) {
  return text.size() == kRevisionDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_hf_id(const std::string& text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size() &&
         std::count(text.begin(), text.end(), '/') == 1 &&
         std::all_of(text.begin(), text.end(), [&](char c) { return c == '/' || allowed(c); });
}

void check_words(const SubmitterWords& words, const std::string& label, std::vector<std::string>& refused) {
  if (!is_hf_id(words.hf_id))
    refused.push_back(
        "hfId: a packet holds the hash of the model's file and not where it was published: --hf-id OWNER/NAME");
  if (!is_revision(words.revision))
    refused.push_back("modelRevision: the commit of that repository, 40 hex digits: --revision");
  if (label.empty()) refused.push_back("label: the plan has none: --label TEXT");
  if (const std::string marker = forbidden_marker(label); !marker.empty())
    refused.push_back(
        fmt::format("label: '{}' holds '{}', which marks a row as no headline: --label TEXT", label, marker));
}

// Whatever else reached the payload as text: a marker in it would contradict what the flags say.
void check_values(const Json& value, const std::string& name, std::vector<std::string>& refused) {
  if (value.is_string()) {
    if (const std::string marker = forbidden_marker(value.get<std::string>()); !marker.empty())
      refused.push_back(fmt::format("{}: it holds '{}', which marks a row as no headline", name, marker));
  } else if (value.is_structured()) {
    for (const auto& [key, member] : value.items()) check_values(member, fmt::format("{}.{}", name, key), refused);
  }
}

}  // namespace

Submission build_submission(const Packet& packet, const std::string& manifest_sha256, const SubmitterWords& words) {
  const SubmittedArm arm = submitted_arm(packet, words.arm);
  Submission s;
  s.arm = arm.planned.name;
  s.label = words.label;
  const Json plan = parse_json(packet.plan_json, "plan.json");
  if (s.label.empty()) s.label = plan.value("label", "");
  s.refused = unproved(arm);
  check_words(words, s.label, s.refused);
  if (!s.refused.empty()) return s;
  s.payload = payload_of(arm, manifest_sha256, words.hf_id, words.revision);
  check_values(s.payload, "payload", s.refused);
  if (!s.refused.empty()) s.payload = nullptr;
  return s;
}

std::string queue_text(const Submission& submission) {
  const Json queue = Json::array({{{"label", submission.label}, {"payload", submission.payload}}});
  return queue.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stet
