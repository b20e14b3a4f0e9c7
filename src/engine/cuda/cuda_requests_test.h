// Requests whose answers on the GPU are compared with those of the processor.
#pragma once

#include <gtest/gtest.h>

#include "stet/engine.h"

namespace stet::test {

inline std::vector<int32_t> prompt_tokens(uint32_t n, uint32_t seed) {
  std::vector<int32_t> out(n);
  uint32_t x = seed;
  for (int32_t& t : out) {
    x = x * 1664525u + 1013904223u;
    t = static_cast<int32_t>(4 + (x >> 8) % 316);  // no control tokens
  }
  for (size_t i = 10; i < out.size(); ++i)
    if (i / 10 % 2 == 1) out[i] = out[i - 10];
  return out;
}

inline Request request_of(uint32_t prompt, uint32_t seed, uint32_t max_tokens = 30) {
  Request r;
  r.prompt = prompt_tokens(prompt, seed);
  r.max_tokens = max_tokens;
  if (seed % 3 != 0) r.sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = seed};
  if (seed % 3 == 2) r.sampling.repetition_penalty = 1.2f;
  return r;
}

inline void expect_equal(const Generation& got, const Generation& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.finish, want.finish);
  EXPECT_EQ(got.cached_tokens, want.cached_tokens);
  ASSERT_EQ(got.cycles.size(), want.cycles.size());
  double last = 0.0;
  for (size_t i = 0; i < got.cycles.size(); ++i) {
    EXPECT_EQ(got.cycles[i].proposed, want.cycles[i].proposed) << i;
    EXPECT_EQ(got.cycles[i].accepted, want.cycles[i].accepted) << i;
    EXPECT_EQ(got.cycles[i].emitted, want.cycles[i].emitted) << i;
    EXPECT_GE(got.cycles[i].seconds, last);
    EXPECT_LE(got.cycles[i].draft_seconds, got.total_seconds + 0.1);
    last = got.cycles[i].seconds;
  }
}

}  // namespace stet::test
