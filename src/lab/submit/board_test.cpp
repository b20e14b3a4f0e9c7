#include "lab/submit/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "lab/bench/loopback_for_test.h"
#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

std::string refusal(Code code, const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "accepted";
}

std::string reply(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
                     body.size(), body);
}

class BoardTest : public PacketFolderTest {
 protected:
  BoardRequest request(const std::string& url) const {
    BoardRequest r;
    r.address = board_address(url);
    r.key = "a-key";
    r.payload = R"({"tokSOut":1})";
    r.subject = "hash A";
    return r;
  }
  std::vector<std::string> journal() {
    std::vector<std::string> rows;
    for (const JournalRow& row : ledger_.journal()) rows.push_back(row.kind + " " + row.subject + " " + row.condition);
    return rows;
  }

  Ledger ledger_{path("ledger.sqlite")};
};

TEST(BoardAddress, IsOnThisMachine) {
  EXPECT_EQ(board_address("http://127.0.0.1:81/api/rows").path, "/api/rows");
  EXPECT_EQ(board_address("http://localhost/v1").path, "/v1") << "unlike an endpoint's, it is taken as it is";
  EXPECT_EQ(board_address("http://[::1]:5").path, "/");
  const auto refused = [](const char* url) { return refusal(Code::kUsage, [&] { (void)board_address(url); }); };
  EXPECT_THAT(refused("https://example.org/api"), HasSubstr("TLS"));
  EXPECT_THAT(refused("http://example.org/api"), HasSubstr("everybody on the way reads the key"));
  EXPECT_THAT(refused("http://127.0.0.1/a?b"), HasSubstr("query"));
  EXPECT_THAT(refused("http://127.0.0.1/a b"), HasSubstr("space"));
  EXPECT_THAT(refused("ftp://127.0.0.1/"), HasSubstr("no known kind"));
}

TEST_F(BoardTest, KeysComeFromAFileOfTheirOwn) {
  const std::string file = path("key");
  EXPECT_THAT(refusal(Code::kInput, [&] { (void)board_key(file); }), HasSubstr("not there"));
  write_text(file, "a-key\n");
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  EXPECT_THAT(refusal(Code::kResource, [&] { (void)board_key(file); }), HasSubstr("chmod 600"));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(board_key(file), "a-key");
  std::filesystem::create_directory(path(".git"));
  EXPECT_THAT(refusal(Code::kUsage, [&] { (void)board_key(file); }), HasSubstr("Git"));
  std::filesystem::remove(path(".git"));
  write_text(file, "two keys");
  EXPECT_THAT(refusal(Code::kUsage, [&] { (void)board_key(file); }), HasSubstr("holds no key"));
}

TEST_F(BoardTest, ARowIsSentOnce) {
  Loopback board([](const std::string&) { return std::vector<std::string>{reply(201, R"({"id":"row-7"})")}; });
  const BoardRequest r = request(board.url() + "/api/rows");
  const BoardAnswer answer = send_to_board(ledger_, r);
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.id, "row-7");
  ASSERT_EQ(board.requests().size(), 1u);
  EXPECT_THAT(board.requests()[0], testing::StartsWith("POST /api/rows HTTP/1.1\r\n"));
  EXPECT_THAT(board.requests()[0], HasSubstr("Authorization: Bearer a-key\r\n"));
  EXPECT_THAT(board.requests()[0], testing::EndsWith(r.payload));
  EXPECT_THAT(refusal(Code::kUsage, [&] { (void)send_to_board(ledger_, r); }), HasSubstr("never sent twice"));
  EXPECT_EQ(board.requests().size(), 1u);
  EXPECT_THAT(journal(), testing::ElementsAre("submit hash A begun", "submit hash A taken"));
}

TEST_F(BoardTest, PatienceIsAskedForOnce) {
  std::atomic<int> asked{0};
  Loopback board([&](const std::string&) {
    return std::vector<std::string>{++asked == 1 ? reply(429, R"({"retryAfterMs":20})") : reply(200, "{}")};
  });
  BoardRequest r = request(board.url());
  std::vector<double> waits;
  r.waiting = [&](double seconds) { waits.push_back(seconds); };
  EXPECT_EQ(send_to_board(ledger_, r).status, 200);
  EXPECT_THAT(waits, testing::ElementsAre(0.02));
  EXPECT_EQ(asked, 2);

  Loopback busy([](const std::string&) { return std::vector<std::string>{reply(429, R"({"retryAfterMs":1})")}; });
  r = request(busy.url());
  r.subject = "another";
  EXPECT_THAT(refusal(Code::kInput, [&] { (void)send_to_board(ledger_, r); }), HasSubstr("HTTP 429"));
  EXPECT_EQ(busy.requests().size(), 2u);
}

TEST_F(BoardTest, ARefusalIsToldAndMayBeRepaired) {
  Loopback board(
      [](const std::string&) { return std::vector<std::string>{reply(422, "{\"error\":\"engineName\"}\n")}; });
  const BoardRequest r = request(board.url());
  EXPECT_THAT(refusal(Code::kInput, [&] { (void)send_to_board(ledger_, r); }),
              HasSubstr(R"(refused the row with HTTP 422: {"error":"engineName"})"));
  EXPECT_THAT(journal(), testing::ElementsAre("submit hash A begun", "submit hash A refused"));
  EXPECT_THAT(refusal(Code::kInput, [&] { (void)send_to_board(ledger_, r); }), HasSubstr("HTTP 422"));
}

TEST_F(BoardTest, NobodyThereMeansNothingWasSent) {
  std::string url;
  {
    const Loopback gone([](const std::string&) { return std::vector<std::string>{}; });
    url = gone.url();
  }
  EXPECT_THAT(refusal(Code::kInput, [&] { (void)send_to_board(ledger_, request(url)); }),
              HasSubstr("nothing was sent"));
  EXPECT_THAT(journal(), testing::ElementsAre("submit hash A begun", "submit hash A not sent"));
}

TEST_F(BoardTest, ACutAnswerIsNotKnownAndNotSentAgain) {
  Loopback board([](const std::string&) {
    return std::vector<std::string>{"HTTP/1.1 201 Created\r\nContent-Length: 50\r\n\r\n{\"id\""};
  });
  const BoardRequest r = request(board.url());
  EXPECT_THAT(refusal(Code::kInput, [&] { (void)send_to_board(ledger_, r); }), HasSubstr("is not known"));
  EXPECT_THAT(refusal(Code::kUsage, [&] { (void)send_to_board(ledger_, r); }), HasSubstr("look at the board"));
  EXPECT_EQ(board.requests().size(), 1u);
}

TEST_F(BoardTest, AnInterruptedWaitIsARefusal) {
  Loopback board([](const std::string&) { return std::vector<std::string>{reply(429, R"({"retryAfterMs":600000})")}; });
  BoardRequest r = request(board.url());
  bool waiting = false;
  r.waiting = [&](double) { waiting = true; };
  r.stop = [&] { return waiting; };
  EXPECT_THAT(refusal(Code::kCancelled, [&] { (void)send_to_board(ledger_, r); }), HasSubstr("interrupted"));
  EXPECT_THAT(journal(), testing::ElementsAre("submit hash A begun", "submit hash A refused"));
}

}  // namespace
}  // namespace stet
