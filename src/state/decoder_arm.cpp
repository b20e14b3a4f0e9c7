// From LOADED to ARMED: warming, freezing, comparing.
#include <algorithm>
#include <cstring>

#include "base/build_id.h"
#include "base/error.h"
#include "base/fp.h"
#include "base/hash.h"
#include "base/numerics_version.h"
#include "device/cpu_model.h"
#include "replay/list_sample.h"
#include "replay/qualify.h"
#include "replay/verdict.h"
#include "state/decoder.h"

namespace stet {
namespace {

// Rows that lists are compared on: three groups of 8, so that the wide pass has a first, a middle and a last one.
constexpr uint32_t kSampleRows = 24;

std::vector<int32_t> sample_tokens(uint32_t n, uint32_t vocab, uint32_t seed) {
  std::vector<int32_t> tokens(n);
  uint32_t x = seed;
  for (int32_t& t : tokens) {
    x = x * 1664525u + 1013904223u;
    t = static_cast<int32_t>((uint64_t{x} * vocab) >> 32);
  }
  return tokens;
}

}  // namespace

// The widths that forward() can ask for.
std::vector<uint32_t> Decoder::widths() const {
  std::vector<uint32_t> w;
  for (uint32_t rows = 1; rows <= std::min(kNarrowRows, options_.context); ++rows) w.push_back(rows);
  const uint32_t wide = std::min(options_.prompt_rows, options_.context);
  if (wide > kNarrowRows) w.push_back(wide);
  return w;
}

uint32_t Decoder::sample_rows() const {
  return std::min({options_.context, kSampleRows, std::max(options_.prompt_rows, kNarrowRows)});
}

Decoder::Sample Decoder::sample(uint32_t rows) const {
  const Recorded& recorded = body(rows);
  const LoweredList fused = sample_stages(this->fused(recorded));
  return {fused, same_commands(recorded.eager, fused)};
}

void Decoder::run_sample(Interpreter& on, const LoweredList& list, ReplayMode mode, std::span<const int32_t> tokens, uint32_t position) {
  params_.rows = static_cast<uint32_t>(tokens.size());
  params_.position = position;
  std::copy(tokens.begin(), tokens.end(), params_.tokens);
  on.run(list, params_, mode);
}

// The rows that this stores are at positions that a session overwrites before it reads them. One head list stands for all: their
// products are those of other widths' kernels, and the head is the largest matrix of a model (all 16 would cost as much as 16 tokens).
void Decoder::warm() {
  const std::vector<int32_t> tokens = sample_tokens(sample_rows(), desc_.vocab, 1);
  reach(sample_rows());
  for (const uint32_t width : widths()) {
    const uint32_t rows = std::min(width, sample_rows());
    run_sample(interpreter(), sample(width).fused, ReplayMode::replayed, std::span(tokens).first(rows), 0);
  }
  params_.head_first = 0;
  params_.head_rows = 1;
  interpreter().run(fused(head(1)), params_, ReplayMode::replayed);
  interpreter().fetch(*buffers_.get("logits", desc_.vocab, kNarrowRows), 1);
}

namespace {

const Buffer* output(const LoweredList& list) { return list.stages.back().materialised.back()->out; }

}  // namespace

// What the eager lists leave in the last buffer, row by row.
std::vector<float> Decoder::eager_rows(Interpreter& on, std::span<const int32_t> tokens) {
  std::vector<float> out;
  for (size_t done = 0; done < tokens.size();) {
    const size_t n = std::min<size_t>(tokens.size() - done, kNarrowRows);
    const LoweredList eager = sample(static_cast<uint32_t>(n)).eager;
    run_sample(on, eager, ReplayMode::eager, tokens.subspan(done, n), static_cast<uint32_t>(done));
    const Buffer* buffer = output(eager);
    on.fetch(*buffer, static_cast<uint32_t>(n));
    out.insert(out.end(), buffer->data, buffer->data + n * buffer->width);
    done += n;
  }
  return out;
}

// Throws Error(kDiverged) at the first element that is not what it should be.
void Decoder::compare_rows(const char* what, const Buffer& buffer, const float* got, const float* wanted, uint32_t rows) const {
  for (uint32_t i = 0; i < rows * buffer.width; ++i)
    if (bits_of_float(got[i]) != bits_of_float(wanted[i]) && !(got[i] != got[i] && wanted[i] != wanted[i]))
      fail(Code::kDiverged,
           "{} does not compute what its commands do one by one on the processor ({}): buffer {}, row {}, element {}: bits {:#x}, reference "
           "{:#x}. Nothing was run. Choose another instruction set (--isa) or device (--device), and report this line",
           what, isa_name(cpu_->kernels().isa), buffer.name, i / buffer.width, i % buffer.width, bits_of_float(got[i]), bits_of_float(wanted[i]));
}

// What the fused lists of every width leave in the last buffer, against the processor's eager form of widths 16 and 8. The positions end
// where the sample ends, so that narrow passes read rows that an earlier pass stored. Returns the rows compared.
uint64_t Decoder::compare_lists(uint32_t seed) {
  const uint32_t rows = sample_rows();
  const std::vector<int32_t> tokens = sample_tokens(rows, desc_.vocab, seed);
  kv_.commit(plan_.bytes(rows));
  const std::vector<float> want = eager_rows(*cpu_, tokens);
  uint64_t compared = 0;
  if (cuda_) {
    // It stores the rows that the narrow passes read, too.
    const Buffer* out = output(sample(1).eager);
    compare_rows("the eager list of the GPU", *out, eager_rows(*cuda_, tokens).data(), want.data(), rows);
    compared += rows;
  }
  for (const uint32_t width : widths()) {
    const uint32_t n = std::min(width, rows), position = rows - n;
    const LoweredList fused = sample(width).fused;
    run_sample(interpreter(), fused, ReplayMode::replayed, std::span(tokens).last(n), position);
    const Buffer* out = output(fused);
    interpreter().fetch(*out, n);
    compare_rows(fmt::format("the recorded list of width {}", width).c_str(), *out, out->data, want.data() + size_t{position} * out->width, n);
    compared += n;
  }
  return compared;
}

std::string Decoder::lists_key() const {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.update(text.data(), text.size() + 1); };
  add(pack_.key());
  add(fmt::format("numerics {} build {} isa {} cpu {}", kNumericsVersion, build_id(), isa_name(cpu_->kernels().isa), cpu_model()));
  if (options_.cuda) add(fmt::format("cuda {} {} driver {}", options_.cuda->name, options_.cuda->capability, options_.cuda->driver));
  add(fmt::format("pack layout {} record {} kv {} prompt rows {} positions {} vocab {}", kPackLayout, kActRecord, static_cast<int>(options_.kv),
                  options_.prompt_rows, std::min(options_.context, kQualifyPositions), desc_.vocab));
  // The lists of the other widths are the same program.
  for (const CommandList* list : {&bodies_.front().list, &bodies_.back().list, &heads_.front().list}) add(describe_list(*list));
  return hash.hex();
}

void Decoder::qualify(const ArmOptions& options) {
  const Compared compared = compare_once(options.cache_dir, [this] { return lists_key(); }, [&] {
    if (options.progress) options.progress("comparing the kernels with the reference", 0, 0);
    QualifyScope scope{{}, widths(), std::min(options_.context, kQualifyPositions)};
    for (const auto& table : ropes_) table->ensure(scope.positions);
    kv_.commit(plan_.bytes(scope.positions));  // the processor's row ops store there, wherever the lists run
    for (const Recorded& body : bodies_) scope.lists.push_back(&body.list);
    for (const Recorded& head : heads_) scope.lists.push_back(&head.list);
    uint64_t rows = qualify_kernels(cpu_->kernels(), scope);
    for (const uint32_t seed : {1u, 2u}) rows += compare_lists(seed);
    return rows;
  });
  qualification_ = {compared.kept ? Qualification::How::cached : Qualification::How::now, compared.rows,
                    compared.not_kept};
}

void Decoder::arm(const ArmOptions& options) {
  if (life_.state() != LifeState::loaded)
    fail(Code::kInternal, "internal error: command lists that are {} cannot be armed", life_state_name(life_.state()));
  try {
    warm();
    life_.advance(LifeState::warmed);
    buffers_.freeze();
    life_.advance(LifeState::built);
    if (options.qualify == Qualify::skip) return life_.arm_unqualified();
    qualify(options);
    life_.advance(LifeState::qualified);
    life_.advance(LifeState::armed);
  } catch (...) {
    // run() returns when the pool is done: nothing is in flight.
    life_.retire([] {});
    qualification_ = {};
    throw;
  }
}

}  // namespace stet
