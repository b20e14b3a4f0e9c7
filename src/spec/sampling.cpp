#include "spec/sampling.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace stet {
namespace {

constexpr float kMaxTemperature = 100.0f;
constexpr float kMaxPenalty = 100.0f;
constexpr float kMaxBias = 1000.0f;

void check_range(std::string_view flag, float value, float low, float high, std::string_view meaning) {
  if (value >= low && value <= high) return;  // false for NaN
  fail(Code::kUsage, "{} is {}: choose a value from {} to {} ({})", flag, value, low, high, meaning);
}

}  // namespace

void SamplingParams::validate(uint32_t vocab) const {
  check_range("--temperature", temperature, 0.0f, kMaxTemperature, "0 is greedy");
  if (!(top_p > 0.0f && top_p <= 1.0f))
    fail(Code::kUsage, "--top-p is {}: choose a value above 0, at most 1 (1 is off)", top_p);
  check_range("--min-p", min_p, 0.0f, 1.0f, "0 is off");
  check_range("--repetition-penalty", repetition_penalty, 1.0f / kMaxPenalty, kMaxPenalty, "1 is off");
  check_range("--presence-penalty", presence_penalty, -kMaxPenalty, kMaxPenalty, "0 is off");
  check_range("--frequency-penalty", frequency_penalty, -kMaxPenalty, kMaxPenalty, "0 is off");
  for (const auto& [id, bias] : logit_bias) {
    if (id < 0 || static_cast<uint32_t>(id) >= vocab)
      fail(Code::kUsage, "--logit-bias names token {}: the model's tokens are 0 to {}", id, vocab - 1);
    check_range(fmt::format("--logit-bias of token {}", id), bias, -kMaxBias, kMaxBias, "0 changes nothing");
  }
}

uint64_t draw_seed() {
  uint64_t seed = 0;
  ssize_t got = -1;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof seed))
    fail(Code::kResource, "the system gives no random seed ({}): choose one with --seed", std::strerror(errno));
  return seed >> 11;
}

Sampler::Sampler(const Kernels& kernels, const SamplingParams& params, uint32_t vocab)
    : kernels_(kernels.sample), params_(params), vocab_(vocab) {
  STET_CHECK(vocab > 0);
  params.validate(vocab);
  if (params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f)
    counts_.emplace(vocab);
  if (counts_ || !params.logit_bias.empty()) row_.resize(vocab);
}

SampleResult Sampler::sample(const float* logits, std::span<const int32_t> prompt, std::span<const int32_t> output,
                             uint64_t position) {
  const float* row = adjusted(logits, prompt, output);
  const Argmax top = kernels_.argmax(row, vocab_);
  if (top.first_bad != vocab_) return {-1, top.first_bad};
  const auto result = [this](uint32_t id) { return SampleResult{static_cast<int32_t>(id), vocab_}; };
  if (params_.temperature == 0.0f) return result(top.id);
  const NoiseStream stream = {params_.seed, position};
  const Truncation truncation = {params_.top_k, params_.top_p, params_.min_p};
  if (!truncation.cuts(vocab_)) return result(kernels_.gumbel_row(row, vocab_, top.id, params_.temperature, stream));
  const float max = row[top.id];
  candidates_.select(kernels_, row, vocab_, max, params_.temperature, truncation);
  const auto ids = candidates_.ids();
  return result(kernels_.gumbel_list(candidates_.logits().data(), ids.data(), static_cast<uint32_t>(ids.size()), max,
                                     params_.temperature, stream));
}

// The row itself where nothing changes it, else a copy.
const float* Sampler::adjusted(const float* logits, std::span<const int32_t> prompt, std::span<const int32_t> output) {
  if (row_.empty()) return logits;
  std::copy_n(logits, vocab_, row_.data());
  for (const auto& [id, bias] : params_.logit_bias) row_[static_cast<size_t>(id)] += bias;
  if (!counts_) return row_.data();
  counts_->update(prompt, output);
  for (int32_t id : counts_->distinct()) penalize(id);
  return row_.data();
}

void Sampler::penalize(int32_t id) {
  float l = row_[static_cast<size_t>(id)];
  if (params_.repetition_penalty != 1.0f)
    l = l > 0.0f ? l / params_.repetition_penalty : l * params_.repetition_penalty;
  if (const uint32_t count = counts_->in_output(id); count != 0)
    l = (l - params_.frequency_penalty * static_cast<float>(count)) - params_.presence_penalty;
  row_[static_cast<size_t>(id)] = l;
}

}  // namespace stet
