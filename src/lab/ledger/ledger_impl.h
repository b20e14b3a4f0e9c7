// What ledger.cpp and attempt.cpp share.
#pragma once

#include <string>

#include "lab/ledger/ledger.h"
#include "lab/ledger/running.h"
#include "lab/ledger/sqlite.h"

namespace stet {

struct Ledger::Impl {
  explicit Impl(const std::string& file) : path(file), database(file, 20) {}

  // Attempts whose process died get their end. Inside a write transaction.
  void reconcile();
  // What stands against the plan, as the message of the refusal; empty: nothing.
  std::string objection(const AttemptPlan& plan);
  std::string context(const AttemptPlan& plan, int64_t id);
  // Attempts that were not refused.
  int64_t count(std::string_view column, const std::string& value);
  int64_t count_all();
  ClassState class_state(const std::string& name);

  std::string path;
  Database database;
};

struct Attempt::Impl {
  std::shared_ptr<Ledger::Impl> ledger;
  int64_t id = 0;
  std::string context_json;
  std::unique_ptr<RunningMark> mark;
  bool treated = false, ended = false;

  void end(std::string_view outcome, const Outcome& what);
};

}  // namespace stet
