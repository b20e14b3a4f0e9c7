// Runs a request in front of a person: progress while the prompt is read, text as it comes, figures at the end.
#pragma once

#include "stet/engine.h"

namespace stet {

struct AnswerView {
  bool show_text = true;
  bool quiet = false;  // no progress and no figures
};

// Stops at an interrupt, with what stands (Finish::cancelled). On a terminal the text ends with a line break.
Generation generate_in_view(Engine& engine, const Request& request, const AnswerView& view);

}  // namespace stet
