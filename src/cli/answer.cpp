#include "cli/answer.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/run_report.h"
#include "cli/terminal.h"

namespace stet {

Generation generate_in_view(Engine& engine, const Request& request, const AnswerView& view) {
  ProgressLine progress(!view.quiet);
  const auto on_cycle = [&](const CycleEvent& cycle) {
    progress.clear();
    if (view.show_text) show_out(cycle.text);
    return interrupts() == 0;
  };
  const auto on_prefill = [&](uint32_t done, uint32_t total) {
    progress.show(fmt::format("reading the prompt: {} of {} tokens", done, total));
    return interrupts() == 0;
  };
  const Generation answer = engine.generate(request, on_cycle, on_prefill);
  progress.clear();
  if (view.show_text && is_terminal(kStdout) && !answer.text.ends_with('\n')) write_out("\n");
  if (answer.finish == Finish::context)
    say(fmt::format("the context of {} tokens is full, so the answer ends here; choose a larger --ctx",
                    engine.info().context));
  if (!view.quiet) say(figures_line(answer, engine.info(), request));
  return answer;
}

}  // namespace stet
