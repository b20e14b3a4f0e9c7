// The HTTP API over one generation loop: OpenAI's schema, health, status, metrics and the page.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "server/http/exchange.h"
#include "server/loop/generation_loop.h"

namespace stet {

struct ApiOptions {
  std::string model_id;         // what /v1/models calls it; any name in a request is answered by it
  double request_deadline = 0;  // seconds from arrival; 0: none
  bool log_prompts = false;
  // A stream that was silent so long says where its request stands, when the loop next calls Job::progress.
  std::chrono::milliseconds keep_alive{3000};
  std::function<void(std::string_view line)> log;  // one line a request
};

class Api {
 public:
  Api(GenerationLoop& loop, ApiOptions options);
  ~Api();
  // Answers, or arranges for the answer. For HttpHandler: returns at once, bodies are read on a thread of the API's
  // own.
  void handle(std::shared_ptr<Exchange> exchange);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stet
