#include "cli/transcript.h"

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/visible_text.h"
#include "text/unicode.h"

namespace stet {

std::string transcript_json(const EngineInfo& info, std::span<const ChatMessage> messages) {
  nlohmann::ordered_json j;
  j["model"] = replace_invalid_utf8(info.model_name);
  j["synthetic"] = info.synthetic;
  j["messages"] = nlohmann::ordered_json::array();
  for (const ChatMessage& m : messages)
    j["messages"].push_back({{"role", m.role}, {"content", replace_invalid_utf8(m.content)}});
  return j.dump(2) + "\n";
}

std::string transcript_markdown(const EngineInfo& info, std::span<const ChatMessage> messages) {
  std::string text =
      "# Conversation with " + visible_text(info.model_name) + (info.synthetic ? " (synthetic)\n" : "\n");
  for (const ChatMessage& m : messages) {
    text += "\n## " + m.role + "\n\n" + m.content;
    if (!m.content.ends_with('\n')) text += '\n';
  }
  return text;
}

void save_transcript(const std::string& path, bool overwrite, const EngineInfo& info,
                     std::span<const ChatMessage> messages) {
  const std::string text =
      path.ends_with(".json") ? transcript_json(info, messages) : transcript_markdown(info, messages);
  AtomicFile file(path, {.expected_bytes = text.size(), .overwrite = overwrite});
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace stet
