// Feeds arbitrary bytes to the reader of HTTP requests and to the guard: at once, byte by byte, and in pieces that the
// bytes themselves choose. The requests and verdicts must be the same, and nothing may pass the guard that names
// another host.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/guard.h"
#include "server/http/request_reader.h"

namespace {

constexpr size_t kHeaderLimit = 512;
constexpr uint64_t kBodyLimit = 4096;

// Where nothing is said of a host but its letters, only these pass.
void check_passed(const stet::http::RequestHead& head, const stet::http::GuardVerdict& verdict) {
  std::string host(head.value("host"));
  for (char& c : host) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (!host.starts_with('[')) host = host.substr(0, host.find(':'));
  const bool known = host == "localhost" || host == "127.0.0.1" || host == "10.1.2.3" || host == "box.lan";
  if (!known && !host.starts_with('[')) std::abort();
  if (verdict.path.empty() || (verdict.path[0] != '/' && verdict.path != "*")) std::abort();
  for (const char c : verdict.path + verdict.query)
    if (c <= ' ' || c == 0x7f || c == '#') std::abort();
  const std::string_view origin = head.value("origin");
  if (origin == "null" || head.count("host") != 1) std::abort();
}

// The requests that were read, and the verdicts on them, up to the first that was refused as malformed.
std::string http_outcome(std::string_view text, size_t step) {
  stet::http::GuardRules rules;
  rules.hosts = {"box.lan"};
  rules.origins = {"http://localhost:3000"};
  std::string seen, buffer;
  stet::http::RequestReader reader(kHeaderLimit, kBodyLimit);
  for (size_t at = 0; at < text.size();) {
    const size_t n = step != 0 ? step : static_cast<uint8_t>(text[at]) % 17 + 1;
    buffer += text.substr(at, n);
    at += n;
    for (bool moved = true; moved;) {
      const size_t taken = reader.feed(buffer);
      buffer.erase(0, taken);
      moved = taken > 0;
      using State = stet::http::RequestReader::State;
      if (reader.state() == State::refused) return seen;
      if (reader.state() == State::head_done) {
        const stet::http::RequestHead& head = reader.head();
        seen += head.method + "|" + head.target + "\n";
        for (const auto& field : head.fields) seen += field.name + "|" + field.value + "\n";
        if (check_framing(head)) return seen;
        const stet::http::GuardVerdict verdict = guard(rules, head, "10.1.2.3");
        if (!verdict.refusal) check_passed(head, verdict);
        seen += verdict.refusal.message + "|" + check_abilities(head, kBodyLimit).message + "\n";
        reader.read_body();
        moved = true;
      }
      if (reader.state() == State::done) {
        seen += reader.take_body() + "\n";
        reader = stet::http::RequestReader(kHeaderLimit, kBodyLimit);
        moved = true;
      }
    }
  }
  return seen;
}

void fuzz_http_request(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = http_outcome(text, size + 1);
  // The refusals may differ: in pieces, the end of a head is waited for before its faults are named.
  if (http_outcome(text, 1) != whole || http_outcome(text, 0) != whole) std::abort();
  // The guard's own readers, without the request around them.
  const auto host = stet::http::parse_authority(text);
  if (host && stet::http::parse_authority(host->host) != stet::http::HostPort{host->host, 0}) std::abort();
  const auto origin = stet::http::parse_origin(text);
  if (origin && !stet::http::parse_origin(origin_text(*origin))) std::abort();
}

}  // namespace

#ifndef STET_FUZZ_IN_TESTS  // a test program holds several of them
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_http_request(data, size);
  return 0;
}
#endif
