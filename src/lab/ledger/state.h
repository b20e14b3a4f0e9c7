// What is going on: from the ledger, and from the processes that live.
#pragma once

#include <string>
#include <vector>

#include "lab/ledger/ledger.h"
#include "lab/ledger/running.h"

namespace stet {

struct ProtectedWork {
  std::string what, why, since;
};

struct UnfinishedPacket {
  int64_t attempt = 0;
  std::string partial;  // the folder that says incomplete
  bool live = false;    // its attempt is running
};

struct LabState {
  std::string lane, lane_since;  // the line of work that is followed; empty: none was named
  std::string next, next_since;  // what is to be done next, as somebody wrote it
  std::vector<std::string>
      suggestions;  // what follows from the records: dead attempts, unfinished packets, running work
  std::vector<ProtectedWork> protected_work;
  std::vector<RunningProcess> running;
  std::vector<AttemptRow> live_attempts;
  std::vector<UnfinishedPacket> unfinished;
  std::vector<ClassState> closed_classes;
  std::vector<AttemptRow> last;  // the last five that ended, newest first
};

LabState lab_state(Ledger& ledger);

}  // namespace stet
