#include "spec/device_cycles.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "device/cuda_graph.h"
#include "spec/cuda/cycle_cuda.h"

namespace stet {
namespace {

constexpr uint32_t kInFlight = 2;
constexpr uint32_t kSpins = 1u << 14;     // between two looks at the device's health
constexpr uint32_t kRotationsAhead = 64;  // positions whose rotation is made ready together
static_assert(kCudaSampleRows == kNarrowRows && kInFlight < kCycleRecords);

// Device memory cut into pieces, in the order of the calls.
class Pieces {
 public:
  explicit Pieces(uint8_t* data) : data_(data) {}
  template <typename T>
  T* take(uint64_t count) {
    auto* at = reinterpret_cast<T*>(data_ + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_;
  uint64_t bytes_ = 0;
};

CudaSampling device_sampling(const SamplingParams& p) {
  CudaSampling s;
  s.temperature = p.temperature;
  s.repetition = p.repetition_penalty;
  s.presence = p.presence_penalty;
  s.frequency = p.frequency_penalty;
  s.top_k = p.top_k;
  s.min_weight = static_cast<uint32_t>(p.min_p * 0x1p31f);
  if (p.top_p < 1.0f) s.top_p = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(p.top_p) * 0x1p32));
  s.seed = p.seed;
  s.biased = !p.logit_bias.empty();
  s.penalised = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  return s;
}

class GraphCycles final : public DeviceCycles {
 public:
  GraphCycles(Decoder& decoder, const DeviceDraft& draft, const DeviceCycleOptions& options)
      : decoder_(decoder),
        cuda_(*decoder.cuda()),
        device_(*decoder.options().cuda),
        draft_(draft),
        depth_(std::min({options.depth, kMaxDepth, decoder.options().context - 1})),
        stop_tokens_(options.stop_tokens),
        request_(options.first_request),
        mailbox_memory_(sizeof(CycleMailbox)),
        mailbox_(reinterpret_cast<CycleMailbox*>(mailbox_memory_.data())) {
    std::memset(mailbox_memory_.data(), 0xff, sizeof(CycleMailbox));  // the number of no record
    mailbox_->stop_request = request_;                                // of no request
    make_memory();
    record();
    // Every kernel once, with nothing to do.
    launch();
    cuda_.stream().wait();
  }
  ~GraphCycles() override {
    try {
      stop();
      cuda_.stream().wait();
    } catch (...) {
      // A lost device; whoever waits for it next says so.
    }
  }

  void begin(Session& session, const CycleAsk& ask) override;
  std::optional<StepResult> next() override;
  double draft_seconds() const override { return draft_seconds_; }
  Marks marks() const override { return marks_; }
  void stop() override;

  Graph graph() const override { return counts_; }
  uint64_t launches() const override { return launches_; }
  uint64_t device_bytes() const override { return memory_.bytes(); }

 private:
  bool with_model() const { return draft_.kind == DeviceDraft::Kind::model; }
  void make_memory();
  void record();
  void record_model_draft(const CudaLaunch& on);
  void record_list(const LoweredList* list, const CudaInterpreter& of, const CudaLaunch& on, uint32_t& kernels) {
    kernels += of.record(*list, on);
  }
  void send(const CycleAsk& ask);
  void send_counts();
  void prefill();
  void prefill_draft();
  void launch();
  void launch_more();
  void reach(uint32_t positions);
  const CycleRecord& wait_for(uint32_t index);
  const CycleRecord* look(uint32_t index);

  Decoder& decoder_;
  CudaInterpreter& cuda_;
  const CudaDeviceInfo& device_;
  const DeviceDraft draft_;
  const uint32_t depth_;
  const std::vector<int32_t> stop_tokens_;
  uint32_t request_;
  CudaMemory memory_;
  PinnedMemory mailbox_memory_;
  CycleMailbox* const mailbox_;
  CudaCycleMemory m_;
  CudaSample sample_;
  float* bias_ = nullptr;
  CudaGraph graph_;
  Graph counts_;
  uint64_t launches_ = 0;

  // Of the request that is running.
  Session* session_ = nullptr;
  uint32_t end_ = 0;                  // tokens that the timeline ends with
  uint32_t read_ = 0, launched_ = 0;  // cycles
  uint32_t reached_ = 0;              // positions with a rotation
  uint32_t draft_cached_ = 0;
  double draft_seconds_ = 0.0, draft_prefill_seconds_ = 0.0;
  Marks marks_;
};

void GraphCycles::make_memory() {
  const uint32_t vocab = decoder_.desc().vocab;
  sample_.vocab = vocab;
  sample_.blocks = cuda_sample_blocks(device_.processors);
  uint8_t* scratch = nullptr;
  CudaSampling* sampling = nullptr;
  int32_t* stops = nullptr;
  const auto cut = [&](uint8_t* data) {
    Pieces pieces(data);
    m_.cycle = pieces.take<CudaCycle>(1);
    m_.sampling = sampling = pieces.take<CudaSampling>(1);
    m_.stop_tokens = stops = pieces.take<int32_t>(stop_tokens_.size());
    m_.tokens = pieces.take<int32_t>(decoder_.options().context + kCudaSampleRows);
    m_.counts = pieces.take<uint32_t>(vocab);
    bias_ = pieces.take<float>(vocab);
    scratch = pieces.take<uint8_t>(cuda_sample_bytes(vocab, sample_.blocks));
    return pieces.bytes();
  };
  memory_ = CudaMemory(cut(nullptr), "cycles and sampling");
  cut(memory_.data());
  m_.mailbox = mailbox_;
  place_cuda_sample(sample_, scratch);
  sample_.sampling = sampling;
  sample_.timeline = &m_.cycle->timeline;
  sample_.bias = bias_;
  sample_.counts = m_.counts;
  const CudaCycle over;
  cuda_.stream().to_device(m_.cycle, &over, sizeof over);
  if (!stop_tokens_.empty())
    cuda_.stream().to_device(stops, stop_tokens_.data(), stop_tokens_.size() * sizeof(int32_t));
}

void GraphCycles::record_model_draft(const CudaLaunch& on) {
  CudaInterpreter& cuda = *draft_.decoder->cuda();
  CudaStep* step = cuda.step();
  CudaSample sample = sample_;
  launch_begin_model_draft(on, m_, step);
  for (uint32_t pass = 0; pass < depth_; ++pass) {
    const Decoder::DeviceLists lists = draft_.decoder->device_lists(pass == 0 ? kCatchUpRows : 1, 1);
    record_list(lists.body, cuda, on, counts_.draft_kernels);
    record_list(lists.head, cuda, on, counts_.draft_kernels);
    sample.logits = cuda.device_address(*lists.logits);
    sample.first = pass;
    launch_sample(on, step, sample, 1);
    launch_draft_proposal(on, m_, step, sample, pass + 1 == depth_, cuda_.step());
  }
}

void GraphCycles::record() {
  const Decoder::DeviceLists lists = decoder_.device_lists(depth_ + 1, depth_ + 1);
  sample_.logits = cuda_.device_address(*lists.logits);
  const CudaLaunch on = {cuda_.stream().get(), device_.dependent_launch(), device_.processors};
  graph_.capture(cuda_.stream(), [&] {
    if (with_model() && depth_ > 0) {
      record_model_draft(on);
    } else {
      launch_begin_cycle(on, m_, cuda_.step(),
                         draft_.kind == DeviceDraft::Kind::ngram ? CudaDraft::ngram : CudaDraft::none);
    }
    record_list(lists.body, cuda_, on, counts_.body_kernels);
    record_list(lists.head, cuda_, on, counts_.head_kernels);
    launch_sample(on, cuda_.step(), sample_, depth_ + 1);
    launch_accept(on, m_, cuda_.step(), sample_);
  });
  counts_.nodes = graph_.nodes();
}

void GraphCycles::launch() {
  graph_.launch(cuda_.stream());
  ++launches_;
}

// Behind these positions the cycles store nothing.
void GraphCycles::reach(uint32_t positions) {
  const uint32_t wanted = std::min(positions, decoder_.options().context);
  decoder_.stores(wanted);
  if (with_model()) draft_.decoder->stores(wanted);
  if (wanted <= reached_) return;
  reached_ = std::min((wanted + kRotationsAhead - 1) / kRotationsAhead * kRotationsAhead, decoder_.options().context);
  decoder_.reach(reached_);
  if (with_model()) draft_.decoder->reach(reached_);
}

// Cycles up to kInFlight, as far as they can have something to do: each commits at least one token.
void GraphCycles::launch_more() {
  while (launched_ - read_ < kInFlight && session_->committed_tokens() + (launched_ - read_) < end_) {
    reach(session_->committed_tokens() + (launched_ - read_ + 1) * (depth_ + 1));
    launch();
    ++launched_;
  }
}

void GraphCycles::send_counts() {
  std::vector<uint32_t> counts(decoder_.desc().vocab, 0);
  for (const int32_t id : session_->prompt()) counts[static_cast<size_t>(id)] |= kCudaInPrompt;
  for (const int32_t id : session_->output()) ++counts[static_cast<size_t>(id)];
  cuda_.stream().to_device(m_.counts, counts.data(), counts.size() * sizeof counts[0]);
}

void GraphCycles::send(const CycleAsk& ask) {
  CudaStream& stream = cuda_.stream();
  const CudaSampling sampling = device_sampling(ask.sampling);
  stream.to_device(const_cast<CudaSampling*>(m_.sampling), &sampling, sizeof sampling);
  if (sampling.biased != 0) {
    std::vector<float> bias(decoder_.desc().vocab, 0.0f);
    for (const auto& [id, b] : ask.sampling.logit_bias) bias[static_cast<size_t>(id)] = b;
    stream.to_device(bias_, bias.data(), bias.size() * sizeof bias[0]);
  }
  if (sampling.penalised != 0) send_counts();
  const auto tokens = session_->tokens();
  stream.to_device(m_.tokens, tokens.data(), tokens.size() * sizeof tokens[0]);
  CudaCycle cycle;
  cycle.timeline.committed = session_->committed_tokens();
  cycle.end = end_;
  cycle.depth = depth_;
  cycle.finished = 0;
  cycle.stops = ask.stops ? static_cast<uint32_t>(stop_tokens_.size()) : 0;
  cycle.request = request_;
  cycle.draft_cached = cycle.draft_held = draft_cached_;
  stream.to_device(m_.cycle, &cycle, sizeof cycle);
}

// The draft model's own pass over what it has not seen: the queue of its own interpreter, which is empty while cycles
// run.
void GraphCycles::prefill_draft() {
  const auto tokens = session_->tokens();
  std::vector<int32_t>& seen = *draft_.seen;
  const uint32_t last = session_->committed_tokens() - 1,
                 limit = std::min<uint32_t>(static_cast<uint32_t>(seen.size()), last);
  uint32_t cached = 0;
  while (cached < limit && seen[cached] == tokens[cached]) ++cached;
  cached = draft_.decoder->restorable(cached);
  seen.resize(cached);  // a pass that fails leaves the rows behind these undefined
  if (cached < last) draft_.decoder->forward(tokens.subspan(cached, last - cached), cached, 0);
  seen.assign(tokens.begin(), tokens.begin() + last);
  draft_cached_ = last;
}

void GraphCycles::prefill() {
  const uint32_t cached = session_->restorable(session_->cached_tokens()), last = session_->committed_tokens() - 1;
  if (cached < last) decoder_.forward(session_->tokens().subspan(cached, last - cached), cached, 0);
}

void GraphCycles::begin(Session& session, const CycleAsk& ask) {
  using Clock = std::chrono::steady_clock;
  stop();
  STET_CHECK(&session.decoder() == &decoder_ && session.room() > 0 && ask.max_tokens >= 1);
  session_ = &session;
  ++request_;
  read_ = launched_ = reached_ = 0;
  end_ = static_cast<uint32_t>(
      std::min<uint64_t>(uint64_t{session.committed_tokens()} + ask.max_tokens, decoder_.options().context));
  draft_cached_ = 0;
  draft_prefill_seconds_ = 0.0;
  const auto start = Clock::now();
  if (with_model()) prefill_draft();
  // What is copied goes first: the host may have to wait for the copies.
  send(ask);
  prefill();
  if (with_model()) {
    draft_.decoder->cuda()->stream().wait();
    draft_prefill_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  }
  launch_more();
}

const CycleRecord* GraphCycles::look(uint32_t index) {
  CycleRecord& record = mailbox_->records[index % kCycleRecords];
  const uint64_t number = std::atomic_ref(record.number).load(std::memory_order_acquire);
  return number == (uint64_t{request_} << 32 | index) ? &record : nullptr;
}

const CycleRecord& GraphCycles::wait_for(uint32_t index) {
  for (;;) {
    for (uint32_t i = 0; i < kSpins; ++i) {
      if (const CycleRecord* record = look(index)) return *record;
      __builtin_ia32_pause();
    }
    // A device that failed reports nothing; idle() throws what it says.
    if (!cuda_.stream().idle()) continue;
    if (const CycleRecord* record = look(index)) return *record;
    fail(Code::kInternal, "internal error: cycle {} of request {} ended without a report", index, request_);
  }
}

std::optional<StepResult> GraphCycles::next() {
  STET_CHECK(session_ != nullptr && read_ < launched_);
  const CycleRecord& record = wait_for(read_++);
  if (record.state == CycleState::nonfinite) return std::nullopt;
  STET_CHECK(record.emitted >= 1 && record.emitted <= depth_ + 1);
  StepResult r;
  r.tokens.assign(record.tokens, record.tokens + record.emitted);
  r.proposed = record.proposed;
  r.accepted = record.accepted;
  draft_cached_ = record.draft_cached;
  marks_ = {record.begin_ns, record.verify_ns, record.accept_ns, record.end_ns};
  draft_seconds_ = static_cast<double>(record.verify_ns - record.begin_ns) * 1e-9 + draft_prefill_seconds_;
  draft_prefill_seconds_ = 0.0;
  const bool running = record.state == CycleState::running;
  session_->commit(r.tokens, session_->committed_tokens() + record.emitted - 1);
  if (running) launch_more();
  return r;
}

void GraphCycles::stop() {
  if (session_ == nullptr) return;
  std::atomic_ref(mailbox_->stop_request).store(request_, std::memory_order_release);
  if (with_model()) {
    // The draft's own queue may be used again only when these cycles are through.
    cuda_.stream().wait();
    draft_.seen->assign(session_->tokens().begin(), session_->tokens().begin() + draft_cached_);
  }
  session_ = nullptr;
}

}  // namespace

std::unique_ptr<DeviceCycles> make_device_cycles(Decoder& decoder, Draft* draft, const DeviceCycleOptions& options) {
  if (decoder.cuda() == nullptr || decoder.options().mode != ReplayMode::replayed) return nullptr;
  DeviceDraft on_device;
  if (draft != nullptr) {
    on_device = draft->on_device();
    if (on_device.kind == DeviceDraft::Kind::host) return nullptr;
  }
  return std::make_unique<GraphCycles>(decoder, on_device, options);
}

}  // namespace stet
