// What OpenAI-compatible servers have in common: bodies of requests, lists of models, streams of chat completions.
#pragma once

#include "lab/bench/adapter.h"
#include "base/strict_json.h"

namespace stet {

// The body of a streamed chat completion, without what only some servers know.
Json openai_body(const PlannedRequest& request, const std::string& model);

// A JSON reply of status 200; nothing for any other status or body.
std::optional<Json> get_json(HttpClient& client, const std::string& path);

// Chooses from /v1/models: the id asked for, or the only one. Throws as Adapter::identify does.
std::string choose_model(const Json& models, const std::string& asked);

// Members that are not there read as nothing; a member of another type too, because servers disagree about what absent
// means.
std::string text_member(const Json& object, std::string_view key);
std::optional<uint32_t> count_member(const Json& object, std::string_view key);
// The object, or an empty one.
const Json& object_member(const Json& object, std::string_view key);

// What follows the last slash: no path leaves this machine.
std::string file_name(std::string_view path);

// {"server": name, "server_version": version, ...}: what another server says of itself.
ServerIdentity foreign_identity(std::string_view name, const std::string& version, const std::string& model,
                                const Json& more);

// The message of an error body, or its first words.
std::string error_text(std::string_view body);

class OpenAiReader : public AnswerReader {
 public:
  void event(int64_t arrival_ns, const SseEvent& event, RequestRecord& record) override;
  bool ended() const override { return ended_; }

 protected:
  // What a kind of server adds to an event; chunk: the frame that is about to be recorded.
  virtual void extend(const Json& event, ChunkEvent& chunk, RequestRecord& record);

 private:
  void choice(int64_t arrival_ns, const Json& event, const Json& choice, RequestRecord& record);
  bool ended_ = false;
};

}  // namespace stet
