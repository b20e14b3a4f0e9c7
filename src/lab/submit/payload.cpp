// The payload itself. Every value is read from the packet; names are the board's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "lab/metrics/metrics.h"
#include "lab/submit/submitted_arm.h"

namespace stet {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0, kMilliseconds = 1000.0;

std::string sha256_of(const std::string& text) { return sha256_hex(text.data(), text.size()); }

// An integer median, half rounded up, as the board wants it.
int64_t whole_median(const std::vector<double>& values) {
  return static_cast<int64_t>(std::floor(median(values) + 0.5));
}

std::vector<double> counts(const SubmittedArm& s, bool prompt) {
  std::vector<double> values;
  for (const RequestRecord* r : s.lowest_requests())
    values.push_back((prompt ? r->usage.prompt_tokens : r->usage.completion_tokens).value_or(0));
  return values;
}

const Json& column(const SubmittedArm& s, const char* name) { return s.start_figures().at("summary").at(name); }

Json milliseconds(const Json& seconds) {
  return seconds.is_number() ? Json(seconds.get<double>() * kMilliseconds) : Json(nullptr);
}

// The format of most bytes names the file; all of them stand in the flags.
std::string quantization(const Json& formats) {
  const auto most = std::max_element(formats.begin(), formats.end(), [](const Json& a, const Json& b) {
    return a.at("bytes").get<uint64_t>() < b.at("bytes").get<uint64_t>();
  });
  return most->at("format").get<std::string>();
}

Json hardware(const SubmittedArm& s) {
  return {{"hwClass", "cpu"},
          {"gpuName", nullptr},
          {"gpuCount", 0},
          {"vramGb", 0},
          {"cpu", s.text("cpu_model")},
          {"ramGb", std::llround(s.identity("memory_bytes").get<double>() / kGib)},
          {"os", "Linux " + s.text("kernel_release")}};
}

void add_evidence(const SubmittedArm& s, const std::string& manifest_sha256, Json& flags) {
  flags["apiMode"] = "in-process";
  flags["evidenceFormat"] = "stet evidence packet; stet verify and stet rerun check it";
  flags["packetManifestSha256"] = manifest_sha256;
  flags["packetPlanSha256"] = s.packet->plan_sha256;
  flags["packetIdentitySha256"] = sha256_of(s.packet->identity_json);
  flags["packetResultsSha256"] = sha256_of(s.packet->results_json);
  flags["packetArm"] = s.planned.name;
  flags["starts"] = s.identities.size();
  flags["suiteInvocations"] = s.identities.size();
  flags["retries"] = 0;
  flags["ledgerBefore"] = s.results.at("ledger").is_object() ? s.results.at("ledger").at("before") : Json(nullptr);
  flags["machineNotWatched"] = s.arm.at("not_watched");
}

void add_freshness(Json& flags) {
  flags["freshResponseHeadlineValid"] = true;
  flags["historyAccelerated"] = false;
  flags["responseReuse"] = false;
  flags["prefixCaching"] = false;
  flags["contextCheckpoints"] = 0;
  flags["freshProcesses"] = true;
}

void add_metric(const SubmittedArm& s, Json& flags) {
  flags["primaryMetricName"] = kPrimaryMetric;
  flags["metricWindow"] = kMetricWindow;
  flags["metricFormula"] = "(N - tokens of the first time) / (t[N] - t[1]), N = 100: intervals, not events";
  flags["metricRule"] = s.arm.at("headline").at("rule");
  const Json& rate = column(s, "first_100_tokens_per_second");
  flags["medianTokS1To100"] = rate.at("median");
  flags["p10TokS1To100"] = rate.at("p10");
  flags["meanTokS1To100"] = rate.at("mean");
  flags["stdevTokS1To100"] = rate.at("stdev");
  flags["medianTokS1To100Inclusive"] = column(s, "first_100_historical_inclusive_tokens_per_second").at("median");
  flags["medianTokSFullAfterTtft"] = column(s, "all_tokens_per_second").at("median");
  flags["medianTokSWall"] = column(s, "wall_tokens_per_second").at("median");
  flags["medianPrefillTokS"] = column(s, "prefill_tokens_per_second").at("median");
  const Json& ttft = column(s, "ttft_seconds");
  flags["ttftMsP10"] = milliseconds(ttft.at("p10"));
  flags["ttftMsMedian"] = milliseconds(ttft.at("median"));
  flags["ttftMsMean"] = milliseconds(ttft.at("mean"));
  flags["ttftMsStdev"] = milliseconds(ttft.at("stdev"));
  flags["classBalancedTokS1To100"] = s.arm.at("class_balanced").at("first_100_tokens_per_second");
  flags["medianTokS1To100OfEachStart"] = Json::array();
  for (const Json& start : s.arm.at("by_start"))
    flags["medianTokS1To100OfEachStart"].push_back(start.at("median_first_100_tokens_per_second"));
}

void add_suite(const SubmittedArm& s, Json& flags) {
  flags["realisticSuiteGatePassed"] = true;
  flags["realisticSuiteCachedTokensAllZero"] = true;
  flags["realisticSuiteId"] = s.plan.suite.at("id");
  flags["realisticSuiteVersion"] = s.plan.suite.at("version");
  flags["realisticSuiteSha256"] = s.plan.suite.at("sha256");
  flags["realisticSuitePrompts"] = s.plan.steps.size();
  flags["realisticSuiteClasses"] = s.arm.at("class_balanced").at("classes");
  Json prompt = Json::object(), output = Json::object();
  for (const RequestRecord* r : s.lowest_requests()) {
    prompt[r->step_id] = r->usage.prompt_tokens.value_or(0);
    output[r->step_id] = r->usage.completion_tokens.value_or(0);
  }
  flags["promptTokensByPrompt"] = prompt;
  flags["outputTokensByPrompt"] = output;
}

void add_decoding(const SubmittedArm& s, Json& flags) {
  const Json sampling = parse_json(s.requests.at(0)->sampling, "the sampling parameters of a request");
  flags["temperature"] = sampling.value("temperature", Json(nullptr));
  flags["topP"] = sampling.value("top_p", Json(1));
  flags["seed"] = sampling.value("seed", Json(nullptr));
  flags["sampling"] = sampling;
  flags["maxTokens"] = s.requests.at(0)->max_tokens;
  flags["ignoreEos"] = false;
}

void add_exactness(const SubmittedArm& s, Json& flags) {
  const Json& exactness = s.arm.at("exactness");
  flags["targetVerified"] = true;
  flags["exactnessAgainst"] = exactness.at("against");
  flags["exactAnswers"] = exactness.at("equal");
  flags["comparedAnswers"] = exactness.at("compared");
  flags["repeatStepsEqual"] = exactness.at("repeat").at("equal");
  flags["repeatSteps"] = exactness.at("repeat").at("steps");
}

void add_speculation(const SubmittedArm& s, Json& flags) {
  const std::string draft = s.text("draft");
  flags["speculationMethod"] = draft;
  if (draft == "none") return;
  const Json& counts = s.arm.at("acceptance");
  const double proposed = counts.at("proposed").get<double>(), cycles = counts.at("cycles").get<double>();
  flags["speculationTokens"] = s.identity("draft_depth");
  flags["draftModelSha256"] = s.identity("draft_sha256");
  flags["draftCycles"] = counts.at("cycles");
  flags["draftTokens"] = counts.at("proposed");
  flags["draftTokensAccepted"] = counts.at("accepted");
  flags["draftAcceptanceRate"] = proposed > 0 ? counts.at("accepted").get<double>() / proposed : 0.0;
  flags["emittedPerCycle"] = counts.at("emitted").get<double>() / cycles;
  flags["acceptanceByPosition"] = counts.at("by_position");
}

void add_program(const SubmittedArm& s, Json& flags) {
  for (const char* name : {"tensorParallel", "pipelineParallel", "expertParallel", "dataParallel", "concurrency"})
    flags[name] = 1;
  const std::pair<const char*, const char*> same[] = {{"modelSha256", "model_sha256"},
                                                      {"modelFiles", "model_files"},
                                                      {"tokenizerSha256", "tokenizer_sha256"},
                                                      {"weightFormats", "weight_formats"},
                                                      {"packSha256", "pack"},
                                                      {"kvDtype", "kv"},
                                                      {"activations", "activations"},
                                                      {"profile", "profile"},
                                                      {"numericsVersion", "numerics_version"},
                                                      {"isa", "isa"},
                                                      {"replay", "replay"},
                                                      {"threads", "threads"},
                                                      {"pin", "pin"},
                                                      {"promptRows", "prompt_rows"},
                                                      {"commit", "commit"},
                                                      {"buildId", "build_id"},
                                                      {"compiler", "compiler"},
                                                      {"compilerFlags", "flags"},
                                                      {"cpuGovernor", "cpu_governor"},
                                                      {"cpuCoresOnline", "cpu_cores_online"},
                                                      {"modules", "libraries"}};
  for (const auto& [name, member] : same) {
    const Json value = s.identity(member);
    flags[name] = value.is_null() ? Json("unproven") : value;
  }
}

std::string notes(const SubmittedArm& s) {
  return fmt::format(
      "The lower of {} fresh starts. Every answer is the plain decoder's, token by token ({} of {}). tokSOut is a rate "
      "over intervals; the inclusive rate of earlier rows stands in engineFlags. hfId and modelRevision are the "
      "submitter's statement; the packet proves the SHA-256 of the model's file.",
      s.identities.size(), s.arm.at("exactness").at("equal").get<uint32_t>(),
      s.arm.at("exactness").at("compared").get<uint32_t>());
}

}  // namespace

Json payload_of(const SubmittedArm& s, const std::string& manifest_sha256, const std::string& hf_id,
                const std::string& revision) {
  Json flags = Json::object();
  add_evidence(s, manifest_sha256, flags);
  add_freshness(flags);
  add_metric(s, flags);
  add_suite(s, flags);
  add_decoding(s, flags);
  add_exactness(s, flags);
  add_speculation(s, flags);
  add_program(s, flags);
  flags["submitterStated"] = {"hfId", "modelRevision"};
  return {{"hfId", hf_id},
          {"modelRevision", revision},
          {"engineName", "stet"},
          {"engineVersion", fmt::format("{}+{}", s.text("version"), s.text("commit").substr(0, 12))},
          {"backend", "cpu"},
          {"quantization", quantization(s.identity("weight_formats"))},
          {"hardware", hardware(s)},
          {"contextLength", s.identity("context")},
          {"batchSize", 1},
          {"promptTokens", whole_median(counts(s, true))},
          {"outputTokens", whole_median(counts(s, false))},
          {"tokSOut", s.arm.at("headline").at("tokens_per_second")},
          {"tokSTotal", column(s, "wall_tokens_per_second").at("median")},
          {"ttftMs", milliseconds(column(s, "ttft_seconds").at("median"))},
          {"engineFlags", flags},
          {"notes", notes(s)}};
}

}  // namespace stet
