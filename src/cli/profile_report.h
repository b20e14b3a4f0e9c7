// A profile as a table and as JSON.
#pragma once

#include <string>

#include "lab/profile/profile.h"

namespace stet {

// all: every stage alone instead of kinds over the layers.
std::string profile_table(const ProfileReport& report, const ProfileOptions& options, const EngineInfo& info, bool all);
std::string profile_json(const ProfileReport& report, const ProfileOptions& options, const EngineInfo& info);
// Which whole is not the sum of its parts, with the numbers; empty: none.
std::string unreconciled(const ProfileReport& report);

}  // namespace stet
