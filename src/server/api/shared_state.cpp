#include "server/api/shared_state.h"

#include <fmt/format.h>

#include "base/visible_text.h"

namespace stet {
namespace {

constexpr size_t kShownPath = 200;
constexpr size_t kMostTopics = 1000;

// messages[17].content[0].x and messages[2].content[5].x are one field.
std::string without_indices(const std::string& path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) out += c;
    if (c == '[') inside = true;
  }
  return out;
}

}  // namespace

void SharedState::log(std::string_view line) {
  if (!options.log) return;
  const std::string safe = visible_text(line);
  const std::lock_guard lock(mutex_);
  options.log(safe);
}

void SharedState::log_request(const HttpRequest& request, int status, std::string_view more) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - request.arrived).count();
  log(fmt::format("#{} {} {} {} from {} in {:.3f} s{}{}", request.id, request.method,
                  request.path.substr(0, kShownPath), status, request.client, seconds, more.empty() ? "" : ": ", more));
}

void SharedState::log_once(const std::string& topic, std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    if (said_.size() >= kMostTopics || !said_.insert(topic).second) return;
  }
  log(line);
}

void SharedState::name_hints(const std::vector<std::string>& hints) {
  for (const std::string& hint : hints) {
    const std::string name = without_indices(hint);
    log_once(name, fmt::format("the field {} changes nothing here: it is accepted, and named this once", name));
  }
}

}  // namespace stet
