// What a client that does not behave sees, and what it cannot do to others.
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "server/http/http_test_util.h"

namespace stet {
namespace {

using namespace std::chrono_literals;
using test::body_of;
using test::get;
using test::post;
using test::RawClient;
using test::status_of;

class HttpLimits : public test::HttpFixture {
 protected:
  // The connection ends with an answer of this status, which is an error object.
  void expect_refused(const std::string& bytes, int status) {
    SCOPED_TRACE(bytes.substr(0, 80));
    RawClient c = client();
    c.send(bytes);
    const std::string answer = c.read_all();
    EXPECT_EQ(status_of(answer), status) << answer;
    EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
    EXPECT_TRUE(body_of(answer).starts_with("{\"error\":{")) << answer;
  }
};

TEST_F(HttpLimits, MalformedRequestsGetTheirStatusAndAClosedConnection) {
  options.max_body_bytes = 1000;
  start();
  const std::string host = "Host: localhost\r\n";
  expect_refused("GET / HTTP/1.1\r\n\r\n", 400);
  expect_refused("GET / HTTP/1.1\r\n" + host + host + "\r\n", 400);
  expect_refused("\x16\x03\x01\x02\r\n\r\n", 400);
  expect_refused("POST / HTTP/1.1\r\n" + host + "Content-Length: x\r\n\r\n", 400);
  expect_refused("POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 400);
  expect_refused("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400);
  expect_refused("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403);
  expect_refused("POST / HTTP/1.1\r\n" + host + "Origin: null\r\nContent-Length: 1\r\n\r\nx", 403);
  expect_refused("POST / HTTP/1.1\r\n" + host + "\r\n", 411);
  expect_refused(post("/", std::string(1001, 'x')), 413);
  expect_refused("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 413);
  expect_refused("GET / HTTP/1.1\r\n" + host + "Expect: more\r\n\r\n", 417);
  expect_refused("GET / HTTP/1.1\r\n" + host + "A: " + std::string(70'000, 'x'), 431);
  expect_refused("BREW / HTTP/1.1\r\n" + host + "\r\n", 501);
  expect_refused("GET / HTTP/3.0\r\n" + host + "\r\n", 505);
  EXPECT_EQ(handled, 0);
  EXPECT_NE(logged().find(" BREW / 501 from 127.0.0.1:"), std::string::npos) << logged();
  expect_alive();
}

TEST_F(HttpLimits, AHugeHeadIsRefusedWhileItIsSent) {
  start();
  RawClient c = client();
  c.send("GET / HTTP/1.1\r\nHost: localhost\r\nA: ");
  const std::string piece(64 << 10, 'x');
  for (int i = 0; i < 16; ++i) c.send(piece);
  EXPECT_EQ(status_of(c.read_all()), 431);
}

TEST_F(HttpLimits, TheRefusalOfALargeBodyArrivesAlthoughTheClientSends) {
  options.max_body_bytes = 1 << 20;
  start();
  RawClient c = client();
  std::jthread sender([&] {
    c.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n");
    const std::string piece(100'000, 'x');
    for (int i = 0; i < 80; ++i) c.send(piece);
  });
  EXPECT_EQ(status_of(c.read_all()), 413);
  sender.join();
}

TEST_F(HttpLimits, ABodyUpToTheLimitIsTaken) {
  start();
  RawClient c = client();
  const std::string body(5'000'000, 'b');
  std::jthread sender([&] { c.send(post("/x", body)); });
  EXPECT_EQ(body_of(c.read_answer()).size(), body.size() + 9);
  sender.join();
}

TEST_F(HttpLimits, BodiesOfAllClientsTogetherAreBounded) {
  options.max_bodies_bytes = 300'000;
  start();
  RawClient first = client(), second = client();
  const std::string head = "POST /hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n";
  first.send(head + std::string(200'000, 'x'));
  auto exchange = take_held();
  second.send(head + std::string(200'000, 'x'));
  EXPECT_EQ(status_of(second.read_all()), 503);
  exchange->reply({.body = "done"});
  EXPECT_EQ(body_of(first.read_answer()), "done");
  first.send(head + std::string(200'000, 'x'));
  take_held()->reply({.body = "again"});
  EXPECT_EQ(body_of(first.read_answer()), "again");
}

TEST_F(HttpLimits, SlowHeadsBodiesAndIdleConnectionsEnd) {
  options.header_timeout = options.body_timeout = options.idle_timeout = options.linger = 100ms;
  start();
  RawClient head = client(), body = client(), idle = client(), kept = client();
  head.send("GET / HT");
  body.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nab");
  kept.send(get("/x"));
  EXPECT_EQ(body_of(kept.read_answer()), "GET /x  ");
  EXPECT_EQ(status_of(head.read_all()), 408);
  EXPECT_EQ(status_of(body.read_all()), 408);
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(kept.is_closed());
  RawClient dripping = client();
  std::string answer;
  std::jthread drip([&] {
    while (dripping.send("\r\n")) std::this_thread::sleep_for(5ms);
  });
  dripping.read_all();
  drip.join();
}

TEST_F(HttpLimits, ARunningAnswerHasNoTimeLimitOfTheTransport) {
  options.header_timeout = options.body_timeout = options.idle_timeout = options.stall_timeout = 50ms;
  start();
  RawClient c = client();
  c.send(get("/hold"));
  auto exchange = take_held();
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(exchange->gone());
  exchange->reply({.body = "at last"});
  EXPECT_EQ(body_of(c.read_answer()), "at last");
}

TEST_F(HttpLimits, TooManyConnectionsAreTurnedAway) {
  options.max_connections = 3;
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(client());
    clients.back().send(get("/x"));
    EXPECT_EQ(status_of(clients.back().read_answer()), 200);
  }
  EXPECT_EQ(status_of(client().read_all()), 503);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return status_of(answer_to(get("/x"))) == 200; }));
}

TEST_F(HttpLimits, AReaderThatStopsIsCutOff) {
  options.max_queued_bytes = 256 << 10;
  options.stall_timeout = 200ms;
  start();
  const std::string event(10'000, 'e');
  for (const bool fast : {true, false}) {  // more than is kept; little, but for long
    RawClient c = client(4096);
    c.send(get("/hold"));
    auto exchange = take_held();
    exchange->begin_events();
    const int before = gone;
    for (int i = 0; i < 5000 && !exchange->gone(); ++i) {
      exchange->event(event);
      if (!fast) std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(eventually([&] { return gone == before + 1; }));
    EXPECT_TRUE(exchange->gone());
    EXPECT_FALSE(c.read_all().ends_with("0\r\n\r\n"));
  }
  expect_alive();
}

TEST_F(HttpLimits, ASlowReaderThatReadsGetsEverything) {
  start();
  RawClient c = client(4096);
  c.send(get("/hold"));
  auto exchange = take_held();
  exchange->begin_events();
  const std::string event(10'000, 'e');
  for (int i = 0; i < 300; ++i) exchange->event(event);
  exchange->end_events();
  const std::string all = c.read_until("0\r\n\r\n");
  EXPECT_EQ(static_cast<int>(std::count(all.begin(), all.end(), 'e')) / 10'000, 300);
  EXPECT_EQ(gone, 0);
}

TEST_F(HttpLimits, AClientThatLeavesIsNoticed) {
  start();
  for (const char* how : {"close", "reset", "half", "pipelined", "before"}) {
    SCOPED_TRACE(how);
    const int before = gone;
    RawClient c = client();
    c.send(get("/hold"));
    if (how == std::string("pipelined")) c.send(get("/next") + "GET /half HTT");
    auto exchange = take_held();
    if (how != std::string("before")) exchange->begin_events();
    if (how == std::string("reset"))
      c.reset();
    else if (how == std::string("half"))
      c.half_close();
    else
      c.close();
    EXPECT_TRUE(eventually([&] { return gone == before + 1; }));
    EXPECT_TRUE(exchange->gone());
    exchange->event("late");
    exchange->end_events();
    std::atomic<bool> told = false;
    exchange->on_gone([&] { told = true; });
    EXPECT_TRUE(eventually([&] { return told.load(); })) << "at once, when it is over already";
  }
  EXPECT_EQ(handled, 5) << "what was sent ahead is not begun";
  expect_alive();
}

TEST_F(HttpLimits, AClientThatSentFarAheadAndLeavesIsNoticed) {
  options.max_ahead_bytes = 1000;
  start();
  RawClient c = client();
  c.send(get("/hold"));
  auto exchange = take_held();
  c.send(post("/next", std::string(30'000, 'x')));
  c.close();
  EXPECT_TRUE(eventually([&] { return gone == 1; }));
}

TEST_F(HttpLimits, ADisconnectAtEveryByteHarmsNobody) {
  start();
  const std::string text =
      post("/x", "body") +
      "POST /hold HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
  for (size_t n = 0; n <= text.size(); ++n) {
    RawClient c = client();
    c.send(text.substr(0, n));
    if (n % 2) c.reset();
  }
  expect_alive();
  EXPECT_TRUE(eventually([&] { return gone == 1 || handled < 2; }));
}

TEST_F(HttpLimits, WhatWasAnsweredIsDeliveredToAClientThatClosedItsHalf) {
  start();
  RawClient c = client(4096);
  std::string all;
  for (int i = 0; i < 20; ++i) all += post("/n", std::string(50'000, 'x'));
  std::jthread sender([&] {
    c.send(all);
    c.half_close();
  });
  // Read meanwhile: whether the buffers of both ends hold a megabyte is the system's affair.
  int answers = 0;
  while (body_of(c.read_answer()).size() == 50'009) ++answers;
  sender.join();
  EXPECT_EQ(answers, 20);
}

TEST_F(HttpLimits, ThatAllWasSentAtOnceChangesNothing) {
  start();
  for (int i = 0; i < 100; ++i) {
    RawClient c = client();
    c.send(get("/1") + get("/2") + get("/3") + get("/4"));
    c.half_close();
    const std::string answers = c.read_all();
    EXPECT_TRUE(answers.ends_with("GET /4  ")) << answers;
  }
}

TEST_F(HttpLimits, AnswersMayComeFromAnyThreadWhileClientsLeave) {
  start();
  std::atomic<bool> enough = false;
  std::vector<std::jthread> answerers;
  for (int t = 0; t < 2; ++t)
    answerers.emplace_back([&] {
      while (!enough) {
        std::shared_ptr<Exchange> exchange;
        {
          const std::lock_guard lock(mutex);
          if (!held.empty()) exchange = std::move(held.back()), held.pop_back();
        }
        if (!exchange) {
          std::this_thread::sleep_for(1ms);
          continue;
        }
        exchange->begin_events();
        for (int i = 0; i < 20; ++i) exchange->event("some text");
        exchange->end_events();
      }
    });
  for (int i = 0; i < 150; ++i) {
    RawClient c = client();
    c.send(get("/hold") + get("/hold"));
    if (i % 3 == 0) c.read_until("data: ");
    if (i % 3 == 1) c.reset();
    if (i % 3 == 2) {
      EXPECT_TRUE(c.read_until("0\r\n\r\n").ends_with("0\r\n\r\n"));
    }
  }
  expect_alive();
  enough = true;
  for (std::jthread& t : answerers) t.join();
}

class HttpUnix : public HttpLimits {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "stet_http_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    options.unix_path = folder + "/socket";
    options.guard.is_unix = true;
  }
  void TearDown() override {
    server.reset();
    std::filesystem::remove_all(folder);
  }
  std::string folder;
};

TEST_F(HttpUnix, IsForThisUserAndGoesWithTheServer) {
  start();
  struct stat file = {};
  ASSERT_EQ(::lstat(options.unix_path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
  EXPECT_EQ(server->port(), 0);
  EXPECT_EQ(server->url(), "unix:" + options.unix_path);
  RawClient c(options.unix_path);
  c.send("GET /x HTTP/1.1\r\nHost: anything\r\n\r\n");
  EXPECT_EQ(body_of(c.read_answer()), "GET /x  ");
  c.send(get("/hold"));
  EXPECT_EQ(take_held()->request().client, "unix");
  server->stop(0ms);
  EXPECT_FALSE(std::filesystem::exists(options.unix_path));
}

TEST_F(HttpUnix, AStaleSocketIsReplacedAndALiveOneRefused) {
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, options.unix_path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(dead);
  start();
  RawClient c(options.unix_path);
  c.send(get("/x"));
  EXPECT_EQ(status_of(c.read_answer()), 200);

  HttpServer second(options, [](std::shared_ptr<Exchange>) {});
  EXPECT_THROW(second.start(), Error);
  c.send(get("/y"));
  EXPECT_EQ(status_of(c.read_answer()), 200) << "the first one goes on";
}

TEST_F(HttpUnix, NothingElseIsReplaced) {
  std::filesystem::create_directory(options.unix_path);
  EXPECT_THROW(start(), Error);
  EXPECT_TRUE(std::filesystem::is_directory(options.unix_path));
  options.unix_path = folder + "/no folder/socket";
  EXPECT_THROW(start(), Error);
  options.unix_path = folder + "/" + std::string(120, 'x');
  EXPECT_THROW(start(), Error);
}

TEST_F(HttpLimits, APortInUseIsRefused) {
  start();
  HttpOptions second;
  second.port = server->port();
  HttpServer other(second, [](std::shared_ptr<Exchange>) {});
  try {
    other.start();
    FAIL() << "two servers on one port";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kResource);
    EXPECT_NE(std::string_view(e.what()).find("in use"), std::string_view::npos) << e.what();
  }
}

}  // namespace
}  // namespace stet
