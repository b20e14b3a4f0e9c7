// One kind of server: how to ask it, how to forbid its cache, and where its answers say what a packet needs.
//
// An adapter is one file in adapters/, with the function NAME_adapter, and one line in adapters.def.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/bench/http_client.h"
#include "lab/bench/planned_request.h"
#include "lab/bench/sse.h"
#include "lab/record/events.h"

namespace stet {

// What is known about a kind of server, for packets and docs.
struct AdapterFacts {
  std::string_view name;       // "llama.cpp"
  std::string_view cache;      // how its cache is forbidden
  std::string_view token_ids;  // where they come from
  std::string_view cached_tokens;
  std::string_view server_clock;
  std::string_view cycles;  // depth and acceptance
  std::string_view tested;  // "against recorded replies of ...", or "against its documented form only"
};

struct ServerIdentity {
  std::string model;  // what requests call it
  std::string json;   // an object: "server" and "server_version", and all that it says of itself without paths
};

struct HttpCall {
  std::string path, body;
  std::optional<std::vector<int32_t>> prompt_ids;  // where the adapter had the prompt turned into ids
};

// Turns the events of one answer into its record. After an error the record's error says what it was, and nothing more
// is read.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual void event(int64_t arrival_ns, const SseEvent& event, RequestRecord& record) = 0;
  // The server has said that the answer is complete.
  virtual bool ended() const = 0;
};

class Adapter {
 public:
  virtual ~Adapter() = default;
  virtual const AdapterFacts& facts() const = 0;

  // Asks the server who it is. Nothing where it is of another kind. model: what to ask for, "" to take the only one it
  // has; throws Error(kUsage) listing them where it has several, Error(kInput) where it says something that cannot be
  // understood.
  virtual std::optional<ServerIdentity> identify(HttpClient& client, const std::string& model) const = 0;
  // Whether it has loaded its model.
  virtual bool ready(HttpClient& client) const;
  // May ask the server to render the prompt; throws Error(kInput) where that fails.
  virtual HttpCall call(const PlannedRequest& request, const ServerIdentity& server, HttpClient& client) const = 0;
  virtual std::unique_ptr<AnswerReader> reader() const = 0;
};

#define ADAPTER(name, function) const Adapter& function();
#include "lab/bench/adapters.def"
#undef ADAPTER

// Every adapter, in the order in which an unknown server is asked.
std::vector<const Adapter*> adapters();
// Throws Error(kUsage) that lists them.
const Adapter& adapter_named(std::string_view name);

struct Connected {
  const Adapter* adapter = nullptr;
  ServerIdentity server;
};

// Finds out what answers there. kind: an adapter's name, or "auto". Waits up to ready_seconds for a model that is being
// loaded. Throws Error(kInput) where nobody answers, or another kind than was named; Error(kUsage) as identify does.
Connected connect_server(HttpClient& client, std::string_view kind, const std::string& model, double ready_seconds);

// Sends a request and reads its answer. arm, start and index are the caller's; samples of the machine are taken around
// it. Never throws for what the server does; Error(kCancelled) from the client's stop.
RequestRecord ask_server(HttpClient& client, const Connected& connected, const PlannedRequest& request);

}  // namespace stet
