// What `stet run` says about an answer.
#pragma once

#include <string>

#include "stet/engine.h"

namespace stet {

// One line of figures, for people.
std::string figures_line(const Generation& answer, const EngineInfo& info, const Request& request);

// One JSON object (docs/cli.md), a line of its own. Text that is not UTF-8 has U+FFFD in its place.
std::string run_json(const Generation& answer, const EngineInfo& info, const Request& request);

}  // namespace stet
