#include "lab/bench/suite.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "embedded/lab.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint32_t kMostTokens = 1u << 20, kMostRounds = 1000;
constexpr size_t kMostSteps = 10000, kNonceDigits = 12;

struct Embedded {
  std::string_view name;
  const std::string_view* bytes;  // filled when the program starts, nobody knows whether before this table
};
constexpr Embedded kEmbedded[] = {
    {"canary-v1", &embedded::kCanaryV1},
    {"realistic-v1", &embedded::kRealisticV1},
    {"boundary-v1", &embedded::kBoundaryV1},
    {"long-v1", &embedded::kLongV1},
};

std::vector<std::string> texts(const Json& json, const std::string& what) {
  if (!json.is_array()) fail(Code::kInput, "{}: is no list", what);
  std::vector<std::string> out;
  for (const Json& item : json) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty())
      fail(Code::kInput, "{}: holds something else than a text", what);
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<SuiteMessage> messages_of(const Json& json, const std::string& what) {
  if (!json.is_array() || json.empty()) fail(Code::kInput, "{}: messages is no list of at least one message", what);
  std::vector<SuiteMessage> out;
  for (const Json& item : json) {
    StrictObject object(item, what + ": a message");
    out.push_back({object.text("role"), object.text("content")});
    object.finish();
    if (out.back().content.empty()) fail(Code::kInput, "{}: a message is empty", what);
    if (const std::string& role = out.back().role; role != "system" && role != "user" && role != "assistant")
      fail(Code::kInput, "{}: the role of a message is '{}'; it is system, user or assistant", what, role);
  }
  if (out.back().role != "user") fail(Code::kInput, "{}: the last message is not the user's", what);
  return out;
}

class Reader {
 public:
  explicit Reader(Suite& suite, std::string what) : suite_(suite), what_(std::move(what)) {}

  void read(std::string_view bytes) {
    const Json json = parse_json(bytes, what_);
    StrictObject object(json, what_);
    suite_.id = object.text("suite_id");
    suite_.version = object.u32("version");
    suite_.description = object.text("description");
    suite_.cold = object.flag("cold");
    suite_.repeats_allowed = object.flag("repeats_allowed");
    suite_.ordered = object.flag("ordered");
    suite_.nonce = object.flag("nonce");
    max_tokens_ = whole(object, "max_tokens");
    if (suite_.nonce && suite_.repeats_allowed)
      fail(Code::kInput, "{}: nonce and repeats_allowed contradict each other: a nonce makes every prompt another one",
           what_);
    read_items(object.any("steps"));
    object.finish();
    check_repeats();
  }

 private:
  static uint32_t whole(StrictObject& object, std::string_view key) {
    return static_cast<uint32_t>(object.whole(key, 1, kMostTokens));
  }

  void read_items(const Json& items) {
    if (!items.is_array() || items.empty()) fail(Code::kInput, "{}: steps is no list of at least one step", what_);
    for (const Json& item : items) {
      if (item.is_object() && item.contains("rounds")) {
        read_block(item);
      } else {
        add(read_step(item, ""));
      }
    }
  }

  // {"rounds": n, "steps": [...]}: the steps n times, one round after the other.
  void read_block(const Json& item) {
    StrictObject object(item, what_ + ": a block");
    const auto rounds = static_cast<uint32_t>(object.whole("rounds", 1, kMostRounds));
    const Json& inner = object.any("steps");
    object.finish();
    if (!inner.is_array() || inner.empty()) fail(Code::kInput, "{}: a block has no steps", what_);
    std::vector<SuiteStep> steps;
    for (const Json& step : inner) steps.push_back(read_step(step, " of a block"));
    for (uint32_t round = 1; round <= rounds; ++round) {
      for (SuiteStep step : steps) {
        step.round = round;
        step.id = fmt::format("{}@{}", step.id, round);
        add(std::move(step));
      }
    }
  }

  SuiteStep read_step(const Json& json, std::string_view where) {
    StrictObject object(json, fmt::format("{}: a step{}", what_, where));
    SuiteStep step;
    step.id = object.text("id");
    if (step.id.empty() || step.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
      fail(Code::kInput, "{}: the id '{}' is not made of a-z, 0-9 and -", what_, step.id);
    const std::string what = fmt::format("{}: step {}", what_, step.id);
    step.step_class = object.text("class");
    step.messages = messages_of(object.any("messages"), what);
    step.max_tokens = object.has("max_tokens") ? whole(object, "max_tokens") : max_tokens_;
    if (object.has("expect")) {
      StrictObject expect(object.any("expect"), what + ": expect");
      step.ideal = expect.text("exact");
      expect.finish();
    }
    if (object.has("action")) {
      StrictObject action(object.any("action"), what + ": action");
      step.cancel_after_tokens = action.u32("cancel_after_tokens");
      action.finish();
    }
    if (object.has("stop")) step.stop = texts(object.any("stop"), what + ": stop");
    if (object.has("ignore_eos")) step.ignore_eos = object.flag("ignore_eos");
    object.finish();
    return step;
  }

  void add(SuiteStep step) {
    if (!ids_.insert(step.id).second) fail(Code::kInput, "{}: two steps are called {}", what_, step.id);
    if (suite_.steps.size() >= kMostSteps) fail(Code::kInput, "{}: more than {} steps", what_, kMostSteps);
    suite_.steps.push_back(std::move(step));
  }

  void check_repeats() const {
    if (suite_.repeats_allowed) return;
    std::set<std::string> seen;
    for (const SuiteStep& step : suite_.steps)
      if (!seen.insert(messages_json(step.messages)).second)
        fail(Code::kInput, "{}: step {} repeats a prompt, and repeats_allowed is false", what_, step.id);
  }

  Suite& suite_;
  const std::string what_;
  uint32_t max_tokens_ = 0;
  std::set<std::string> ids_;
};

}  // namespace

uint32_t Suite::most_tokens() const {
  uint32_t most = 0;
  for (const SuiteStep& step : steps) most = std::max(most, step.max_tokens);
  return most;
}

Suite parse_suite(std::string_view bytes, const std::string& what) {
  Suite suite;
  suite.sha256 = sha256_hex(bytes.data(), bytes.size());
  Reader(suite, what).read(bytes);
  return suite;
}

std::vector<std::string_view> suite_names() {
  std::vector<std::string_view> names;
  for (const Embedded& e : kEmbedded) names.push_back(e.name);
  return names;
}

Suite load_suite(const std::string& name_or_file) {
  for (const Embedded& e : kEmbedded)
    if (e.name == name_or_file) return parse_suite(*e.bytes, "suite " + name_or_file);
  if (name_or_file.find('/') == std::string::npos && !name_or_file.ends_with(".json"))
    fail(Code::kUsage, "there is no suite '{}': choose one of {}, or name a file (a path with / or .json)",
         name_or_file, fmt::join(suite_names(), ", "));
  const MappedFile file(name_or_file);
  const auto bytes = file.bytes();
  return parse_suite({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name_or_file);
}

Suite with_steps(const Suite& suite, const std::vector<std::string>& ids) {
  std::set<std::string, std::less<>> wanted(ids.begin(), ids.end()), found;
  Suite out = suite;
  std::erase_if(out.steps, [&](const SuiteStep& step) {
    const std::string name = step.id.substr(0, step.id.find('@'));
    if (!wanted.contains(name)) return true;
    found.insert(name);
    return false;
  });
  for (const std::string& id : ids)
    if (!found.contains(id)) fail(Code::kUsage, "suite {} has no step '{}'", suite.id, id);
  return out;
}

std::vector<SuiteMessage> step_messages(const Suite& suite, const SuiteStep& step, uint64_t nonce_seed,
                                        uint32_t repeat) {
  std::vector<SuiteMessage> messages = step.messages;
  if (!suite.nonce) return messages;
  const std::string key = fmt::format("{}/{}/{}/{}", suite.sha256, nonce_seed, repeat, step.id);
  messages.front().content =
      fmt::format("[{}]\n{}", sha256_hex(key.data(), key.size()).substr(0, kNonceDigits), messages.front().content);
  return messages;
}

std::string messages_json(const std::vector<SuiteMessage>& messages) {
  Json json = Json::array();
  for (const SuiteMessage& m : messages) json.push_back({{"role", m.role}, {"content", m.content}});
  return dump_line(json);
}

std::vector<SuiteMessage> parse_messages(std::string_view json, const std::string& what) {
  return messages_of(parse_json(json, what), what);
}

}  // namespace stet
