#include "replay/cuda_interpreter.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/cuda/cuda_error.h"
#include "device/cuda_graph.h"
#include "replay/cuda/launches.h"

namespace stet {
namespace {

constexpr uint64_t kPartBytes = 256u << 20;  // parts of an attention: as many rows at a time as fit
constexpr uint64_t kPinnedBytes = 2u << 20;  // from here on a buffer has pages of its own (AlignedBuffer)

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail_cuda(static_cast<int>(error), cudaGetErrorString(error), what);
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event cannot be made"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "an event cannot be recorded"); }
  double seconds_since(const Event& begin) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin.event_, event_), "an event cannot be read");
    return static_cast<double>(ms) / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class GraphInterpreter final : public CudaInterpreter {
 public:
  explicit GraphInterpreter(const CudaPlan& plan)
      : device_(plan.device),
        cache_(plan.cache),
        ropes_(plan.ropes),
        own_stream_(plan.shared == nullptr ? std::make_unique<CudaStream>(plan.device) : nullptr),
        stream_(plan.shared == nullptr ? *own_stream_ : plan.shared->stream()),
        aside_(plan.device),
        twins_(plan, stream_),
        experts_(plan.lists, twins_, stream_) {
    make_scratch(plan);
    for (const LoweredList* list : plan.lists) lists_.emplace(list, compile(*list));
  }

  void run(const LoweredList& list, const StepParams& params, ReplayMode mode, const StageObserver& observer) override {
    const uint32_t rows = list.list->rows == RowSet::head ? params.head_rows : params.rows;
    STET_CHECK(rows >= 1 && rows <= list.list->width);
    send_step(params);
    const auto known = lists_.find(&list);
    if (mode == ReplayMode::replayed && known != lists_.end()) return replay(known->second);
    // Samples that qualification makes are lists of a moment: nothing of them is kept.
    const Compiled sample = known == lists_.end() ? compile(list) : Compiled{};
    const Compiled& compiled = known == lists_.end() ? sample : known->second;
    for (size_t i = 0; i < list.stages.size(); ++i) {
      launch(compiled.stages[i], mode != ReplayMode::eager && i > 0);
      if (!observer) continue;
      for (const Command* c : list.stages[i].materialised) fetch(*c->out, rows);
      observer(list.stages[i], params, rows);
    }
  }

  void fetch(const Buffer& buffer, uint32_t rows) override {
    // What every step fetches comes at the full speed of the bus. (Small buffers may share their pages with others.)
    const uint64_t all = uint64_t{buffer.width} * kNarrowRows * sizeof(float);
    if (buffer.name == "logits" && !logits_ && all >= kPinnedBytes) logits_.emplace(buffer.data, all);
    stream_.to_host(buffer.data, twins_.of(buffer.data), uint64_t{rows} * buffer.width * sizeof(float));
    stream_.wait();
  }

  void extend_rope(uint32_t positions) override {
    if (positions <= rope_rows_) return;
    // Past what is queued: nobody reads these rows yet, and the queue does not have to run dry for a copy.
    for (const HostTable& rope : ropes_) {
      const uint64_t from = rope_rows_ * rope.row_bytes;
      const auto* host = static_cast<const uint8_t*>(rope.range.data);
      aside_.to_device(twins_.of(host) + from, host + from, (positions - rope_rows_) * rope.row_bytes);
    }
    aside_.wait();
    rope_rows_ = positions;
  }

  void fetch_cache(uint64_t bytes) override {
    auto* host = const_cast<uint8_t*>(static_cast<const uint8_t*>(cache_.data));
    stream_.to_host(host, twins_.of(host), bytes);
    stream_.wait();
  }

  void send(const Buffer& buffer, uint32_t rows) override {
    stream_.to_device(twins_.of(buffer.data), buffer.data, uint64_t{rows} * buffer.width * sizeof(float));
    stream_.wait();
  }
  void send_cache(uint64_t bytes) override {
    const auto* host = static_cast<const uint8_t*>(cache_.data);
    stream_.to_device(twins_.of(host), host, bytes);
    stream_.wait();
  }

  CudaStream& stream() override { return stream_; }
  CudaStep* step() override { return const_cast<CudaStep*>(scratch_.step); }
  const float* device_address(const Buffer& buffer) const override { return twins_.of(buffer.data); }
  const Twins& twins() const override { return twins_; }
  uint32_t record(const LoweredList& list, const CudaLaunch& on) const override {
    uint32_t kernels = 0;
    // The first kernel of a pass waits for the end of the one that wrote its step: the others read that before they wait.
    CudaLaunch as = on;
    as.pdl = on.pdl && list.list->rows == RowSet::head;
    for (const auto& stage : lists_.at(&list).stages)
      for (const CudaLaunchFn& kernel : stage) {
        kernel(as);
        as.pdl = on.pdl;
        ++kernels;
      }
    return kernels;
  }

  std::vector<double> time_prefixes(const LoweredList& list, const StepParams& params, uint32_t repeats) override {
    const Compiled compiled = compile(list);
    send_step(params);
    const Event begin, end;
    std::vector<double> medians, runs(repeats);
    bool any = false;  // a stage may have no kernel of its own
    for (size_t stages = 0; stages <= compiled.stages.size(); ++stages) {
      any = any || (stages > 0 && !compiled.stages[stages - 1].empty());
      CudaGraph graph;
      if (any)
        graph.capture(stream_, [&] {
          for (size_t i = 0; i < stages; ++i) launch(compiled.stages[i], true);
        });
      // The first run brings the graph and the state that the stages expect.
      if (any) graph.launch(stream_);
      for (double& seconds : runs) {
        begin.record(stream_.get());
        if (any) graph.launch(stream_);
        end.record(stream_.get());
        stream_.wait();
        seconds = end.seconds_since(begin);
      }
      std::nth_element(runs.begin(), runs.begin() + repeats / 2, runs.end());
      medians.push_back(runs[repeats / 2]);
    }
    return medians;
  }

  uint64_t device_bytes() const override { return twins_.bytes() + experts_.bytes() + scratch_memory_.bytes(); }

 private:
  struct Compiled {
    std::vector<std::vector<CudaLaunchFn>> stages;
    CudaGraph graph;
  };

  static uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

  void make_scratch(const CudaPlan& plan) {
    const CudaScratchSizes sizes = cuda_scratch_sizes(plan.lists, plan.context);
    scratch_.part_rows = sizes.part_row_bytes == 0
                             ? kWideRows
                             : std::clamp<uint64_t>(kPartBytes / sizes.part_row_bytes, kNarrowRows, kWideRows);
    // Twice: how long it is, then where it lies.
    const uint64_t bytes = place_scratch(sizes, nullptr);
    scratch_memory_ = CudaMemory(bytes, "activations and attention");
    place_scratch(sizes, scratch_memory_.data());
    scratch_.context = plan.context;
    scratch_.chunks = (plan.context + kSlots - 1) / kSlots;
  }
  // Returns the bytes that lie behind `at`.
  uint64_t place_scratch(const CudaScratchSizes& sizes, uint8_t* at) {
    uint64_t bytes = 0;
    const auto take = [&](uint64_t of) {
      uint8_t* const begin = at + bytes;
      bytes += aligned(of);
      return begin;
    };
    scratch_.step = reinterpret_cast<const CudaStep*>(take(sizeof(CudaStep)));
    scratch_.counters = reinterpret_cast<uint32_t*>(take(sizes.kv_heads * sizeof(uint32_t)));
    scratch_.i8 = take(sizes.i8);
    scratch_.f32 = take(sizes.f32);
    for (size_t kind = 0; kind < kActKinds; ++kind) scratch_.planes[kind] = take(sizes.planes[kind]);
    for (const auto& [op, size] : sizes.ops) scratch_.ops[op] = take(size);
    scratch_.parts = reinterpret_cast<float*>(take(sizes.part_row_bytes * scratch_.part_rows));
    return bytes + 256;
  }

  void send_step(const StepParams& params) {
    static_assert(std::size(CudaStep{}.tokens) == kWideRows);
    CudaStep step = {params.rows, params.position, params.head_first, params.head_rows, {}};
    std::memcpy(step.tokens, params.tokens, sizeof step.tokens);
    stream_.to_device(const_cast<CudaStep*>(scratch_.step), &step, sizeof step);
  }

  Compiled compile(const LoweredList& list) const {
    Compiled compiled;
    for (const Stage& stage : list.stages) compiled.stages.push_back(stage_launches(list, stage, {twins_, experts_, scratch_}));
    return compiled;
  }

  void replay(Compiled& compiled) {
    if (compiled.graph.empty())
      compiled.graph.capture(stream_, [&] {
        for (const auto& stage : compiled.stages) launch(stage, true);
      });
    compiled.graph.launch(stream_);
  }

  void launch(const std::vector<CudaLaunchFn>& stage, bool dependent) const {
    const CudaLaunch on = {stream_.get(), dependent && device_.dependent_launch(), device_.processors};
    for (const CudaLaunchFn& kernel : stage) kernel(on);
  }

  const CudaDeviceInfo device_;
  const HostRange cache_;
  const std::vector<HostTable> ropes_;
  const std::unique_ptr<CudaStream> own_stream_;  // null: another interpreter's is used
  CudaStream& stream_;
  CudaStream aside_;
  Twins twins_;
  ExpertTables experts_;
  CudaMemory scratch_memory_;
  CudaScratch scratch_;
  std::map<const LoweredList*, Compiled> lists_;
  uint64_t rope_rows_ = 0;
  std::optional<Pin> logits_;
};

}  // namespace

std::unique_ptr<CudaInterpreter> make_cuda_interpreter(const CudaPlan& plan) {
  return std::make_unique<GraphInterpreter>(plan);
}

}  // namespace stet
