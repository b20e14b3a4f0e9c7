#include "base/xdg.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace stet {
namespace {

bool absolute(const char* path) { return path != nullptr && path[0] == '/'; }

std::string folder(const char* chosen, const std::string& home, const char* below) {
  if (absolute(chosen)) return chosen;
  return home.empty() ? "" : home + (home.back() == '/' ? "" : "/") + below;
}

std::string database_home() {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  return found->pw_dir != nullptr ? found->pw_dir : "";
}

}  // namespace

UserPaths user_paths() {
  const char* home = std::getenv("HOME");
  const std::string fallback = absolute(home) ? "" : database_home();
  return user_paths_from(std::getenv("XDG_CACHE_HOME"), std::getenv("XDG_DATA_HOME"), home, fallback.c_str());
}

UserPaths user_paths_from(const char* xdg_cache_home, const char* xdg_data_home, const char* home, const char* database_home) {
  UserPaths paths;
  if (absolute(home)) {
    paths.home = home;
  } else if (absolute(database_home)) {
    paths.home = database_home;
  }
  paths.cache = folder(xdg_cache_home, paths.home, ".cache");
  paths.data = folder(xdg_data_home, paths.home, ".local/share");
  return paths;
}

}  // namespace stet
