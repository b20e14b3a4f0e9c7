// The HTTP API over one generation loop: OpenAI's schema, health, status, metrics and the page.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/http/exchange.h"
#include "server/loop/generation_loop.h"

namespace stet {

struct ApiOptions {
  std::string model_id;            // what /v1/models calls it; any name in a request is answered by it
  double request_deadline = 0;     // seconds from arrival; 0: none
  bool log_prompts = false;
  std::function<void(std::string_view line)> log;  // one line a request
};

class Api {
 public:
  Api(GenerationLoop& loop, ApiOptions options);
  ~Api();
  // Answers, or arranges for the answer. For HttpHandler.
  void handle(std::shared_ptr<Exchange> exchange);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stet
