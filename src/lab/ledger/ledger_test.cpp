#include "lab/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "lab/ledger/running.h"
#include "lab/ledger/sqlite.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string hash_of(const std::string& text) { return sha256_hex(text.data(), text.size()); }

AttemptPlan plan_of(const std::string& text, Authority authority = Authority::until_treatment) {
  AttemptPlan plan;
  plan.kind = "compare";
  plan.label = text;
  plan.subject_sha256 = hash_of("subject of " + text);
  plan.plan_sha256 = hash_of(text);
  plan.authority = authority;
  plan.packet = "out/" + text;
  return plan;
}

template <typename F>
std::string refusal(F f, Code code = Code::kUsage) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "nothing was refused";
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    std::string pattern = (fs::temp_directory_path() / "stet-ledger-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "data" / "ledger.sqlite";
  }
  ~LedgerTest() override { fs::remove_all(folder_); }
  Outcome promoted() {
    Outcome o;
    o.verdict = "promoted";
    o.reason = "1.20 above the floor";
    o.packet_sha256 = hash_of("packet");
    o.status = {.correctness = Correctness::exact,
                .component = ComponentStatus::none,
                .endpoint = EndpointStatus::pass,
                .infrastructure = Infrastructure::sound,
                .measurement = Measurement::valid,
                .lifecycle = Lifecycle::promoted};
    return o;
  }

  fs::path folder_, path_;
};

TEST_F(LedgerTest, AnAttemptIsThereBeforeAnythingStarts) {
  Ledger ledger(path_), other(path_);
  Attempt attempt = ledger.begin(plan_of("p"));
  const AttemptRow row = other.attempt(attempt.id());
  EXPECT_EQ(row.plan.plan_sha256, hash_of("p"));
  EXPECT_EQ(row.plan.packet, "out/p");
  EXPECT_EQ(row.lifecycle, "registered");
  EXPECT_EQ(row.outcome, "");
  EXPECT_TRUE(row.live);
  EXPECT_TRUE(row.ended.empty());
  attempt.treatment();
  EXPECT_FALSE(other.attempt(attempt.id()).treated.empty());
  attempt.finish(promoted());
  const AttemptRow end = other.attempt(attempt.id());
  EXPECT_FALSE(end.live);
  EXPECT_EQ(end.outcome, "finished");
  EXPECT_EQ(end.verdict, "promoted");
  EXPECT_EQ(end.correctness, "exact");
  EXPECT_EQ(end.component, "none");
  EXPECT_EQ(end.endpoint, "pass");
  EXPECT_EQ(end.infrastructure, "sound");
  EXPECT_EQ(end.measurement, "valid");
  EXPECT_EQ(end.lifecycle, "promoted");
  EXPECT_EQ(end.packet_sha256, hash_of("packet"));
}

TEST_F(LedgerTest, FilesArePrivate) {
  Ledger ledger(path_);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(path_.parent_path()).permissions(), fs::perms::owner_all);
}

TEST_F(LedgerTest, OneShotIsUsedByAnyAttempt) {
  Ledger ledger(path_);
  { Attempt attempt = ledger.begin(plan_of("p", Authority::one_shot)); }
  EXPECT_EQ(ledger.attempt(1).outcome, "failed");
  EXPECT_EQ(ledger.attempt(1).reason, "it ended early");
  EXPECT_EQ(ledger.attempt(1).infrastructure, "failed_before_treatment");
  EXPECT_THAT(refusal([&] { ledger.begin(plan_of("p", Authority::one_shot)); }),
              HasSubstr("one-shot, and attempt 1 used it"));
  // The refusal stands in the ledger and uses nothing up.
  EXPECT_EQ(ledger.attempt(2).outcome, "refused");
  EXPECT_EQ(ledger.attempt(2).lifecycle, "refused");
  ledger.begin(plan_of("another", Authority::one_shot)).finish(promoted());
}

TEST_F(LedgerTest, UntilTreatmentCostsNothingBeforeTheTreatment) {
  Ledger ledger(path_);
  ledger.begin(plan_of("p")).fail("the port was taken");
  ledger.begin(plan_of("p")).fail("interrupted", true);
  EXPECT_EQ(ledger.attempt(2).infrastructure, "aborted_before_treatment");
  Attempt third = ledger.begin(plan_of("p"));
  third.treatment();
  third.fail("the server died");
  EXPECT_EQ(ledger.attempt(third.id()).infrastructure, "failed_after_treatment");
  EXPECT_THAT(refusal([&] { ledger.begin(plan_of("p")); }), HasSubstr("attempt 3 reached it"));
}

TEST_F(LedgerTest, APlanRunsOnceAtATime) {
  Ledger ledger(path_);
  Attempt attempt = ledger.begin(plan_of("p"));
  EXPECT_THAT(refusal([&] { ledger.begin(plan_of("p")); }), HasSubstr("attempt 1 at this plan is running"));
  attempt.fail("enough");
  ledger.begin(plan_of("p")).fail("again");
}

TEST_F(LedgerTest, APacketShowsHowManyAttemptsPrecededIt) {
  Ledger ledger(path_);
  AttemptPlan same = plan_of("p");
  same.idea = "fusion";
  ledger.begin(plan_of("unrelated")).finish(promoted());
  ledger.begin(same).fail("first");
  same.plan_sha256 = hash_of("p with another seed");
  Attempt second = ledger.begin(same);
  second.treatment();
  second.finish(promoted());
  same.plan_sha256 = hash_of("p with a third seed");
  const auto context = nlohmann::json::parse(ledger.begin(same).context_json());
  EXPECT_EQ(context["attempt"], 4);
  EXPECT_EQ(context["before"]["all"], 3);
  EXPECT_EQ(context["before"]["same_subject"], 2);
  EXPECT_EQ(context["before"]["same_plan"], 0);
  EXPECT_EQ(context["before"]["same_idea"], 2);
  EXPECT_EQ(context["earlier"][0]["verdict"], "promoted");
  EXPECT_EQ(context["earlier"][0]["reached_treatment"], true);
  EXPECT_EQ(context["earlier"][1]["outcome"], "failed");
}

TEST_F(LedgerTest, AClosedClassIsRefusedUnlessCited) {
  Ledger ledger(path_);
  AttemptPlan plan = plan_of("p");
  plan.idea = "winner transport";
  const int64_t first = ledger.close_class("winner transport", "adds a host boundary", "no eager boundary is added");
  EXPECT_THAT(
      refusal([&] { ledger.begin(plan); }),
      ::testing::AllOf(HasSubstr("adds a host boundary"), HasSubstr("reopen only if: no eager boundary is added")));
  plan.cites = {first};
  ledger.begin(plan).fail("tried");
  // A later closure has to be cited itself.
  ledger.reopen_class("winner transport", "the boundary is gone");
  plan.cites = {};
  ledger.begin(plan).fail("tried");
  ledger.close_class("winner transport", "no gain either", "another interconnect");
  plan.cites = {first};
  EXPECT_THAT(refusal([&] { ledger.begin(plan); }), HasSubstr("no gain either"));
  plan.idea = "another class";
  ledger.begin(plan).fail("tried");
}

TEST_F(LedgerTest, ClosingAndReopeningAreChecked) {
  Ledger ledger(path_);
  EXPECT_THAT(refusal([&] { ledger.close_class("c", "why", ""); }), HasSubstr("--reopen-only-if"));
  EXPECT_THAT(refusal([&] { ledger.reopen_class("c", "why"); }), HasSubstr("not closed"));
  ledger.close_class("c", "why", "condition");
  EXPECT_THAT(refusal([&] { ledger.close_class("c", "why", "condition"); }), HasSubstr("closed already"));
  ASSERT_EQ(ledger.classes().size(), 1u);
  EXPECT_TRUE(ledger.classes()[0].closed);
  EXPECT_EQ(ledger.classes()[0].reopen_only_if, "condition");
  ledger.reopen_class("c", "met");
  EXPECT_FALSE(ledger.classes()[0].closed);
}

TEST_F(LedgerTest, NothingIsDeletedOrRewritten) {
  Ledger ledger(path_);
  ledger.begin(plan_of("p")).finish(promoted());
  ledger.close_class("c", "why", "condition");
  ledger.spend_pack(hash_of("seed"), "A", hash_of("manifest"), 1);
  Database database(path_, 1);
  for (const char* sql : {"DELETE FROM attempts", "DELETE FROM journal", "DELETE FROM packs",
                          "UPDATE journal SET text = ''", "UPDATE attempts SET verdict = 'better'",
                          "UPDATE packs SET pack = 'B'", "UPDATE attempts SET plan_sha256 = ''"})
    EXPECT_THROW(database.run(sql), Error) << sql;
}

TEST_F(LedgerTest, APackIsSpentOnce) {
  Ledger ledger(path_);
  const std::string seed = hash_of("seed"), manifest = hash_of("manifest");
  ledger.spend_pack(seed, "A", manifest, 1);
  EXPECT_THAT(refusal([&] { ledger.spend_pack(seed, "A", manifest, 2); }), HasSubstr("a pack is run once"));
  EXPECT_THAT(refusal([&] { ledger.spend_pack(seed, "B", hash_of("changed"), 2); }), HasSubstr("needs a new seed"));
  ledger.spend_pack(seed, "B", manifest, 1);
  ledger.spend_pack(hash_of("new seed"), "A", hash_of("changed"), 3);
}

// Runs f in a process of its own; returns its wait status.
template <typename F>
int in_child(F f) {
  const pid_t pid = fork();
  if (pid == 0) {
    int code = 1;
    try {
      code = f();
    } catch (const std::exception& e) {
      fprintf(stderr, "child: %s\n", e.what());
    }
    _exit(code);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

TEST_F(LedgerTest, AKilledProcessLeavesAnAbortedAttempt) {
  for (const bool treated : {false, true}) {
    const int status = in_child([&] {
      Ledger ledger(path_);
      Attempt attempt = ledger.begin(plan_of(treated ? "treated" : "not treated"));
      if (treated) attempt.treatment();
      kill(getpid(), SIGKILL);
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  Ledger ledger(path_);
  EXPECT_EQ(ledger.attempt(1).outcome, "aborted");
  EXPECT_EQ(ledger.attempt(1).infrastructure, "aborted_before_treatment");
  EXPECT_EQ(ledger.attempt(2).infrastructure, "aborted_after_treatment");
  EXPECT_TRUE(running_processes(running_folder(path_)).empty());
  ledger.begin(plan_of("not treated")).fail("allowed");
  EXPECT_THAT(refusal([&] { ledger.begin(plan_of("treated")); }), HasSubstr("attempt 2 reached it"));
}

TEST_F(LedgerTest, ProcessesWriteAtTheSameTime) {
  constexpr int kProcesses = 4, kAttempts = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t pid = fork();
    if (pid == 0) {
      int code = 1;
      try {
        for (int i = 0; i < kAttempts; ++i) {
          Ledger ledger(path_);  // the first of all of them makes the file
          Attempt attempt = ledger.begin(plan_of(fmt::format("{} {}", p, i)));
          attempt.treatment();
          attempt.finish({});
        }
        code = 0;
      } catch (const std::exception& e) {
        fprintf(stderr, "child: %s\n", e.what());
      }
      _exit(code);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Ledger ledger(path_);
  std::set<std::string> labels;
  for (const AttemptRow& row : ledger.attempts()) {
    EXPECT_EQ(row.outcome, "finished");
    labels.insert(row.plan.label);
  }
  EXPECT_EQ(labels.size(), static_cast<size_t>(kProcesses * kAttempts));
}

// Both want the one shot at the same moment: exactly one gets it.
TEST_F(LedgerTest, OneShotIsOneAmongProcesses) {
  { Ledger ledger(path_); }
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    const pid_t pid = fork();
    if (pid == 0) {
      int code = 2;
      try {
        Ledger(path_).begin(plan_of("p", Authority::one_shot)).finish({});
        code = 0;
      } catch (const Error& e) {
        code = e.code() == Code::kUsage ? 1 : 2;
      }
      _exit(code);
    }
    children.push_back(pid);
  }
  int winners = 0;
  for (pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_LT(WEXITSTATUS(status), 2);
    winners += WEXITSTATUS(status) == 0;
  }
  EXPECT_EQ(winners, 1);
}

TEST_F(LedgerTest, StrangeFilesAreRefused) {
  fs::create_directories(path_.parent_path());
  std::ofstream(path_) << "this is no database, but it is long enough to be taken for one at first sight";
  EXPECT_THAT(refusal([&] { Ledger ledger(path_); }, Code::kInput), HasSubstr("no ledger"));
  fs::remove(path_);
  Database(path_, 1).run("CREATE TABLE something(x)");
  EXPECT_THAT(refusal([&] { Ledger ledger(path_); }, Code::kInput), HasSubstr("no ledger of stet"));
  fs::remove(path_);
  { Ledger ledger(path_); }
  Database(path_, 1).run("PRAGMA user_version = 2");
  EXPECT_THAT(refusal([&] { Ledger ledger(path_); }, Code::kUnsupported), HasSubstr("version 2"));
}

TEST_F(LedgerTest, RunningProcessesAreSeenWhileTheyLive) {
  const std::string folder = running_folder(path_);
  EXPECT_TRUE(running_processes(folder).empty());
  {
    RunningMark mark(folder, "serve", R"({"port": 1234})");
    const auto running = running_processes(folder);
    ASSERT_EQ(running.size(), 1u);
    EXPECT_EQ(running[0].verb, "serve");
    EXPECT_EQ(running[0].pid, getpid());
    EXPECT_EQ(running[0].name, mark.name());
    EXPECT_EQ(running[0].object_json, R"({"port":1234})");
  }
  EXPECT_TRUE(running_processes(folder).empty());
  EXPECT_TRUE(fs::is_empty(folder));
  in_child([&] {
    new RunningMark(folder, "bench", "{}");
    return 0;  // without its destructor
  });
  EXPECT_FALSE(fs::is_empty(folder));
  EXPECT_TRUE(running_processes(folder).empty());
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Authority, Names) {
  EXPECT_EQ(parse_authority("one-shot"), Authority::one_shot);
  EXPECT_EQ(parse_authority("until-treatment"), Authority::until_treatment);
  EXPECT_THROW(parse_authority("whenever"), Error);
}

}  // namespace
}  // namespace stet
