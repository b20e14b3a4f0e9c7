// A start of something that answers: a server, or an engine in a process of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lab/bench/adapter.h"
#include "lab/bench/planned_request.h"
#include "lab/record/events.h"
#include "stet/engine.h"

namespace stet {

class Arm {
 public:
  virtual ~Arm() = default;
  // Whether this start began the process that answers.
  virtual bool fresh() const = 0;
  // What the process says of itself: a JSON object.
  virtual const std::string& identity_json() const = 0;
  // One request, and its record without id, arm, start and index. What goes wrong with the answer is in the record;
  // throws Error(kCancelled) when the user interrupted, and what ended the process that answers.
  virtual RequestRecord ask(const PlannedRequest& request) = 0;
};

// A server that runs already. Both outlive the arm.
std::unique_ptr<Arm> endpoint_arm(HttpClient& client, const Connected& connected);

// An engine in a new process of this program, which loads the model first: a fresh start. Throws what the engine
// throws. program: this binary, which answers `PROGRAM bench --engine-child` with engine_child(). stop: asked about ten
// times a second.
std::unique_ptr<Arm> process_arm(const std::string& program, const Options& options, std::function<bool()> stop);

// The other end: reads options and requests from the descriptor `in`, answers on `out`, returns at the end of `in`.
void engine_child(int in, int out, const std::function<bool()>& stop);

// An engine of this process. stop: asked between cycles; true ends the request with Error(kCancelled).
RequestRecord ask_engine(Engine& engine, const PlannedRequest& request, const std::function<bool()>& stop);

// Options as one line of JSON, and back. Throws Error(kInput).
std::string options_json(const Options& options);
Options parse_options(std::string_view json);

// Which program is running; for process_arm.
std::string this_program();

}  // namespace stet
