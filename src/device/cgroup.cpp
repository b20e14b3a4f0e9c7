#include "device/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <sstream>

namespace stet {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool lists(const std::string& names, const std::string& name) {
  for (const std::string& n : split(names, ','))
    if (n == name) return true;
  return false;
}

// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  int version;
  std::string top;      // the group that is mounted
  std::string point;    // where
  std::string options;  // of a version 1 hierarchy: its controllers among others
};

// Lines are: id parent device root point options [tags] - type source super-options.
std::vector<Mount> cgroup_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 3 >= fields.size()) continue;
    const std::string& type = fields[dash + 1];
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({type == "cgroup" ? 1 : 2, unescape(fields[3]), unescape(fields[4]), fields[dash + 3]});
  }
  return mounts;
}

// The path of this process's group, if the line of /proc/self/cgroup is of this mount's hierarchy.
std::optional<std::string> group_of(const Mount& mount, const std::string& controller, const std::string& cgroup) {
  for (const std::string& line : split(cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool same =
        mount.version == 2 ? controllers.empty() && line.substr(0, first) == "0" : lists(controllers, controller);
    if (same) return line.substr(second + 1);
  }
  return std::nullopt;
}

// A group's path below the mount. A group outside what is mounted (a container that sees only its own part) is the top.
std::string below_mount(const Mount& mount, const std::string& group) {
  std::string path = group;
  if (mount.top != "/") {
    if (path.compare(0, mount.top.size(), mount.top) != 0) return "";
    path = path.substr(mount.top.size());
    if (!path.empty() && path[0] != '/') return "";
  }
  if (path.find("/..") != std::string::npos) return "";
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::vector<CgroupHierarchy> cgroup_hierarchies(const std::string& controller, const std::string& root) {
  std::vector<CgroupHierarchy> hierarchies;
  const std::optional<std::string> cgroup = read_small_file(root + "/proc/self/cgroup");
  const std::optional<std::string> mountinfo = read_small_file(root + "/proc/self/mountinfo");
  if (!cgroup || !mountinfo) return hierarchies;
  for (const Mount& mount : cgroup_mounts(*mountinfo)) {
    if (mount.version == 1 && !lists(mount.options, controller)) continue;
    const std::optional<std::string> group = group_of(mount, controller, *cgroup);
    if (!group) continue;
    CgroupHierarchy hierarchy{mount.version, {}};
    for (std::string path = below_mount(mount, *group);; path.resize(path.rfind('/'))) {
      std::error_code ignored;
      if (std::filesystem::is_directory(root + mount.point + path, ignored))
        hierarchy.directories.push_back(root + mount.point + path);
      if (path.empty()) break;
    }
    if (!hierarchy.directories.empty()) hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr size_t kMaxBytes = 4 << 20;  // mountinfo of a machine with many containers
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t bytes = 0;
  while (text.size() < kMaxBytes && (bytes = read(file, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(bytes));
  close(file);
  if (bytes < 0) return std::nullopt;
  return text;
}

std::optional<uint64_t> number_after(const std::string& text, const std::string& key) {
  for (size_t line = 0; line < text.size();) {
    size_t end = text.find('\n', line);
    if (end == std::string::npos) end = text.size();
    if (text.compare(line, key.size(), key) == 0) {
      const size_t digit = text.find_first_not_of(" \t", line + key.size());
      uint64_t value = 0;
      if (digit < end && digit > line + key.size() &&
          std::from_chars(text.data() + digit, text.data() + end, value).ec == std::errc())
        return value;
    }
    line = end + 1;
  }
  return std::nullopt;
}

std::optional<uint64_t> whole_number(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  while (end != text.data() && (end[-1] == '\n' || end[-1] == ' ')) --end;
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end) return std::nullopt;
  return value;
}

}  // namespace stet
