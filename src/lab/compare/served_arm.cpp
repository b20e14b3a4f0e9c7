#include "lab/compare/served_arm.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace stet {
namespace {

constexpr double kEndSeconds = 20;
constexpr auto kServedPoll = std::chrono::milliseconds(50);

std::vector<std::string> serve_words(const ArmSpec& spec, const std::string& program, const std::string& socket) {
  static constexpr std::string_view kOurs[] = {"--listen", "--port", "--host", "--quiet", "-q"};
  std::vector<std::string> words = {program, "serve"};
  for (const std::string& word : spec.words) {
    const std::string name = word.substr(0, word.find('='));
    if (std::find(std::begin(kOurs), std::end(kOurs), name) != std::end(kOurs))
      fail(Code::kUsage, "a serve: arm cannot have {}: where and how it listens is the comparison's business", name);
    words.push_back(word);
  }
  words.insert(words.end(), {"--listen", "unix:" + socket, "--quiet"});
  return words;
}

std::vector<std::string> command_words(const ArmSpec& spec, unsigned port) {
  std::vector<std::string> words = spec.words;
  for (std::string& word : words)
    for (size_t at = 0; (at = word.find("{port}", at)) != std::string::npos;) word.replace(at, 6, std::to_string(port));
  return words;
}

}  // namespace

ServedArm::ServedArm(const ArmSpec& spec, const ServedArmOptions& options) {
  STET_CHECK(spec.kind != ArmKind::measure);
  std::string url = spec.words.at(0), kind = "auto", key = options.api_key;
  if (spec.kind == ArmKind::serve) {
    const std::string socket = folder_.file("socket");
    process_ = std::make_unique<ChildProcess>(serve_words(spec, options.program, socket), folder_.file("out"),
                                              folder_.file("log"));
    url = "unix:" + socket;
    kind = "stet";
    key.clear();
  } else if (spec.kind == ArmKind::command) {
    const unsigned port = free_port();
    process_ = std::make_unique<ChildProcess>(command_words(spec, port), folder_.file("out"), folder_.file("log"));
    url = fmt::format("http://127.0.0.1:{}", port);
  }
  client_ = std::make_unique<HttpClient>(parse_endpoint(url), key, HttpLimits{}, options.stop);
  if (process_) wait_until_ready(options);
  connected_ = connect_server(*client_, kind, spec.kind == ArmKind::serve ? "" : options.model, options.ready_seconds);
}

ServedArm::~ServedArm() {
  if (process_) process_->end(kEndSeconds);
}

void ServedArm::wait_until_ready(const ServedArmOptions& options) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.ready_seconds);
  while (client_->get("/health").status != kHttpOk && client_->get("/v1/models").status != kHttpOk) {
    if (const auto code = process_->exit_code())
      fail(Code::kInput, "the server ended with code {} before it answered; its last words: {}", *code,
           process_->last_words());
    if (std::chrono::steady_clock::now() > until)
      fail(Code::kInput, "the server did not answer within {} s; its last words: {}", options.ready_seconds,
           process_->last_words());
    if (options.stop && options.stop()) fail(Code::kCancelled, "interrupted while a server started");
    std::this_thread::sleep_for(kServedPoll);
  }
}

std::optional<double> ServedArm::metric(const std::string& name) {
  const HttpReplyRecord reply = client_->get("/metrics");
  return reply.status == kHttpOk ? metric_in(reply.body, name) : std::nullopt;
}

std::optional<double> metric_in(std::string_view text, const std::string& name) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(name)) continue;
    std::string_view rest = line.substr(name.size());
    if (rest.starts_with('{')) rest.remove_prefix(std::min(rest.size(), rest.rfind('}') + 1));
    if (!rest.starts_with(' ')) continue;
    rest.remove_prefix(1);
    double value = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec == std::errc()) sum = sum.value_or(0) + value;
  }
  return sum;
}

}  // namespace stet
