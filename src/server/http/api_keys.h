// The keys that open the server: read from a file that nobody else can read, compared in constant time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stet::http {

class ApiKeys {
 public:
  // None: every request passes.
  ApiKeys() = default;
  explicit ApiKeys(const std::vector<std::string>& keys);
  // One key a line; empty lines and lines that begin with # are left out. Throws Error(kInput) when there is no such
  // file or it holds no key, Error(kResource) when it is unsafe: not a regular file, or open to others than its owner
  // (a group too, unless root owns the file and so chose the group).
  static ApiKeys from_file(const std::string& path);

  bool empty() const { return hashes_.empty(); }
  // Takes as long for a wrong key as for any of the right ones.
  bool accepts(std::string_view key) const;

 private:
  std::vector<std::string> hashes_;  // SHA-256: equal lengths, and no key stays in memory
};

}  // namespace stet::http
