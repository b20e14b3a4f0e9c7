// Which stet processes run: each holds a lock on a small file, so that one that died is never taken for a live one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

// Made under a name of its own in `folder`, locked before it can be seen, removed in the end.
class RunningMark {
 public:
  // verb: "bench". object_json: what else is known, such as {"packet": "..."}. Throws Error(kResource).
  RunningMark(const std::string& folder, std::string_view verb, std::string_view object_json);
  ~RunningMark();
  RunningMark(const RunningMark&) = delete;
  RunningMark& operator=(const RunningMark&) = delete;
  const std::string& name() const { return name_; }  // of the file, without the folder

 private:
  std::string path_, name_;
  int fd_ = -1;
};

struct RunningProcess {
  std::string name;  // of the mark
  int64_t pid = 0;
  std::string verb, since;
  std::string object_json;
};

// Those that live; removes the marks of those that died. An absent folder holds none.
std::vector<RunningProcess> running_processes(const std::string& folder);

// "running" beside the ledger at this path.
std::string running_folder(const std::string& ledger_path);

// Now, as "2026-11-30T01:02:03Z".
std::string utc_now();

}  // namespace stet
