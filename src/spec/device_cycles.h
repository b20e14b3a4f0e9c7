// Whole cycles on a CUDA device: draft, verify pass, sampling, acceptance and commit are one graph, and the host only
// reads what came of it. Two cycles are in flight, so that the device never waits for the host. The tokens are those of
// step().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "spec/step.h"

namespace stet {

struct DeviceCycleOptions {
  uint32_t depth = 0;                // proposals a cycle, 0 without a draft
  std::vector<int32_t> stop_tokens;  // that a request may want to end at
  uint32_t first_request = 0;        // for tests: the number before that of the first request; it wraps
};

// What a request asks of its cycles.
struct CycleAsk {
  SamplingParams sampling;  // valid: a Sampler took them
  uint32_t max_tokens = UINT32_MAX;
  bool stops = true;  // whether stop tokens end it
};

class DeviceCycles {
 public:
  virtual ~DeviceCycles() = default;

  // Begins the cycles of a request behind session.begin(): runs the tokens without KV rows but for the last, and sends
  // the first cycles on their way. The session outlives the request; nobody else commits to it until stop().
  virtual void begin(Session& session, const CycleAsk& ask) = 0;
  // The next cycle, committed to the session. Nothing when its logits are not finite: then the session is as before,
  // and step() says which command was the first. Must not be called when the request is over.
  virtual std::optional<StepResult> next() = 0;
  // Seconds of the cycle before until its verify pass began; the first one's holds the draft's own pass over the
  // prompt.
  virtual double draft_seconds() const = 0;
  // The cycle before by the device's clock, in nanoseconds: when its draft, its verify pass and its acceptance began, and
  // when it was committed. Sampling is part of the verify pass.
  struct Marks {
    uint64_t draft_ns = 0, verify_ns = 0, accept_ns = 0, end_ns = 0;
  };
  virtual Marks marks() const = 0;
  // Ends the request. What is still in flight leaves no trace in the session.
  virtual void stop() = 0;

  // Of the graph of a cycle.
  struct Graph {
    uint64_t nodes = 0;
    uint32_t draft_kernels = 0, body_kernels = 0, head_kernels = 0;  // of lists
  };
  virtual Graph graph() const = 0;
  virtual uint64_t launches() const = 0;  // of graphs, since the beginning
  virtual uint64_t device_bytes() const = 0;
};

// Null where the cycles need the host: the decoder is not on a CUDA device or does not replay its lists, or the draft
// works on the host. Decoder and draft outlive the cycles.
std::unique_ptr<DeviceCycles> make_device_cycles(Decoder& decoder, Draft* draft, const DeviceCycleOptions& options);

}  // namespace stet
