// The CUDA interpreter of lowered lists: every address that a list names on the host has a twin on the device, made
// once; a stage is one kernel or two, a list a graph of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/cuda/launch.h"
#include "device/cuda_device.h"
#include "replay/interpreter.h"

namespace stet {

class CudaInterpreter;

// Host memory that lists refer to and that is neither a buffer nor weights.
struct HostRange {
  const void* data = nullptr;
  uint64_t bytes = 0;
};

// A rotation table: rows are sent as they appear.
struct HostTable {
  HostRange range;
  uint64_t row_bytes = 0;
};

struct CudaPlan {
  CudaDeviceInfo device;
  // Lowered with none, device (narrow) and wide. They and what they name outlive the interpreter.
  std::vector<const LoweredList*> lists;
  HostRange cache;  // KV rows and states of the whole context: the twin begins as zeros
  std::vector<HostTable> ropes;
  uint32_t context = 0;  // positions
  // What this one's lists also name has its twins already, and its stream is the one that is used. Null: none; outlives the interpreter.
  CudaInterpreter* shared = nullptr;
  std::function<void(std::string_view phase, uint64_t done, uint64_t total)> progress;
};

class Twins;

class CudaInterpreter : public Interpreter {
 public:
  // Rows 0 .. positions - 1 of the rotation tables are there on the host; runs may use them.
  virtual void extend_rope(uint32_t positions) = 0;
  // The first `bytes` of the cache are on the host as on the device when this returns.
  virtual void fetch_cache(uint64_t bytes) = 0;
  // The other way: buffers and cache of the device hold what the host has. For comparisons.
  virtual void send(const Buffer& buffer, uint32_t rows) = 0;
  virtual void send_cache(uint64_t bytes) = 0;
  virtual uint64_t device_bytes() const = 0;  // of everything that is its own

  // For whoever puts lists between kernels of his own (src/spec/cuda). Everything of this interpreter runs on one stream, in order.
  virtual CudaStream& stream() = 0;
  virtual CudaStep* step() = 0;  // of the device: what the kernels of all lists read
  virtual const float* device_address(const Buffer& buffer) const = 0;
  virtual const Twins& twins() const = 0;  // replay/cuda/twins.h
  // Puts the kernels of a list of the plan on a stream that is being captured; returns how many.
  virtual uint32_t record(const LoweredList& list, const CudaLaunch& on) const = 0;

  // Seconds that the first 0, 1, ... all stages of a list take as one graph, by the device's clock: the median of `repeats` runs of each.
  // What buffers hold is lost.
  virtual std::vector<double> time_prefixes(const LoweredList& list, const StepParams& params, uint32_t repeats) = 0;
};

// Throws Error(kResource) with the numbers when the device has too little memory, before anything is sent;
// Error(kUnsupported) for a shape that its kernels cannot take.
std::unique_ptr<CudaInterpreter> make_cuda_interpreter(const CudaPlan& plan);

}  // namespace stet
