#include "cli/bench_flags.h"

#include "base/error.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint32_t kMostStarts = 100, kMostRepeats = 1000, kMostTokens = 1u << 20, kMostSeconds = 86400;
constexpr uint32_t kTeacherStarts = 3;
constexpr uint64_t kMostSeed = (uint64_t{1} << 53) - 1;  // what every reader of JSON keeps

// One line without the line break at its end.
std::string read_key(const std::string& file) {
  std::string key = read_text_file(file);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty() || key.find_first_of("\r\n \t") != std::string::npos)
    fail(Code::kUsage, "{} holds no key: one line without spaces is a key", file);
  return key;
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string file_only(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// What the plan says of an engine: everything that was chosen, files by their names.
std::string engine_what(const Options& o) {
  const bool file_draft = o.draft.starts_with("model:");
  Json what = Json::parse(options_json(o));
  what.erase("cache_dir");
  what["model"] = file_only(o.model);
  if (file_draft) what["draft"] = "model:" + file_only(o.draft.substr(6));
  Json json = {{"kind", "engine"}};
  for (const auto& [key, value] : what.items()) json[key] = value;
  return dump_line(json);
}

std::string server_what(const Endpoint& endpoint, const AdapterFacts& f) {
  const bool local = endpoint.host == "localhost" || endpoint.host == "127.0.0.1" || endpoint.host == "::1";
  const char* where = !endpoint.unix_path.empty() ? "a socket of this machine"
                      : local                     ? "this machine"
                                                  : "another machine";
  return dump_line({{"kind", "server"},
                    {"where", where},
                    {"adapter", f.name},
                    {"cache", f.cache},
                    {"token_ids", f.token_ids},
                    {"cached_tokens", f.cached_tokens},
                    {"server_clock", f.server_clock},
                    {"cycles", f.cycles},
                    {"tested", f.tested}});
}

// Whether a server says that it speculates; one that says nothing is not asked for its acceptance.
bool says_speculative(const std::string& identity_json) {
  const Json identity = Json::parse(identity_json);
  for (const char* key : {"draft", "speculative_types"})
    if (const auto it = identity.find(key);
        it != identity.end() && it->is_string() && *it != "none" && *it != "unproven")
      return true;
  return false;
}

}  // namespace

void BenchFlags::declare_target(Flags& flags) {
  flags.section("What is measured: one of both");
  flags.text("--endpoint", "URL", &endpoint, "a server that runs: http://HOST:PORT or unix:PATH");
  flags.text("-m,--model", "MODEL", &model.options.model, "an engine in a fresh process of its own for every start");
  flags.section("With --endpoint");
  flags.choice("--server", &server, {"auto", "stet", "llama.cpp", "vllm", "ollama", "openai"},
               "what kind of server it is (auto: it is asked)");
  flags.text("--model-id", "NAME", &model_id, "which of the server's models (the only one)");
  flags.text("--api-key-file", "FILE", &key_file, "the key for the server");
  flags.count("--timeout", &timeout, 1, kMostSeconds, "seconds to wait for the first byte of an answer (900)");
}

void BenchFlags::declare_questions(Flags& flags) {
  flags.section("What is asked");
  flags.text("--suite", "NAME|FILE", &suite, "canary-v1, realistic-v1, boundary-v1, long-v1, or a file");
  flags.text("--steps", "ID,ID", &steps, "only these steps: such a run screens, and is no run of the suite");
  flags.count("--starts", &starts, 1, kMostStarts, "fresh processes, one after the other (1; a teacher: 3)");
  flags.count("--repeats", &repeats, 1, kMostRepeats, "the suite so often on every start, with other nonces (1)");
  flags.count("-n,--max-tokens", &max_tokens, 1, kMostTokens, "no answer is longer (the suite's)");
  flags.toggle("--ignore-eos", &ignore_eos,
               "every answer is as long as it may be; what follows its end is no real text");
  flags.seed("--nonce-seed", &nonce_seed, "of the text before every prompt (the teacher's, or drawn)");
  flags.number("-t,--temperature", &sampling.temperature, "0 is greedy (0)");
  flags.count("--top-k", &sampling.top_k, 0, INT32_MAX, "among the K most likely; 0 is off (0)");
  flags.number("--top-p", &sampling.top_p, "among the most likely that together have this probability; 1 is off (1)");
  flags.number("--min-p", &sampling.min_p, "among those at least this likely, relative to the first; 0 is off (0)");
  flags.number("--repetition-penalty", &sampling.repetition_penalty, "for tokens of prompt and answer; 1 is off (1)");
  flags.seed("--seed", &seed, "of the noise, when the temperature is above 0 (1)");
}

void BenchFlags::declare(Flags& flags) {
  declare_target(flags);
  declare_questions(flags);
  flags.section("Exactness");
  flags.toggle("--as-teacher", &as_teacher,
               "this is the plain decoder that others are compared with: no draft, 3 fresh starts");
  flags.text("--teacher", "PACKET|self", &teacher,
             "compare with a teacher's packet; self: with one made first, in this packet");
  model.declare_context(flags);
  model.declare_draft(flags);
  model.declare_machine(flags);
  flags.section("Output");
  flags.text("-o,--out", "PACKET", &out, "the folder to write; it must not exist");
  flags.text("--label", "TEXT", &label, "for people: what this is about");
  flags.text("--ledger", "FILE", &ledger, "the ledger; default $XDG_DATA_HOME/stet/ledger.sqlite");
  flags.text("--class", "NAME", &idea, "the class of ideas that it belongs to, for the ledger");
  flags.texts("--cite", "ID", &cites, "a closure of that class that is known; repeatable");
  flags.toggle("--json", &json, "print the packet's results instead of the table");
  flags.toggle("-q,--quiet", &model.quiet, "no progress");
}

void BenchFlags::check() const {
  if (endpoint.empty() == model.options.model.empty())
    fail(Code::kUsage, "{}: give --endpoint URL for a server, or --model MODEL for an engine",
         endpoint.empty() ? "nothing to measure" : "both a server and an engine were given");
  if (suite.empty()) fail(Code::kUsage, "no suite given: --suite {} or a file", fmt::join(suite_names(), ", "));
  if (out.empty()) fail(Code::kUsage, "no packet given: --out FOLDER");
  if (as_teacher && !teacher.empty()) fail(Code::kUsage, "--as-teacher and --teacher contradict each other");
  if (as_teacher && model.options.draft != "none")
    fail(Code::kUsage, "a teacher is a plain decoder: --draft is {}", model.options.draft);
  if (!endpoint.empty()) {
    if (model.options.draft != "none" || model.options.context != 0)
      fail(Code::kUsage, "--draft and --ctx are flags of the engine: a server was started with its own");
    if (teaches_itself())
      fail(Code::kUsage, "--teacher self needs --model: a server cannot be started anew as a plain decoder");
    if (starts > 1 && !as_teacher)
      fail(Code::kUsage, "--starts is {}, and a server that runs has one start: stet compare starts servers anew",
           starts);
  } else {
    model.check();
    if (server != "auto" || !model_id.empty() || !key_file.empty())
      fail(Code::kUsage, "--server, --model-id and --api-key-file belong to --endpoint");
  }
  if (nonce_seed && *nonce_seed > kMostSeed)
    fail(Code::kUsage, "--nonce-seed is {}: choose a number up to {}", *nonce_seed, kMostSeed);
  if (seed && *seed > kMostSeed) fail(Code::kUsage, "--seed is {}: choose a number up to {}", *seed, kMostSeed);
  sampling.validate(INT32_MAX);
  cited();
}

std::vector<int64_t> BenchFlags::cited() const {
  std::vector<int64_t> ids;
  for (const std::string& text : cites) ids.push_back(static_cast<int64_t>(parse_whole("--cite", text, 1, INT64_MAX)));
  return ids;
}

BenchTarget BenchFlags::target(std::function<bool()> stop) const {
  BenchTarget target;
  if (endpoint.empty()) {
    target.program = this_program();
    return target;
  }
  HttpLimits limits;
  limits.first_byte_seconds = timeout;
  target.client = std::make_unique<HttpClient>(parse_endpoint(endpoint), key_file.empty() ? "" : read_key(key_file),
                                               limits, std::move(stop));
  target.server = connect_server(*target.client, server, model_id, timeout);
  return target;
}

// What was not said is the teacher's; what was said must be too.
void BenchFlags::take_teachers(BenchQuestions& questions) const {
  const BenchQuestions theirs = questions_of_teacher(teacher, questions.suite);
  const auto differs = [](const char* flag) {
    fail(Code::kUsage, "{} differs from what the teacher was asked: leave it out, and it is the teacher's", flag);
  };
  if (nonce_seed && *nonce_seed != theirs.nonce_seed) differs("--nonce-seed");
  if (max_tokens != 0 && theirs.max_tokens != max_tokens) differs("--max-tokens");
  if (repeats != 1 && repeats != theirs.repeats) differs("--repeats");
  if (ignore_eos && !theirs.ignore_eos) differs("--ignore-eos");
  PlannedRequest a, b;
  a.sampling = questions.sampling;
  b.sampling = theirs.sampling;
  const SamplingParams unsaid = [] {
    SamplingParams p;
    p.seed = 1;
    return p;
  }();
  PlannedRequest none;
  none.sampling = unsaid;
  if (sampling_json(a) != sampling_json(none) && sampling_json(a) != sampling_json(b))
    differs("--temperature or another rule of sampling");
  questions = theirs;
}

BenchQuestions BenchFlags::questions() const {
  BenchQuestions questions;
  questions.suite = load_suite(suite);
  if (!steps.empty()) questions.suite = with_steps(questions.suite, parts_of(steps));
  questions.repeats = repeats;
  questions.sampling = sampling;
  questions.sampling.seed = seed.value_or(1);
  if (max_tokens != 0) questions.max_tokens = max_tokens;
  questions.ignore_eos = ignore_eos;
  if (!teacher.empty() && !teaches_itself()) {
    take_teachers(questions);
  } else {
    questions.nonce_seed = nonce_seed ? *nonce_seed : draw_seed();
  }
  if (questions.repeats > 1 && !questions.suite.repeats_allowed && !questions.suite.nonce)
    fail(Code::kUsage, "the suite {} may be asked once: it has no nonce that makes every prompt new",
         questions.suite.id);
  return questions;
}

uint32_t BenchFlags::teacher_starts() const { return as_teacher && starts != 0 ? starts : kTeacherStarts; }

void BenchFlags::add_endpoint_arm(BenchTarget& target, BenchJob& job) const {
  BenchArmJob arm;
  arm.name = as_teacher ? "teacher" : "A";
  arm.teacher = as_teacher;
  arm.starts = as_teacher ? teacher_starts() : 1;
  arm.speculative = says_speculative(target.server->server.json);
  if (as_teacher && arm.speculative)
    fail(Code::kUsage, "the server says that it speculates: a teacher is a plain decoder");
  arm.what_json = server_what(target.client->endpoint(), target.server->adapter->facts());
  arm.open = [&target] { return endpoint_arm(*target.client, *target.server); };
  job.arms.push_back(std::move(arm));
}

void BenchFlags::add_engine_arms(BenchTarget& target, const std::function<bool()>& stop, BenchJob& job) const {
  const auto add = [&](const char* name, bool is_teacher, uint32_t n, const Options& options) {
    BenchArmJob arm;
    arm.name = name;
    arm.teacher = is_teacher;
    arm.starts = n;
    arm.speculative = options.draft != "none";
    arm.what_json = engine_what(options);
    arm.open = [&target, options, stop] { return process_arm(target.program, options, stop); };
    job.arms.push_back(std::move(arm));
  };
  Options plain = model.options;
  plain.draft = "none";
  plain.draft_depth = 0;
  if (as_teacher || teaches_itself()) add("teacher", true, teacher_starts(), plain);
  if (!as_teacher) add("A", false, std::max(starts, 1u), model.options);
}

BenchJob BenchFlags::job(BenchTarget& target, const std::string& created, std::function<bool()> stop) const {
  BenchJob job;
  job.questions = questions();
  job.created = created;
  job.label = label;
  if (!teaches_itself()) job.teacher_packet = teacher;
  if (target.server) {
    add_endpoint_arm(target, job);
  } else {
    add_engine_arms(target, stop, job);
  }
  return job;
}

}  // namespace stet
