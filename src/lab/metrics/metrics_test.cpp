#include "lab/metrics/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr FigureRules kCold{.cold = true, .fixed_length = false, .speculative = false};

std::vector<int64_t> evenly(size_t n, int64_t step, int64_t first = 0) {
  std::vector<int64_t> t;
  for (size_t i = 0; i < n; ++i) t.push_back(first + static_cast<int64_t>(i) * step);
  return t;
}

TEST(WindowRate, NTokensSpanNLessOneIntervals) {
  const auto t = evenly(100, 10'000'000);
  const auto rate = window_rate(t, 1, 100);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->intervals, 99u);
  EXPECT_DOUBLE_EQ(rate->seconds, 0.99);
  EXPECT_DOUBLE_EQ(rate->interval_rate, 100.0);
  EXPECT_DOUBLE_EQ(rate->historical_inclusive_rate, 100.0 / 0.99);
  EXPECT_EQ(rate->quantum, 1u);
}

TEST(WindowRate, TokensThatCameFirstTogetherAreSubtracted) {
  // Cycles of 4 tokens every 20 ms: the true rate is 200 tokens/s.
  std::vector<int64_t> t;
  for (int64_t cycle = 0; cycle < 25; ++cycle) t.insert(t.end(), 4, cycle * 20'000'000);
  const auto rate = window_rate(t, 4, 100);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->intervals, 96u);
  EXPECT_DOUBLE_EQ(rate->interval_rate, 200.0);
  EXPECT_EQ(rate->quantum, 4u);
  // One interval a frame would say 50, the inclusive rate 208: both are wrong.
  EXPECT_NEAR(rate->historical_inclusive_rate, 208.333, 1e-3);
}

TEST(WindowRate, NothingWhereNothingCanBeSaid) {
  EXPECT_FALSE(window_rate(evenly(99, 1), 1, 100));
  EXPECT_FALSE(window_rate({}, 0, 0));
  EXPECT_FALSE(window_rate(evenly(1, 1), 1, 1));
  EXPECT_FALSE(window_rate(evenly(5, 0), 1, 5)) << "no time passed";
  EXPECT_FALSE(window_rate(evenly(5, 1), 5, 5)) << "all came at once";
}

TEST(Statistics, TenthPercentileIsInterpolated) {
  const Statistics s = statistics({4, 1, 3, 2, 5});
  EXPECT_EQ(s.count, 5u);
  EXPECT_DOUBLE_EQ(s.p10, 1.4);
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.mean, 3);
  EXPECT_DOUBLE_EQ(s.stdev, std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 5);
  EXPECT_DOUBLE_EQ(statistics({1, 2, 3, 4}).median, 2.5);
  EXPECT_DOUBLE_EQ(statistics({7}).stdev, 0);
  EXPECT_DOUBLE_EQ(statistics({7}).p10, 7);
  EXPECT_EQ(statistics({}).count, 0u);
}

TEST(RequestFigures, OfASteadyAnswer) {
  const RequestFigures f = request_figures(FakeBench().request(0, 0), kCold);
  EXPECT_EQ(f.tokens, 120u);
  EXPECT_DOUBLE_EQ(*f.ttft_seconds, 0.05);
  ASSERT_TRUE(f.first_100 && f.all);
  EXPECT_EQ(f.first_100->tokens, 100u);
  EXPECT_DOUBLE_EQ(f.first_100->interval_rate, 100.0);
  EXPECT_DOUBLE_EQ(f.all->interval_rate, 100.0);
  EXPECT_DOUBLE_EQ(*f.server_rate, 100.0);
  EXPECT_NEAR(f.wall_rate, 120 / 1.241, 1e-9);
  EXPECT_DOUBLE_EQ(*f.prefill_rate, 80.0);
  EXPECT_FALSE(f.tokens_per_cycle);
  EXPECT_THAT(f.invalid, IsEmpty());
  EXPECT_THAT(f.unproven, IsEmpty());
  EXPECT_THAT(f.not_watched, IsEmpty());
}

TEST(RequestFigures, TimeToFirstTokenIgnoresFramesWithoutOne) {
  RequestRecord r = FakeBench().request(0, 0);
  ChunkEvent role;  // {"delta":{"role":"assistant","content":""}} one millisecond after the request
  role.client_ns = r.sent_ns + 1'000'000;
  role.channel = Channel::none;
  r.chunks.insert(r.chunks.begin(), role);
  EXPECT_DOUBLE_EQ(*request_figures(r, kCold).ttft_seconds, 0.05);
}

TEST(RequestFigures, TimeToFirstTokenCountsReasoning) {
  RequestRecord r = FakeBench().request(0, 0);
  r.chunks[0].channel = Channel::reasoning;
  EXPECT_DOUBLE_EQ(*request_figures(r, kCold).ttft_seconds, 0.05);
  EXPECT_EQ(request_figures(r, kCold).first_100->intervals, 99u);
}

TEST(RequestFigures, FramesReadAtOnceShareTheirTime) {
  RequestRecord r = FakeBench().request(0, 0);
  for (size_t i = 0; i < r.chunks.size(); ++i)
    r.chunks[i].client_ns = r.sent_ns + 50'000'000 + 40'000'000 * static_cast<int64_t>(i / 4);
  r.end_ns = r.chunks.back().client_ns;
  const RequestFigures f = request_figures(r, kCold);
  EXPECT_EQ(f.first_100->intervals, 96u);
  EXPECT_DOUBLE_EQ(f.first_100->interval_rate, 100.0);
  EXPECT_EQ(f.first_100->quantum, 4u);
}

TEST(RequestFigures, ShortAnswersHaveShortWindows) {
  RequestRecord r = FakeBench().request(0, 0);
  r.chunks.resize(30);
  r.finish_reason = "stop";
  r.usage.completion_tokens = 30;
  EXPECT_EQ(request_figures(r, kCold).first_100->tokens, 30u);
}

// Cycles of `emitted` tokens from `accepted` of `depth` proposals, every 20 ms.
RequestRecord speculative_request(const std::vector<std::pair<uint32_t, uint32_t>>& cycles) {
  RequestRecord r = FakeBench().request(0, 0);
  r.chunks.clear();
  int32_t id = 0;
  for (const auto& [depth, accepted] : cycles) {
    ChunkEvent c;
    c.client_ns = r.sent_ns + 20'000'000LL * static_cast<int64_t>(r.chunks.size() + 1);
    c.token_ids.emplace();
    for (uint32_t i = 0; i <= accepted; ++i, ++id) c.token_ids->push_back((id * 7919) % 10007);
    c.depth = depth;
    c.accepted = accepted;
    r.chunks.push_back(c);
  }
  r.end_ns = r.chunks.back().client_ns;
  r.finish_reason = "stop";
  r.usage.completion_tokens = static_cast<uint32_t>(id);
  return r;
}

TEST(RequestFigures, CyclesWithAndWithoutTheBonusToken) {
  const RequestFigures f = request_figures(speculative_request({{3, 2}, {3, 0}, {3, 3}, {1, 1}}), kCold);
  EXPECT_EQ(f.tokens, 10u);
  EXPECT_DOUBLE_EQ(*f.tokens_per_cycle, 2.5);
  EXPECT_DOUBLE_EQ(*f.tokens_per_cycle_without_bonus, 1.5);
  EXPECT_DOUBLE_EQ(*f.target_passes_per_second, 50.0);
  ASSERT_EQ(f.acceptance_by_position.size(), 3u);
  EXPECT_DOUBLE_EQ(f.acceptance_by_position[0], 3.0 / 4);
  EXPECT_DOUBLE_EQ(f.acceptance_by_position[1], 2.0 / 3);
  EXPECT_DOUBLE_EQ(f.acceptance_by_position[2], 1.0 / 3);
  EXPECT_FALSE(f.server_rate) << "not every frame has the server's time";
}

// What a change makes of a sound request.
std::vector<std::string> invalid_after(const std::function<void(RequestRecord&)>& change,
                                       const FigureRules& rules = kCold) {
  RequestRecord r = FakeBench().request(0, 0);
  change(r);
  return request_figures(r, rules).invalid;
}

TEST(Validity, EachReasonIsNamed) {
  const auto names = [](const char* reason) { return Contains(HasSubstr(reason)); };
  EXPECT_THAT(invalid_after([](auto& r) { r.usage.completion_tokens = 119; }),
              names("count mismatch: the server reports 119 completion tokens and 120"));
  EXPECT_THAT(invalid_after([](auto& r) { r.usage.prompt_tokens = 5; }),
              names("count mismatch: the server reports 5 prompt tokens and 4"));
  EXPECT_THAT(invalid_after([](auto& r) { r.usage.cached_tokens = 3; }), names("warm cache: 3 prompt tokens"));
  EXPECT_THAT(invalid_after([](auto& r) { r.complete = false; }), names("truncated events"));
  EXPECT_THAT(invalid_after([](auto& r) { r.finish_reason = ""; }), names("wrong finish: ''"));
  EXPECT_THAT(invalid_after([](auto& r) { r.finish_reason = "content_filter"; }),
              names("wrong finish: 'content_filter'"));
  EXPECT_THAT(invalid_after([](auto& r) { r.max_tokens = 200; }), names("wrong finish: 'length' after 120 of 200"));
  EXPECT_THAT(invalid_after([](auto& r) { r.finish_reason = "stop"; }, {.fixed_length = true}),
              names("wrong finish: 'stop' where the length is fixed"));
  EXPECT_THAT(invalid_after([](auto& r) { r.http_status = 503; }), names("error: HTTP status 503"));
  EXPECT_THAT(invalid_after([](auto& r) { r.error = "reset"; }), names("error: reset"));
  EXPECT_THAT(invalid_after([](auto& r) { r.after.suspended_ns = 2'000'000'000; }),
              names("suspend: the machine slept for 2000 ms"));
  EXPECT_THAT(invalid_after([](auto& r) { r.after.throttle_events = 2; }), names("throttling: 2 times"));
  EXPECT_THAT(invalid_after([](auto& r) { r.after.swapped_pages = 7; }), names("swapping: 7 pages"));
  EXPECT_THAT(invalid_after([](auto& r) { r.after.steal_ticks = 5; }), names("steal: 5 of 300"));
  EXPECT_THAT(invalid_after([](auto& r) { r.after.steal_ticks = 4; }), IsEmpty())
      << "1 % and the tick that is not resolved";
  EXPECT_THAT(invalid_after([](auto& r) {
                for (auto& c : r.chunks) c.token_ids = std::vector<int32_t>{11};
              }),
              names("repetition loop: tokens 0 to 119 repeat a cycle of 1"));
  EXPECT_THAT(invalid_after([](auto& r) { r.chunks[3].depth = 1, r.chunks[3].accepted = 2; }),
              names("cycle events: frame 3 accepted 2 of 1"));
  EXPECT_THAT(invalid_after([](auto& r) {
                r.chunks[3].depth = 4, r.chunks[3].accepted = 0;
                r.chunks[3].token_ids->push_back(1);
                r.usage.completion_tokens = 121, r.max_tokens = 121;
              }),
              names("cycle events: frame 3 has 2 tokens from 0 accepted"));
}

TEST(Validity, AClientThatLeftIsNoTruncation) {
  RequestRecord r = FakeBench().request(0, 0);
  r.cancelled_by_client = true;
  r.complete = false;
  r.finish_reason.clear();
  r.usage = {};
  EXPECT_THAT(request_figures(r, kCold).invalid, IsEmpty());
  EXPECT_THAT(request_figures(r, kCold).unproven, IsEmpty());
}

TEST(Validity, WhoLeavesBeforeTheFirstTokenSawNoCycles) {
  const FigureRules rules{.cold = true, .fixed_length = false, .speculative = true};
  RequestRecord r = FakeBench().request(0, 0);
  r.chunks.clear();
  r.usage.completion_tokens = 0;
  EXPECT_THAT(request_figures(r, rules).unproven, testing::Not(Contains(HasSubstr("its cycles")))) << "no tokens, no cycles";
  r.cancelled_by_client = true;
  r.complete = false;
  r.finish_reason.clear();
  EXPECT_THAT(request_figures(r, rules).unproven, IsEmpty());
  EXPECT_THAT(request_figures(FakeBench().request(0, 0), rules).unproven, Contains(HasSubstr("does not report its cycles")));
}

TEST(Validity, AbsentIsUnprovenAndNeverZero) {
  RequestRecord r = FakeBench().request(0, 0);
  r.usage = {};
  const RequestFigures f = request_figures(r, kCold);
  EXPECT_THAT(f.unproven, Contains(HasSubstr("cache unproven")));
  EXPECT_THAT(f.unproven, Contains(HasSubstr("count: the server reports no completion tokens")));
  EXPECT_THAT(request_figures(r, {.cold = false}).unproven, testing::Not(Contains(HasSubstr("cache unproven"))));
  r.before.throttle_events.reset();
  r.after.steal_ticks.reset();
  EXPECT_THAT(request_figures(r, kCold).not_watched, testing::UnorderedElementsAre("throttling", "steal"));
}

TEST(Validity, TokensWithoutIdsCannotBeTimed) {
  RequestRecord r = FakeBench().request(0, 0);
  for (ChunkEvent& c : r.chunks) c.token_ids.reset();
  const RequestFigures f = request_figures(r, kCold);
  EXPECT_FALSE(f.first_100 || f.all);
  EXPECT_EQ(f.tokens, 120u) << "as the server counts";
  EXPECT_THAT(f.unproven, Contains(HasSubstr("token ids: ")));
}

TEST(Validity, AcceptanceCurvesThatAreTooGood) {
  const FigureRules rules{.cold = true, .fixed_length = false, .speculative = true};
  const std::vector<std::pair<uint32_t, uint32_t>> stale(40, {4, 4});
  EXPECT_THAT(
      request_figures(speculative_request(stale), rules).invalid,
      Contains(HasSubstr("flat acceptance: of 40 cycles of depth 4 that accepted anything, 40 accepted everything")));
  std::vector<std::pair<uint32_t, uint32_t>> real;
  for (uint32_t i = 0; i < 80; ++i) real.emplace_back(4, i % 5);
  EXPECT_THAT(request_figures(speculative_request(real), rules).invalid, IsEmpty());
  EXPECT_THAT(request_figures(FakeBench().request(0, 0), rules).unproven,
              Contains(HasSubstr("acceptance: the server does not report")));
}

// The figures that the lab's documents print.
TEST(Ledger, ARecordByIntervals) {
  // 100 events in a time that makes the inclusive rate 102.971435596.
  const int64_t ns = 971143108;
  std::vector<int64_t> t(100, 0);
  for (int64_t i = 0; i < 100; ++i) t[static_cast<size_t>(i)] = ns * i / 99;
  const auto rate = window_rate(t, 1, 100);
  ASSERT_TRUE(rate);
  EXPECT_NEAR(rate->historical_inclusive_rate, 102.971435596, 2e-7);
  EXPECT_NEAR(rate->interval_rate, 101.941721240, 2e-7);
  EXPECT_DOUBLE_EQ(rate->interval_rate / rate->historical_inclusive_rate, 0.99);
  EXPECT_EQ(fmt::format("{:.9f}", 102.971435596 * 99 / 100), "101.941721240");
  EXPECT_EQ(fmt::format("{:.9f}", 102.0 - 101.941721240), "0.058278760");
}

TEST(Ledger, AShareOfAcceptedTokens) { EXPECT_EQ(fmt::format("{:.3f}", 100.0 * 953 / 1953), "48.797"); }

// Whether printed parts can be the parts of a printed sum: each of them was rounded to `decimals`, so the sum of n
// parts may be off by half a unit for each part and half for itself.
bool adds_up(const std::vector<double>& parts, double printed, int decimals) {
  double sum = 0;
  for (const double part : parts) sum += part;
  const double unit = std::pow(10.0, -decimals);
  return std::abs(sum - printed) <= unit * (static_cast<double>(parts.size()) + 1) / 2 + 1e-12;
}

TEST(Ledger, ASumThatDoesNotAddUpIsFlagged) {
  EXPECT_FALSE(adds_up({45.646, 9.700, 1.566}, 56.848, 3)) << "the parts give 56.912";
  EXPECT_TRUE(adds_up({45.646, 9.700, 1.566}, 56.912, 3));
  EXPECT_TRUE(adds_up({0.3333, 0.3333, 0.3333}, 1.0, 4)) << "rounding alone";
  EXPECT_TRUE(adds_up({80.30, 34.93, 9.39}, 124.61, 2)) << "0.01 apart: rounding of four figures";
  EXPECT_FALSE(adds_up({80.30, 34.93, 9.39}, 124.65, 2));
}

}  // namespace
}  // namespace stet
