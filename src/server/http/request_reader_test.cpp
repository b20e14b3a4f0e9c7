// Requests out of bytes: the same ones however they are cut, and every malformed kind by its status.
#include "server/http/request_reader.h"

#include <gtest/gtest.h>

#include <random>

#define STET_FUZZ_IN_TESTS
#include "../tests/fuzz/fuzz_http_request.cpp"

namespace stet::http {
namespace {

using State = RequestReader::State;

struct Read {
  int status = 0;  // of the refusal
  std::string method, target, body;
  State state = State::head;
};

// Framing and abilities are checked as the connection does it.
Read read(std::string_view text, size_t max_header = 1024, uint64_t max_body = 64) {
  RequestReader reader(max_header, max_body);
  Read r;
  while (!text.empty()) {
    const size_t n = reader.feed(text);
    text.remove_prefix(n);
    if (reader.state() == State::head_done) {
      Refusal why = check_framing(reader.head());
      if (!why) why = check_abilities(reader.head(), max_body);
      if (why) return {why.status, {}, {}, {}, State::refused};
      reader.read_body();
      continue;
    }
    if (n == 0 || reader.state() >= State::done) break;
  }
  r.state = reader.state();
  r.status = reader.refusal().status;
  r.method = reader.head().method;
  r.target = reader.head().target;
  if (r.state == State::done) r.body = reader.take_body();
  return r;
}

TEST(RequestReader, ReadsBodiesOfBothKinds) {
  EXPECT_EQ(read("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").state, State::done);
  EXPECT_EQ(read("\r\n\r\nGET /a HTTP/1.1\r\n\r\n").target, "/a");
  EXPECT_EQ(read("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc").body, "abc");
  EXPECT_EQ(read("POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n").state, State::done);
  EXPECT_EQ(
      read("POST /a HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX: trailer\r\n\r\n")
          .body,
      "abc");
  EXPECT_EQ(read("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nab").state, State::body);
}

// Beast's own assertion ended the program when an empty body's last chunk came in pieces: "0\r\n", then "\r".
TEST(RequestReader, TheLastChunkMayComeInPieces) {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", body = "0\r\n\r\n";
  for (size_t first = 1; first < body.size(); ++first)
    for (size_t second = first; second < body.size(); ++second) {
      RequestReader reader(1000, 1000);
      EXPECT_EQ(reader.feed(head), head.size());
      reader.read_body();
      std::string buffer = body.substr(0, first);
      buffer.erase(0, reader.feed(buffer));
      buffer += body.substr(first, second - first);
      buffer.erase(0, reader.feed(buffer));
      buffer += body.substr(second);
      buffer.erase(0, reader.feed(buffer));
      EXPECT_EQ(reader.state(), RequestReader::State::done) << first << " " << second;
      EXPECT_EQ(reader.take_body(), "");
    }
}

TEST(RequestReader, TrailersAreNoHeaders) {
  RequestReader reader(1024, 64);
  std::string text = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer x\r\n\r\n";
  text.erase(0, reader.feed(text));
  reader.read_body();
  reader.feed(text);
  EXPECT_EQ(reader.state(), State::done);
  EXPECT_EQ(reader.head().count("authorization"), 0u);
}

TEST(RequestReader, RefusesWithTheStatusOfTheFault) {
  const std::pair<std::string, int> cases[] = {
      {"\x16\x03\x01\x02", 400},  // TLS
      {"GET / HTTP/1.1\n\n", 400},
      {"GET  / HTTP/1.1\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET / FTP/1.1\r\n\r\n", 400},
      {"G@T / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: x\ry\r\n\r\n", 400},
      {std::string("GET / HTTP/1.1\r\nA: x\0y\r\n\r\n", 26), 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
      {"POST / HTTP/1.1\r\n\r\n", 411},
      {"POST / HTTP/1.1\r\nContent-Length: 65\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n", 413},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n40\r\n", 413},
      {"POST / HTTP/1.1\r\nExpect: wonders\r\nContent-Length: 1\r\n\r\n", 417},
      {"GET / HTTP/1.1\r\nA: " + std::string(2000, 'x'), 431},
      {"GET /" + std::string(2000, 'x'), 431},
      {"GET / HTTP/1.1\r\n" + std::string(2000, 'x'), 431},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 501},
      {"BREW / HTTP/1.1\r\n\r\n", 501},
      {"CONNECT a:1 HTTP/1.1\r\n\r\n", 501},
      {"TRACE / HTTP/1.1\r\n\r\n", 501},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"GET / HTTP/0.9\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
  };
  for (const auto& [text, status] : cases) EXPECT_EQ(read(text).status, status) << text.substr(0, 90);
}

TEST(RequestReader, TheHeadMayBeAsLongAsTheLimitAndNoLonger) {
  const std::string start = "GET / HTTP/1.1\r\nA: ", end = "\r\n\r\n";
  for (const size_t length : {199u, 200u, 201u, 5000u}) {
    const std::string text = start + std::string(length - start.size() - end.size(), 'x') + end;
    EXPECT_EQ(read(text, 200).status, length <= 200 ? 0 : 431) << length;
  }
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 300; ++i) many += "A:\r\n";
  EXPECT_EQ(read(many + "\r\n", 64 << 10).status, 431) << "too many fields";
}

TEST(RequestReader, AChunksLineIsBounded) {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read(head + "1;" + std::string(3000, 'x')).status, 400);
  EXPECT_EQ(read(head + "0\r\nA: " + std::string(3000, 'x')).status, 400);
}

std::vector<std::string> seeds() {
  return {
      "GET /a?b HTTP/1.1\r\nHost: localhost:8080\r\n\r\nGET / HTTP/1.0\r\nHost: [::1]\r\nConnection: "
      "keep-alive\r\n\r\n",
      "POST /v1/x HTTP/1.1\r\nHost: LOCALHOST\r\nOrigin: http://localhost:3000\r\nContent-Length: 11\r\n\r\n{\"a\": "
      "true}\r\n",
      "POST /v1/x HTTP/1.1\r\nhost:box.lan\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nX: "
      "y\r\n\r\nGET",
      "OPTIONS * HTTP/1.1\r\nHost: 10.1.2.3:1\r\nAuthorization: Bearer x\r\nExpect: 100-continue\r\n\r\n",
      "GET http://localhost/x HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: evil.example\r\nOrigin: null\r\nSec-Fetch-Site: cross-site\r\n\r\n",
      "http://[0:0::1]:8080",
  };
}

// Every cut, and mutations of bytes, must give the verdicts of the whole.
TEST(RequestReader, BytesMeanTheSameHoweverTheyAreCut) {
  std::mt19937 random(7);
  const auto feed = [](const std::string& text) {
    fuzz_http_request(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  const std::string_view odd[] = {"\r\n", "\r",      "\n",       " ", ":", "\0", "0",
                                  ",",    "chunked", "HTTP/1.1", "[", "]", "@",  "\r\n\r\n"};
  for (const std::string& seed : seeds()) {
    for (size_t n = 0; n <= seed.size(); ++n) feed(seed.substr(0, n));
    for (int i = 0; i < 400; ++i) {
      std::string text = seed;
      for (auto k = random() % 3 + 1; k > 0; --k) {
        const size_t at = random() % text.size();
        if (random() % 2)
          text[at] = static_cast<char>(random());
        else
          text.insert(at, odd[random() % std::size(odd)]);
      }
      feed(text);
    }
    std::string longer = seed;
    longer.insert(16, std::string(600, 'x'));
    feed(longer);
  }
}

}  // namespace
}  // namespace stet::http
