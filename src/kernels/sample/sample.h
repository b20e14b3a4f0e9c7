// What sampling does to a whole row of logits: argmax, tempered weights, selection by integer keys, Gumbel noise.
// Guarantee of every op: exact.
//
// The tempered logit of a token is x = (logit - max) / temperature, each operation rounded to f32; max is the row's
// largest logit, so the largest x is +0 and no temperature above zero can make one overflow upwards or become NaN.
#pragma once

#include <cstdint>

namespace stet {

struct Argmax {
  uint32_t id;  // of the largest logit, the lowest id among equals (-0 equals +0); meaningful when all are finite
  uint32_t first_bad;  // the first infinite or NaN logit, or n
};
// n >= 1 logits.
using ArgmaxFn = Argmax (*)(const float* logits, uint32_t n);

// weights[i] = floor(exp(x[i]) * 2^31), between 0 and 2^31: the product is exact in f32. Returns their sum.
using WeightsFn = uint64_t (*)(const float* logits, uint32_t n, float max, float temperature, uint32_t* weights);

// Unsigned keys in the order of the logits: keys[i] < keys[j] just when logits[i] < logits[j], all finite. -0 equals
// +0.
using SortKeysFn = void (*)(const float* logits, uint32_t n, uint32_t* keys);

struct Tally {
  uint64_t sum;  // below 2^64: n keys of 32 bits
  uint32_t count;
};
// How many of n keys are at_least or more, and their sum.
using TallyFn = Tally (*)(const uint32_t* keys, uint32_t n, uint32_t at_least);

// The keys that are at_least or more, with their ids, in the order given; returns how many. No ids (null) means 0 .. n
// - 1. The outputs have room for n entries and may be the inputs; what follows the entries kept is unspecified.
using CompactFn = uint32_t (*)(const uint32_t* keys, const uint32_t* ids, uint32_t n, uint32_t at_least,
                               uint32_t* out_keys, uint32_t* out_ids);

// Gumbel noise is a function of (seed, position, token id): g = -log(E), E = -log(u), u = (r + 1/2) / 2^32, where r is
// word id mod 4 of Philox4x32-10 with the key (seed low, seed high) and the counter (position low, position high, id /
// 4, kGumbelStream). gumbel_ref.h has the arithmetic.
struct NoiseStream {
  uint64_t seed;
  uint64_t position;
};
constexpr uint32_t kGumbelStream = 0x67756d62;  // keeps these draws apart from any other use of the seed
constexpr float kGumbelBound = 23.0f;           // above every g: the largest is log(2^33) = 22.87
// The noise of n words r, for tests and for whoever needs g itself.
using GumbelNoiseFn = void (*)(const uint32_t* words, uint32_t n, float* noise);

// The token whose x + g is largest, the lowest id among equals; over a whole row, whose argmax is given.
using GumbelRowFn = uint32_t (*)(const float* logits, uint32_t n, uint32_t argmax, float temperature,
                                 NoiseStream stream);
// The same over n tokens: their ids, ascending, and their logits. max is that of the row; one of them has a finite x.
using GumbelListFn = uint32_t (*)(const float* logits, const uint32_t* ids, uint32_t n, float max, float temperature,
                                  NoiseStream stream);

struct SampleKernels {
  ArgmaxFn argmax;
  WeightsFn weights;
  SortKeysFn sort_keys;
  TallyFn tally;
  CompactFn compact;
  GumbelNoiseFn gumbel_noise;
  GumbelRowFn gumbel_row;
  GumbelListFn gumbel_list;
};

// The scalar reference.
SampleKernels sample_ref();

}  // namespace stet
