// Sampling on a CUDA device: for each row of logits the token of spec/sampling.h, with every option. What it depends on
// lies in device memory, so that one recorded graph serves all requests. Guarantee: exact; all that decides is a
// comparison of integers, so any number of blocks of threads gives the same token.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cuda/launch.h"

namespace stet {

constexpr uint32_t kCudaSampleRows = 16;

// The sampling parameters of a request.
struct CudaSampling {
  float temperature = 0.0f;
  float repetition = 1.0f, presence = 0.0f, frequency = 0.0f;
  uint32_t top_k = 0;       // 0: all
  uint32_t min_weight = 0;  // floor(min_p * 2^31)
  uint64_t top_p = 0;       // max(1, floor(top_p * 2^32)); 0: all
  uint64_t seed = 0;
  uint32_t biased = 0;     // whether `bias` counts
  uint32_t penalised = 0;  // whether `counts` count
};

// What is sampled behind.
struct CudaTimeline {
  uint32_t committed;  // tokens, and so the position of the first new one
  uint32_t proposals;
  int32_t proposed[kCudaSampleRows];
};

// Of CudaSample::counts: how often a token stands in the output, and whether it stands in the prompt.
constexpr uint32_t kCudaInPrompt = 1u << 31;

// What top-k and top-p leave of a row: sort keys and weights above these, or equal to them and of an id up to that.
struct CudaKept {
  uint32_t key, key_id, weight, weight_id;
};

// Everything that sampling reads and leaves, in device memory.
struct CudaSample {
  const CudaSampling* sampling = nullptr;
  const CudaTimeline* timeline = nullptr;
  const float* logits = nullptr;     // (rows of the step's head, vocab)
  const float* bias = nullptr;       // (vocab)
  const uint32_t* counts = nullptr;  // (vocab)
  uint32_t vocab = 0;
  uint32_t first = 0;   // row r stands behind the first `first` + r proposals
  uint32_t blocks = 0;  // of threads that share the rows
  // Scratch of cuda_sample_bytes().
  unsigned long long *best = nullptr, *noisy = nullptr;  // [blocks]: key of the largest, and ~id
  uint32_t* bad = nullptr;                               // [blocks]: whether a logit is not finite
  CudaKept* kept = nullptr;                              // [kCudaSampleRows]
  uint32_t* keys = nullptr;                              // [kCudaSampleRows][vocab]
};

// Blocks of threads that a device of so many processors shares rows among.
constexpr uint32_t cuda_sample_blocks(uint32_t processors) { return 2 * (processors < 16 ? 16 : processors); }
size_t cuda_sample_bytes(uint32_t vocab, uint32_t blocks);
// Points the scratch fields of s (vocab and blocks set) into so many bytes of device memory, aligned to 256.
void place_cuda_sample(CudaSample& s, uint8_t* memory);

// Puts the kernels (kCudaSampleLaunches of them) for up to `rows` rows, 1 .. kCudaSampleRows, on a stream; the step's
// head_rows says how many there are. They leave what join_row() (sample_cuda.cuh) makes tokens of.
constexpr uint32_t kCudaSampleLaunches = 3;
void launch_sample(const CudaLaunch& on, const CudaStep* step, const CudaSample& s, uint32_t rows);

}  // namespace stet
