// The user's folders. user_paths() is the only function below the command line that reads the environment, and it reads
// XDG_CACHE_HOME, XDG_DATA_HOME and HOME only.
#pragma once

#include <string>

namespace stet {

struct UserPaths {
  std::string home;   // HOME, or what the user database says; empty when neither is an absolute path
  std::string cache;  // XDG_CACHE_HOME, or .cache below home; empty when neither is known
  std::string data;   // XDG_DATA_HOME, or .local/share below home; empty when neither is known
};

UserPaths user_paths();

// The rule alone, for values that may be null. A relative path counts as not set, as the XDG specification asks.
UserPaths user_paths_from(const char* xdg_cache_home, const char* xdg_data_home, const char* home, const char* database_home);

}  // namespace stet
