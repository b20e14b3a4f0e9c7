#include "lab/bench/http_client.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "lab/bench/loopback_for_test.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

const std::string kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& data) { return fmt::format("{:x}\r\n{}\r\n", data.size(), data); }

HttpClient client_of(const Loopback& server, HttpLimits limits = {}) {
  return HttpClient(parse_endpoint(server.url()), "", limits);
}

struct Streamed {
  HttpReplyRecord record;
  std::string body;
  std::vector<int64_t> times;
};

Streamed stream(const Loopback& server, HttpLimits limits = {}) {
  Streamed out;
  HttpClient client = client_of(server, limits);
  out.record = client.post_stream("/v1/chat/completions", "{}", [&](int64_t at, std::string_view bytes) {
    out.body += bytes;
    out.times.push_back(at);
    return true;
  });
  return out;
}

TEST(Endpoint, IsReadAndRefused) {
  EXPECT_EQ(parse_endpoint("http://localhost:8000").port, 8000);
  EXPECT_EQ(parse_endpoint("http://localhost").port, 80);
  EXPECT_EQ(parse_endpoint("http://h:1/v1/").prefix, "");
  EXPECT_EQ(parse_endpoint("http://h:1/llm/v1").prefix, "/llm");
  EXPECT_EQ(parse_endpoint("http://[::1]:8080").host, "::1");
  EXPECT_EQ(parse_endpoint("http://[::1]:8080").authority(), "[::1]:8080");
  EXPECT_EQ(parse_endpoint("unix:/run/user/stet.sock").shown(), "unix:stet.sock");
  for (const char* url :
       {"", "localhost:1", "ftp://h", "https://h", "http://", "http://:1", "http://h:0", "http://h:65536",
        "http://h:1x", "http://user:key@h:1", "http://h:1/?q", "http://h h", "unix:", "http://[::1", "http://[::1]8"}) {
    try {
      parse_endpoint(url);
      ADD_FAILURE() << url;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kUsage);
      EXPECT_THAT(e.what(), HasSubstr("write http://HOST:PORT")) << url;
    }
  }
}

TEST(HttpClient, SendsOneSoundRequest) {
  const Loopback server([](const std::string&) {
    return std::vector<std::string>{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok"};
  });
  HttpClient client(parse_endpoint(server.url() + "/pre/v1"), "secret-1");
  const HttpReplyRecord reply = client.post("/v1/x", "{\"a\":1}");
  EXPECT_TRUE(reply.complete) << reply.error;
  EXPECT_EQ(reply.body, "ok");
  EXPECT_EQ(reply.headers.at("x-a"), "b");
  EXPECT_GE(reply.end_ns, reply.sent_ns);
  const std::string sent = server.requests().at(0);
  EXPECT_THAT(sent, HasSubstr("POST /pre/v1/x HTTP/1.1\r\n"));
  EXPECT_THAT(sent, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(sent, HasSubstr("Authorization: Bearer secret-1\r\n"));
  EXPECT_THAT(sent, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_TRUE(sent.ends_with("\r\n\r\n{\"a\":1}"));
}

TEST(HttpClient, EveryCutStreamIsSeenAsCut) {
  const std::string whole = kHead + chunk("data: a\n\n") + chunk("data: [DONE]\n\n") + "0\r\n\r\n";
  std::atomic<size_t> length{0};
  const Loopback server([&](const std::string&) { return std::vector<std::string>{whole.substr(0, length)}; });
  for (size_t n = 0; n <= whole.size(); ++n) {
    length = n;
    const Streamed got = stream(server);
    EXPECT_EQ(got.record.complete, n == whole.size()) << n;
    EXPECT_EQ(got.record.error.empty(), n == whole.size()) << n << ": " << got.record.error;
    if (n == whole.size()) {
      EXPECT_EQ(got.body, "data: a\n\ndata: [DONE]\n\n");
    }
  }
}

TEST(HttpClient, TimesNeverRunBackwards) {
  std::vector<std::string> pieces = {kHead};
  for (int i = 0; i < 20; ++i) pieces.push_back(chunk(fmt::format("data: {}\n\n", i)));
  pieces.push_back("0\r\n\r\n");
  const Loopback server([&](const std::string&) { return pieces; });
  const Streamed got = stream(server);
  EXPECT_TRUE(got.record.complete);
  int64_t last = got.record.sent_ns;
  for (const int64_t at : got.times) {
    EXPECT_GE(at, last);
    last = at;
  }
  EXPECT_LE(last, got.record.end_ns);
}

TEST(HttpClient, ChunksThatArriveTogetherShareOneTime) {
  const std::string all = kHead + chunk("data: a\n\n") + chunk("data: b\n\n") + "0\r\n\r\n";
  const Loopback server([&](const std::string&) { return std::vector<std::string>{all}; });
  const Streamed got = stream(server);
  EXPECT_TRUE(got.record.complete);
  for (const int64_t at : got.times) EXPECT_EQ(at, got.times.front());
}

TEST(HttpClient, BytesOneByOneAreTheSameReply) {
  const std::string all = kHead + chunk("data: a\n\n") + chunk("data: b\n\n") + "0\r\n\r\n";
  std::vector<std::string> bytes;
  for (const char c : all) bytes.emplace_back(1, c);
  const Loopback server([&](const std::string&) { return bytes; });
  EXPECT_EQ(stream(server).body, "data: a\n\ndata: b\n\n");
}

TEST(HttpClient, AStreamThatEndsWithTheConnectionIsComplete) {
  const Loopback server([](const std::string&) {
    return std::vector<std::string>{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: a\n\n"};
  });
  const Streamed got = stream(server);
  EXPECT_TRUE(got.record.complete) << got.record.error;
  EXPECT_EQ(got.body, "data: a\n\n");
}

TEST(HttpClient, AnErrorsBodyIsKeptApart) {
  const Loopback server([](const std::string&) {
    return std::vector<std::string>{"HTTP/1.1 429 Too Many\r\nContent-Length: 22\r\n\r\n{\"error\":\"queue full\"}"};
  });
  const Streamed got = stream(server);
  EXPECT_EQ(got.record.status, 429);
  EXPECT_EQ(got.body, "");
  EXPECT_EQ(got.record.body, "{\"error\":\"queue full\"}");
}

TEST(HttpClient, WaitsNoLongerThanItsLimits) {
  const Loopback silent([](const std::string&) { return std::vector<std::string>{Loopback::kHold}; });
  EXPECT_THAT(stream(silent, {.first_byte_seconds = 0.05}).record.error, HasSubstr("no reply within 0.05 s"));
  const Loopback stalled([](const std::string&) {
    return std::vector<std::string>{kHead + chunk("data: a\n\n"), Loopback::kHold};
  });
  const Streamed got = stream(stalled, {.idle_seconds = 0.05});
  EXPECT_THAT(got.record.error, HasSubstr("nothing came for 0.05 s"));
  EXPECT_EQ(got.body, "data: a\n\n");
  EXPECT_FALSE(got.record.complete);
}

TEST(HttpClient, WhatIsNoHttpIsRefused) {
  for (const char* text : {"hello\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    const Loopback server([&](const std::string&) { return std::vector<std::string>{text}; });
    EXPECT_THAT(stream(server).record.error, HasSubstr("is no HTTP")) << text;
  }
  const Loopback endless(
      [](const std::string&) { return std::vector<std::string>{"HTTP/1.1 200 OK\r\nX: " + std::string(200000, 'x')}; });
  EXPECT_THAT(stream(endless).record.error, HasSubstr("is no HTTP"));
  const Loopback large(
      [](const std::string&) { return std::vector<std::string>{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"}; });
  EXPECT_THAT(client_of(large, {.body_bytes = 50}).get("/x").error, HasSubstr("is no HTTP"));
}

TEST(HttpClient, LeavesInTheMiddleAndBefore) {
  const Loopback server([](const std::string&) {
    return std::vector<std::string>{kHead + chunk("data: a\n\n"), Loopback::kHold};
  });
  HttpClient client = client_of(server);
  const HttpReplyRecord got = client.post_stream("/x", "{}", [](int64_t, std::string_view) { return false; });
  EXPECT_TRUE(got.left);
  EXPECT_FALSE(got.complete);
  EXPECT_EQ(got.error, "");
  const Loopback silent([](const std::string&) { return std::vector<std::string>{Loopback::kHold}; });
  HttpClient other = client_of(silent);
  EXPECT_TRUE(other
                  .post_stream(
                      "/x", "{}", [](int64_t, std::string_view) { return true; }, [](int64_t) { return false; })
                  .left);
}

TEST(HttpClient, AnInterruptEndsTheWait) {
  const Loopback silent([](const std::string&) { return std::vector<std::string>{Loopback::kHold}; });
  HttpClient client(parse_endpoint(silent.url()), "", {}, [] { return true; });
  EXPECT_THROW(client.get("/x"), Error);
}

TEST(HttpClient, NobodyThere) {
  uint16_t port = 0;
  {
    const Loopback server([](const std::string&) { return std::vector<std::string>{}; });
    port = parse_endpoint(server.url()).port;
  }
  HttpClient client(parse_endpoint(fmt::format("http://127.0.0.1:{}", port)), "");
  EXPECT_THAT(client.get("/x").error, HasSubstr("cannot connect"));
  HttpClient socket(parse_endpoint("unix:/no/such/socket"), "");
  EXPECT_THAT(socket.get("/x").error, HasSubstr("cannot connect"));
}

}  // namespace
}  // namespace stet
