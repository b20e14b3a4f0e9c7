#include "state/decoder.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/hash.h"
#include "kernels/attend/kv_element.h"

namespace stet {
uint64_t kv_bytes(const ModelDesc& desc, KvFormat format, uint64_t tokens) {
  return plan_state(desc, format).bytes(tokens);
}

Decoder::Decoder(const ModelDesc& desc, const PackedModel& pack, const Kernels& kernels, WorkerPool& pool,
                 const DecoderOptions& options, const ArmOptions& arm_options)
    : desc_(desc),
      pack_(pack),
      options_(options),
      plan_(plan_state(desc, options.kv)),
      kv_(plan_.bytes(options.context)),
      attend_(desc.layers) {
  STET_CHECK(options.context >= 1 && options.prompt_rows >= 1 && options.prompt_rows <= kWideRows);
  ropes_.push_back(std::make_unique<RopeTable>(desc.rope, options.context));
  for (const RopeSpec& spec : desc.further_ropes) ropes_.push_back(std::make_unique<RopeTable>(spec, options.context));
  uint8_t* const memory = reinterpret_cast<uint8_t*>(kv_.data());
  for (uint32_t l = 0; l < desc.layers; ++l)
    attend_[l] = {plan_.kv, memory + plan_.fixed_bytes + l * plan_.kv.chunk_bytes(), desc.heads, desc.attention_scale, desc.rope_dim(), ropes_[0]->data()};
  states_ = place_states(desc, plan_, memory);
  record({pack, attend_, ropes(), states_});
  make_interpreters(kernels, pool, arm_options);
  life_.advance(LifeState::loaded);
  if (arm_options.qualify != Qualify::later) arm(arm_options);
}

std::vector<RopeRows> Decoder::ropes() const {
  std::vector<RopeRows> ropes;
  for (const auto& table : ropes_) ropes.push_back({table->data(), table->dim()});
  return ropes;
}

void Decoder::make_interpreters(const Kernels& kernels, WorkerPool& pool, const ArmOptions& arm) {
  std::vector<const CommandList*> lists;
  for (const Recorded& body : bodies_) lists.push_back(&body.list);
  for (const Recorded& head : heads_) lists.push_back(&head.list);
  cpu_ = std::make_unique<CpuInterpreter>(kernels, pool, lists);
  if (!options_.cuda) return;
  CudaPlan plan;
  plan.device = *options_.cuda;
  for (const auto* recorded : {&bodies_, &heads_})
    for (const Recorded& r : *recorded)
      for (const LoweredList* list : {&r.cuda, &r.eager})
        if (list->list != nullptr) plan.lists.push_back(list);
  plan.cache = {kv_.data(), kv_bytes(desc_, options_.kv, options_.context)};
  for (const auto& table : ropes_)
    plan.ropes.push_back({{table->data(), table->row_bytes() * options_.context}, table->row_bytes()});
  plan.context = options_.context;
  plan.progress = arm.progress;
  cuda_ = make_cuda_interpreter(plan);
}

Interpreter& Decoder::interpreter() const {
  if (cuda_) return *cuda_;
  return *cpu_;
}

void Decoder::record(const ModelWeights& weights) {
  for (uint32_t rows = 1; rows <= kNarrowRows + 1; ++rows) {
    const bool wide = rows > kNarrowRows;
    Recorded& body = bodies_[rows - 1];
    ListBuilder builder(buffers_, wide ? kWideRows : rows, RowSet::pass);
    desc_.record_body(desc_, weights, builder);
    body.list = builder.take();
    body.fused = lower(body.list, wide ? Fusion::wide : Fusion::narrow);
    body.eager = lower(body.list, Fusion::none);
    if (options_.cuda) body.cuda = lower(body.list, wide ? Fusion::wide : device_fusion(rows));
    if (wide) break;
    Recorded& head = heads_[rows - 1];
    ListBuilder head_builder(buffers_, rows, RowSet::head);
    desc_.record_head(desc_, weights, head_builder);
    head.list = head_builder.take();
    head.fused = lower(head.list, Fusion::narrow);
    head.eager = lower(head.list, Fusion::none);
    if (options_.cuda) head.cuda = lower(head.list, device_fusion(rows));
  }
}

const Decoder::Recorded& Decoder::body(uint32_t rows) const { return bodies_[std::min(rows, kNarrowRows + 1) - 1]; }
const Decoder::Recorded& Decoder::head(uint32_t rows) const { return heads_[rows - 1]; }

void Decoder::run(const Recorded& list, const StepParams& params) {
  try {
    interpreter().run(options_.mode == ReplayMode::eager ? list.eager : fused(list), params, options_.mode, observer_);
  } catch (const Error& e) {
    // A check inside a kernel failed: what the buffers hold is unknown. (The pool has come to rest before it throws.)
    if (e.code() == Code::kInternal) life_.retire([] {});
    throw;
  }
}

void Decoder::check_fits(size_t tokens, uint32_t position) const {
  if (position + tokens > options_.context)
    fail(Code::kUsage, "the context is full: {} tokens do not fit behind the {} there are; the context holds {} (--ctx)", tokens,
         position, options_.context);
  if (restorable(position) != position)
    fail(Code::kInternal, "internal error: a pass at position {} would read rows that are no longer there ({} were stored)", position, written_);
}

uint32_t Decoder::pass_rows(size_t left) const {
  return static_cast<uint32_t>(std::min<size_t>(left, options_.prompt_rows));
}

void Decoder::reach(uint32_t positions) {
  for (const auto& table : ropes_) table->ensure(positions);
  if (cuda_) return cuda_->extend_rope(positions);
  kv_.commit(plan_.bytes(positions));
}

void Decoder::run_pass(std::span<const int32_t> tokens, uint32_t position) {
  const uint32_t rows = static_cast<uint32_t>(tokens.size());
  reach(position + rows);
  written_ = position == 0 ? rows : std::max(written_, position + rows);
  params_.rows = rows;
  params_.position = position;
  for (int32_t token : tokens) STET_CHECK(token >= 0 && static_cast<uint32_t>(token) < desc_.vocab);
  std::copy(tokens.begin(), tokens.end(), params_.tokens);
  run(body(rows), params_);
}

const float* Decoder::run_head(uint32_t first, uint32_t rows) {
  params_.head_first = first;
  params_.head_rows = rows;
  run(head(rows), params_);
  const Buffer* logits = buffers_.get("logits", desc_.vocab, kNarrowRows);
  interpreter().fetch(*logits, rows);
  return logits->data;
}

const float* Decoder::forward(std::span<const int32_t> tokens, uint32_t position, uint32_t logit_rows) {
  life_.require_armed();
  STET_CHECK(!tokens.empty() && logit_rows <= kNarrowRows && logit_rows <= tokens.size());
  check_fits(tokens.size(), position);
  for (size_t done = 0; done < tokens.size();) {
    const size_t left = tokens.size() - done;
    uint32_t rows = pass_rows(left);
    // The rows whose logits are wanted share the last pass.
    if (logit_rows > 1 && left <= kNarrowRows) {
      rows = static_cast<uint32_t>(left);
    } else if (left > rows && left - rows < logit_rows) {
      rows = static_cast<uint32_t>(left - logit_rows);
    }
    if (between_passes_) between_passes_(static_cast<uint32_t>(done), static_cast<uint32_t>(tokens.size()));
    run_pass(tokens.subspan(done, rows), position + static_cast<uint32_t>(done));
    done += rows;
  }
  return logit_rows == 0 ? nullptr : run_head(params_.rows - logit_rows, logit_rows);
}

void Decoder::forward_all(std::span<const int32_t> tokens, uint32_t position,
                          const std::function<void(uint32_t, const float*)>& sink) {
  life_.require_armed();
  check_fits(tokens.size(), position);
  for (size_t done = 0; done < tokens.size();) {
    const uint32_t rows = pass_rows(tokens.size() - done);
    run_pass(tokens.subspan(done, rows), position + static_cast<uint32_t>(done));
    for (uint32_t first = 0; first < rows; first += kNarrowRows) {
      const uint32_t n = std::min(kNarrowRows, rows - first);
      const float* logits = run_head(first, n);
      for (uint32_t r = 0; r < n; ++r)
        sink(position + static_cast<uint32_t>(done) + first + r, logits + size_t{r} * desc_.vocab);
    }
    done += rows;
  }
}

Decoder::DeviceLists Decoder::device_lists(uint32_t rows, uint32_t logit_rows) {
  STET_CHECK(cuda_ != nullptr && rows >= 1 && rows <= kNarrowRows && logit_rows >= 1 && logit_rows <= rows);
  life_.require_armed();
  return {&body(rows).cuda, &head(logit_rows).cuda, buffers_.get("logits", desc_.vocab, kNarrowRows)};
}

Decoder::ListTimes Decoder::time_lists(uint32_t rows, uint32_t position, uint32_t repeats) {
  using Clock = std::chrono::steady_clock;
  STET_CHECK(cuda_ != nullptr && repeats >= 1);
  life_.require_armed();
  reach(position + rows);
  params_.rows = rows;
  params_.position = position;
  params_.head_rows = std::min(rows, kNarrowRows);
  params_.head_first = rows - params_.head_rows;
  ListTimes out;
  for (const LoweredList* list : {&body(rows).cuda, &head(params_.head_rows).cuda})
    out.lists.emplace_back(list, cuda_->time_prefixes(*list, params_, repeats));
  const Buffer* logits = buffers_.get("logits", desc_.vocab, kNarrowRows);
  std::vector<double> seconds(repeats);
  for (double& s : seconds) {
    const Clock::time_point start = Clock::now();
    cuda_->fetch(*logits, params_.head_rows);
    s = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  out.fetch = seconds[repeats / 2];
  return out;
}

void Decoder::fetch_kv(uint32_t positions) {
  if (!cuda_) return;
  const uint64_t bytes = plan_.bytes(positions);
  kv_.commit(bytes);
  cuda_->fetch_cache(bytes);
}

uint64_t Decoder::kv_hash(uint32_t positions) {
  fetch_kv(positions);
  uint64_t hash = 0;
  std::vector<float> row(2 * size_t{desc_.head_dim});
  for (const AttendShape& a : attend_)
    for (uint32_t p = 0; p < positions; ++p)
      for (uint32_t h = 0; h < a.layout.heads; ++h) {
        for (uint32_t d = 0; d < desc_.head_dim; ++d) {
          row[d] = a.layout.format == KvFormat::q8
                       ? static_cast<float>(key_code(a.layout, a.layer, h, p, d)) * *key_scale(a.layout, a.layer, h, p, d / 32)
                       : key_element(a.layout, a.layer, h, p, d);
          row[desc_.head_dim + d] = value_element(a.layout, a.layer, h, p, d);
        }
        hash = xxh3(row.data(), row.size() * sizeof(float), hash);
      }
  STET_CHECK(restorable(positions) == positions);
  for (const StateSpec& spec : desc_.states) {
    const StateRows& rows = states_.at(spec.name);
    const uint32_t end = positions / rows.ratio;
    for (uint32_t i = rows.ring == 0 || end < spec.reach ? 0 : end - spec.reach + 1; i < end; ++i)
      hash = xxh3(rows.at(i), rows.row_bytes(), hash);
  }
  return hash;
}

}  // namespace stet
