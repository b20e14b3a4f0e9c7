#include "server/api/messages.h"

#include <algorithm>
#include <array>

#include "server/api/api_error.h"

namespace stet {
namespace {

constexpr std::string_view kToolsLater = "this server does not run tools";

struct RawMessage {
  std::optional<std::string> role, content;
};

struct RawPart {
  std::optional<std::string> type, text;
};

const std::vector<Field<RawPart>>& part_fields() {
  static const std::vector<Field<RawPart>> table = {
      honoured<RawPart>(
          "type",
          [](const FieldValue& v, RawPart& out) {
            out.type = v.text();
            if (*out.type != "text")
              refuse(v.path(), "{} is '{}'; only text parts are supported: the model sees no images, audio or files",
                     v.path(), shortened(*out.type));
          }),
      honoured<RawPart>("text", [](const FieldValue& v, RawPart& out) { out.text = v.text(); }),
      hint<RawPart>("cache_control"),
  };
  return table;
}

std::string read_part(const FieldValue& value, Hints& hints) {
  RawPart part;
  // The type first: what else an image holds is of no interest.
  for (const FieldValue& member : value.members())
    if (member.name() == "type") part_fields().front().read(member, part);
  read_fields(value, part_fields(), part, hints);
  if (!part.type) refuse(value.path(), "{} has no type; write {{\"type\": \"text\", \"text\": ...}}", value.path());
  if (!part.text) refuse(value.path(), "{} has no text", value.path());
  return *part.text;
}

// Parts of one message are joined by line breaks, as vLLM joins them for templates that take text.
std::string read_content(const FieldValue& value, Hints& hints) {
  if (value.is_text()) return value.text();
  if (!value.is_list()) refuse(value.path(), "{} must be a string or an array of text parts", value.path());
  std::string content;
  bool first = true;
  for (const FieldValue& part : value.items()) {
    if (!first) content += '\n';
    content += read_part(part, hints);
    first = false;
  }
  return content;
}

std::string read_role(const FieldValue& value) {
  constexpr std::array<std::string_view, 4> kRoles = {"system", "developer", "user", "assistant"};
  const std::string& role = value.text();
  if (role == "tool" || role == "function") refuse(value.path(), "{} is '{}': {}", value.path(), role, kToolsLater);
  if (std::ranges::find(kRoles, role) == kRoles.end())
    refuse(value.path(), "{} must be one of: system, developer, user, assistant", value.path());
  return role;
}

struct MessageReader {
  RawMessage raw;
  Hints* hints;
};

const std::vector<Field<MessageReader>>& message_fields() {
  using R = MessageReader;
  static const std::vector<Field<R>> table = {
      honoured<R>("role", [](const FieldValue& v, R& out) { out.raw.role = read_role(v); }),
      honoured<R>("content", [](const FieldValue& v, R& out) { out.raw.content = read_content(v, *out.hints); }),
      unless<R>("name", "[]", "chat templates show no names; write the name into the text"),
      unless<R>("tool_calls", "[[]]", kToolsLater),
      unless<R>("tool_call_id", "[]", kToolsLater),
      unless<R>("function_call", "[]", kToolsLater),
      unless<R>("refusal", R"([""])", "move the text into content"),
      unless<R>("audio", "[]", "the model hears nothing"),
      unless<R>("reasoning_content", R"([""])", "chat templates drop reasoning; leave it out"),
      unless<R>("reasoning", R"([""])", "chat templates drop reasoning; leave it out"),
      unless<R>("annotations", "[[]]", "leave it out"),
  };
  return table;
}

ChatMessage read_message(const FieldValue& value, Hints& hints) {
  MessageReader message{{}, &hints};
  read_fields(value, message_fields(), message, hints);
  if (!message.raw.role) refuse(value.path(), "{} has no role", value.path());
  if (!message.raw.content) refuse(value.path(), "{} has no content", value.path());
  return {*message.raw.role, *message.raw.content};
}

void read_switch(const FieldValue& value, std::optional<bool>& thinking) {
  const bool wanted = value.boolean();
  if (thinking && *thinking != wanted)
    refuse(value.path(), "{} is {}, and the other name of the same switch says otherwise", value.path(), wanted);
  thinking = wanted;
}

}  // namespace

std::optional<bool> read_thinking(const FieldValue& value, Hints& hints) {
  static const std::vector<Field<std::optional<bool>>> table = {
      honoured<std::optional<bool>>("thinking", read_switch),
      honoured<std::optional<bool>>("enable_thinking", read_switch),
  };
  std::optional<bool> thinking;
  read_fields(value, table, thinking, hints);
  return thinking;
}

Conversation read_messages(const FieldValue& value, Hints& hints) {
  Conversation messages;
  for (const FieldValue& message : value.items()) messages.push_back(read_message(message, hints));
  if (messages.empty()) refuse(value.path(), "{} is empty: at least one message is needed", value.path());
  return messages;
}

}  // namespace stet
