// What a client that behaves sees.
#include <filesystem>

#include "base/error.h"
#include "server/http/http_test_util.h"
#include "server/http/response.h"

namespace stet {
namespace {

using namespace std::chrono_literals;
using test::body_of;
using test::get;
using test::post;
using test::RawClient;
using test::status_of;

class Http : public test::HttpFixture {};

TEST_F(Http, AnswersAndKeepsTheConnection) {
  start();
  RawClient c = client();
  for (int i = 0; i < 3; ++i) {
    c.send(post("/echo?a=b", "text"));
    const std::string answer = c.read_answer();
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_EQ(body_of(answer), "POST /echo a=b text");
    EXPECT_NE(answer.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos);
    EXPECT_EQ(answer.find("Connection: close"), std::string::npos);
    EXPECT_EQ(answer.find("Access-Control"), std::string::npos) << "no CORS unless asked for";
  }
}

TEST_F(Http, TheHandlerSeesTheWholeRequest) {
  start();
  RawClient c = client();
  c.send("POST /hold?q HTTP/1.1\r\nHost: LOCALHOST\r\nX-Two: a\r\nx-two: b\r\nContent-Length: 2\r\n\r\nhi");
  const auto exchange = take_held();
  const HttpRequest& r = exchange->request();
  EXPECT_EQ(r.id, 1u);
  EXPECT_EQ(r.method, "POST");
  EXPECT_EQ(r.path, "/hold");
  EXPECT_EQ(r.query, "q");
  EXPECT_EQ(r.body, "hi");
  EXPECT_EQ(r.headers.at("host"), "LOCALHOST");
  EXPECT_EQ(r.headers.at("x-two"), "a, b");
  EXPECT_TRUE(r.client.starts_with("127.0.0.1:"));
  exchange->reply({.status = 404, .body = "no"});
  EXPECT_EQ(status_of(c.read_answer()), 404);
  EXPECT_FALSE(exchange->gone());
}

TEST_F(Http, AnyCutOfARequestGivesTheSameAnswer) {
  start();
  const std::string text = post("/a", "body");
  for (size_t n = 1; n < text.size(); ++n) {
    RawClient c = client();
    c.send(text.substr(0, n));
    c.send(text.substr(n));
    EXPECT_EQ(body_of(c.read_answer()), "POST /a  body") << n;
  }
  RawClient slow = client();
  for (const char byte : text) slow.send(std::string(1, byte));
  EXPECT_EQ(body_of(slow.read_answer()), "POST /a  body");
}

TEST_F(Http, PipelinedRequestsAreAnsweredInOrder) {
  start();
  RawClient c = client();
  std::string all = get("/hold");
  for (int i = 0; i < 200; ++i) all += post("/n" + std::to_string(i), "x");
  c.send(all);
  const auto first = take_held();
  first->reply({.body = "first"});
  EXPECT_EQ(body_of(c.read_answer()), "first");
  for (int i = 0; i < 200; ++i) EXPECT_EQ(body_of(c.read_answer()), "POST /n" + std::to_string(i) + "  x");
}

TEST_F(Http, MoreThanWhatIsReadAheadIsAnsweredToo) {
  options.max_ahead_bytes = 1000;
  start();
  RawClient c = client();
  c.send(get("/hold"));
  const auto first = take_held();
  std::jthread sender([&] {
    for (int i = 0; i < 20; ++i) c.send(post("/n" + std::to_string(i), std::string(100'000, 'x')));
  });
  std::this_thread::sleep_for(20ms);
  first->reply({.body = "first"});
  EXPECT_EQ(body_of(c.read_answer()), "first");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(body_of(c.read_answer()).size(), 100'000 + std::to_string(i).size() + 9);
  sender.join();
}

TEST_F(Http, EventsAreChunksOfTheirOwn) {
  start();
  RawClient c = client();
  c.send(get("/stream"));
  const std::string head = c.read_until("\r\n\r\n");
  EXPECT_EQ(status_of(head), 200);
  EXPECT_NE(head.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(c.read_until("0\r\n\r\n"), "b\r\ndata: one\n\n\r\nb\r\ndata: two\n\n\r\nd\r\ndata: three\n\n\r\n0\r\n\r\n");
  c.send(get("/next"));
  EXPECT_EQ(body_of(c.read_answer()), "GET /next  ") << "the connection goes on";
}

TEST_F(Http, ACutStreamNeverLooksComplete) {
  start();
  RawClient c = client();
  c.send(get("/cut") + get("/never"));
  const std::string all = c.read_all();
  EXPECT_TRUE(all.ends_with("d\r\ndata: three\n\n\r\n")) << all;
  EXPECT_EQ(handled, 1);
}

TEST_F(Http, EventsReachTheClientOneByOne) {
  start();
  RawClient c = client();
  c.send(get("/hold"));
  const auto exchange = take_held();
  exchange->begin_events({{"X-Y", "z\r\nSet-Cookie: a"}});
  EXPECT_NE(c.read_until("\r\n\r\n").find("X-Y: z  Set-Cookie: a\r\n"), std::string::npos) << "no header of its own";
  for (int i = 0; i < 50; ++i) {
    exchange->event(std::to_string(i));
    EXPECT_NE(c.read_until("\n\n\r\n").find("data: " + std::to_string(i) + "\n"), std::string::npos);
  }
  EXPECT_THROW(exchange->event("a\nb"), Error);
  exchange->end_events();
  exchange->event("late");
  exchange->reply({.body = "late"});
  EXPECT_EQ(c.read_until("0\r\n\r\n"), "0\r\n\r\n");
}

TEST_F(Http, HeadHasNoBody) {
  start();
  RawClient c = client();
  c.send("HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/y"));
  EXPECT_NE(c.read_until("\r\n\r\n").find("Content-Length: 8\r\n"), std::string::npos);
  EXPECT_NE(c.read_until("\r\n\r\n").find("text/event-stream"), std::string::npos);
  EXPECT_EQ(body_of(c.read_answer()), "GET /y  ");
}

TEST_F(Http, SaysContinueWhereItIsAskedAndMeant) {
  start();
  const std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  RawClient c = client();
  c.send(head);
  EXPECT_EQ(c.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  c.send("body");
  EXPECT_EQ(body_of(c.read_answer()), "POST /x  body");
  c.send(head + "body");
  EXPECT_EQ(body_of(c.read_answer()), "POST /x  body") << "the body was there already";
  c.send("POST /x HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(c.read_answer()), 403) << "who may not ask need not send";
}

TEST_F(Http, OldClientsAreServedTheirWay) {
  start();
  RawClient once = client();
  once.send("GET /x HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(body_of(once.read_all()), "GET /x  ");
  RawClient kept = client();
  kept.send("GET /x HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(kept.read_answer().find("Connection: keep-alive\r\n"), std::string::npos);
  kept.send("GET /stream HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(body_of(kept.read_all()), "data: one\n\ndata: two\n\ndata: three\n\n") << "no chunks";
  RawClient last = client();
  last.send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + get("/y"));
  EXPECT_EQ(body_of(last.read_all()), "GET /x  ");
}

TEST_F(Http, ARequestThatNobodyAnswersGetsAnError) {
  start();
  RawClient c = client();
  for (const char* path : {"/drop", "/throw"}) {
    c.send(get(path));
    const std::string answer = c.read_answer();
    EXPECT_EQ(status_of(answer), 500);
    EXPECT_NE(answer.find("\"server_error\""), std::string::npos) << answer;
  }
  c.send(get("/hold"));
  auto exchange = take_held();
  exchange->begin_events();
  exchange->event("half");
  exchange.reset();
  EXPECT_TRUE(c.read_all().ends_with("data: half\n\n\r\n"));
}

TEST_F(Http, PreflightsOfAllowedOriginsAreAnswered) {
  options.guard.origins = {"http://localhost:3000"};
  options.guard.keys = http::ApiKeys({"secret"});
  start();
  RawClient c = client();
  c.send(
      "OPTIONS /v1/x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nAccess-Control-Request-Method: "
      "POST\r\n"
      "Access-Control-Request-Headers: authorization,x-stainless-os\r\n\r\n");
  const std::string answer = c.read_until("\r\n\r\n");
  EXPECT_EQ(status_of(answer), 204);
  EXPECT_NE(answer.find("Access-Control-Allow-Origin: http://localhost:3000\r\n"), std::string::npos);
  EXPECT_NE(answer.find("Access-Control-Allow-Headers: authorization,x-stainless-os\r\n"), std::string::npos);
  c.send(
      "GET /v1/x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_NE(c.read_answer().find("Access-Control-Allow-Origin: http://localhost:3000\r\n"), std::string::npos);
  c.send("GET /v1/x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n\r\n");
  const std::string refused = c.read_answer();
  EXPECT_EQ(status_of(refused), 401);
  EXPECT_NE(refused.find("WWW-Authenticate: Bearer\r\n"), std::string::npos);
  EXPECT_NE(refused.find("Access-Control-Allow-Origin"), std::string::npos) << "the page may read why";
  EXPECT_EQ(handled, 1);
  EXPECT_NE(logged().find(" GET /v1/x 401 from 127.0.0.1:"), std::string::npos) << logged();
}

TEST_F(Http, OthersThanThisMachineNeedAKeyOrAChoice) {
  options.host = "0.0.0.0";
  EXPECT_THROW(start(), Error);
  options.guard.keys = http::ApiKeys({"secret"});
  start();
  EXPECT_EQ(status_of(answer_to(get("/x"))), 401);
  EXPECT_EQ(logged().find("--no-auth"), std::string::npos);
  options.guard.keys = {};
  options.no_auth = true;
  start();
  EXPECT_EQ(status_of(answer_to(get("/x"))), 200);
  EXPECT_NE(logged().find("everybody"), std::string::npos);
  EXPECT_EQ(status_of(answer_to("GET / HTTP/1.1\r\nHost: 0.0.0.0\r\n\r\n")), 403);
}

TEST_F(Http, AGracefulStopFinishesWhatIsBeingAnswered) {
  start();
  RawClient busy = client(), idle = client(), half = client();
  busy.send(get("/hold"));
  half.send("GET /x HT");
  const auto exchange = take_held();
  exchange->begin_events();
  std::jthread stopper([&] { server->stop(20s); });
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(half.is_closed());
  exchange->event("last");
  exchange->end_events();
  EXPECT_TRUE(busy.read_all().ends_with("data: last\n\n\r\n0\r\n\r\n"));
  busy.close();
  stopper.join();
  EXPECT_EQ(gone, 0);
}

TEST_F(Http, AStopWithoutGraceCutsOff) {
  start();
  RawClient busy = client();
  busy.send(get("/hold"));
  const auto exchange = take_held();
  exchange->begin_events();
  server->stop(0ms);
  EXPECT_TRUE(exchange->gone());
  EXPECT_EQ(gone, 1);
  exchange->event("late");
  exchange->end_events();
  EXPECT_FALSE(busy.read_all().ends_with("0\r\n\r\n"));
}

TEST(HttpDate, IsTheOneOfTheStandard) {
  EXPECT_EQ(http::http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http::http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace
}  // namespace stet
