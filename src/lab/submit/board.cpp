#include "lab/submit/board.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.h"
#include "base/visible_text.h"
#include "base/strict_json.h"

namespace stet {
namespace {

namespace fs = std::filesystem;

constexpr int kTooMany = 429, kFirstGood = 200, kLastGood = 299;
constexpr double kMsPerSecond = 1000.0, kMostWaitSeconds = 600.0, kUsualWaitSeconds = 10.0;
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr size_t kShownBody = 300;

std::string shown_body(const std::string& body) {
  std::string text = body.substr(0, kShownBody);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "it said nothing more" : visible_text(text) + (body.size() > kShownBody ? "..." : "");
}

Json body_of(const HttpReplyRecord& reply) {
  Json json = Json::parse(reply.body, nullptr, false);
  return json.is_object() ? json : Json::object();
}

std::string id_of(const HttpReplyRecord& reply) {
  const Json json = body_of(reply);
  for (const char* name : {"id", "_id", "benchmarkId"})
    if (const auto it = json.find(name); it != json.end() && it->is_string()) return it->get<std::string>();
  return "";
}

double patience(const HttpReplyRecord& reply) {
  const Json json = body_of(reply);
  const auto it = json.find("retryAfterMs");
  const bool said = it != json.end() && it->is_number() && it->get<double>() >= 0;
  return std::min(said ? it->get<double>() / kMsPerSecond : kUsualWaitSeconds, kMostWaitSeconds);
}

void wait(double seconds, const BoardRequest& request) {
  if (request.waiting) request.waiting(seconds);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (request.stop && request.stop()) fail(Code::kCancelled, "interrupted while the board asked for patience");
    std::this_thread::sleep_for(kTick);
  }
}

bool in_git_tree(const std::string& file) {
  std::error_code error;
  for (fs::path folder = fs::weakly_canonical(file, error).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", error)) return true;
    if (folder == folder.root_path()) break;
  }
  return false;
}

// Of a reply that is no success: what to say, and what the ledger keeps.
[[noreturn]] void refuse(Ledger& ledger, const BoardRequest& request, const HttpReplyRecord& reply) {
  const std::string where = request.address.shown();
  // The clock of a request that never had a connection stands still.
  if (reply.status == 0 && reply.sent_ns == reply.end_ns) {
    ledger.end_submission(request.subject, SubmissionEnd::not_sent, reply.error);
    fail(Code::kInput, "no board answers at {}: {}; nothing was sent", where, reply.error);
  }
  if (!reply.complete)
    fail(Code::kInput,
         "{} ended the connection without a whole answer ({}): whether the row was taken is not known, and it is not "
         "sent again; look at the board",
         where, reply.error);
  ledger.end_submission(request.subject, SubmissionEnd::refused, fmt::format("HTTP {}", reply.status));
  fail(Code::kInput, "the board at {} refused the row with HTTP {}: {}", where, reply.status, shown_body(reply.body));
}

}  // namespace

BoardAddress board_address(const std::string& url) {
  constexpr std::string_view kHttp = "http://";
  const size_t slash = url.starts_with(kHttp) ? url.find('/', kHttp.size()) : std::string::npos;
  BoardAddress address;
  address.path = slash == std::string::npos ? "/" : url.substr(slash);
  if (url.starts_with("https://"))
    fail(Code::kUsage,
         "the address '{}' asks for TLS, which stet does not speak: open a tunnel on this machine (stunnel, socat) and "
         "name its http:// end, or send what --dry-run prints with curl",
         visible_text(url));
  if (address.path.find_first_of("?#") != std::string::npos)
    fail(Code::kUsage, "the address '{}' has a query or a fragment", visible_text(url));
  for (const char c : address.path)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f')
      fail(Code::kUsage, "the address '{}' holds a space or a control character", visible_text(url));
  address.endpoint = parse_endpoint(url.substr(0, slash));
  const std::string& host = address.endpoint.host;
  if (address.endpoint.unix_path.empty() && host != "localhost" && host != "::1" && !host.starts_with("127."))
    fail(Code::kUsage,
         "'{}' is another machine, and over http everybody on the way reads the key: open a tunnel on this machine "
         "(ssh -L, stunnel) and name its end",
         visible_text(host));
  return address;
}

std::string board_key(const std::string& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) fail(Code::kInput, "the key file {} is not there", file);
  if ((status.st_mode & 077) != 0) fail(Code::kResource, "others can read the key file {}: chmod 600", file);
  if (in_git_tree(file)) fail(Code::kUsage, "the key file {} lies in a Git tree, where it ends up in a commit", file);
  std::ifstream in(file, std::ios::binary);
  std::string key((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty() || std::any_of(key.begin(), key.end(), [](char c) { return c <= ' ' || c == '\x7f'; }))
    fail(Code::kUsage, "{} holds no key: one line without spaces is a key", file);
  return key;
}

BoardAnswer send_to_board(Ledger& ledger, const BoardRequest& request) {
  HttpClient client(request.address.endpoint, request.key, HttpLimits{}, request.stop);
  ledger.begin_submission(request.subject, "to " + request.address.shown());
  HttpReplyRecord reply = client.post(request.address.path, request.payload);
  if (reply.complete && reply.status == kTooMany) {
    try {
      wait(patience(reply), request);
    } catch (const Error&) {
      ledger.end_submission(request.subject, SubmissionEnd::refused, "HTTP 429, then interrupted");
      throw;
    }
    reply = client.post(request.address.path, request.payload);
  }
  if (!reply.complete || reply.status < kFirstGood || reply.status > kLastGood) refuse(ledger, request, reply);
  const BoardAnswer answer{reply.status, id_of(reply)};
  ledger.end_submission(request.subject, SubmissionEnd::taken,
                        fmt::format("HTTP {}{}", answer.status, answer.id.empty() ? "" : ", id " + answer.id));
  return answer;
}

}  // namespace stet
