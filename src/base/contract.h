// The floating-point contract that a compiler flag could break (docs/numerics.md section 1).
#pragma once

#ifdef __FAST_MATH__
#error "stet promises bits: build without -ffast-math"
#endif
static_assert(__FLT_EVAL_METHOD__ == 0, "f32 expressions must be evaluated in f32");

// Unrolls the loop that follows completely: kernels keep their accumulators in registers only then.
#ifdef __clang__
#define STET_UNROLL _Pragma("clang loop unroll(full)")
#else
#define STET_UNROLL _Pragma("GCC unroll 64")
#endif

// Scalar functions that processors and GPUs share are compiled for both where nvcc reads them (its flags forbid contraction, flushing and
// approximate division: cmake/cuda.cmake).
#ifdef __CUDACC__
#define STET_BOTH __host__ __device__
#else
#define STET_BOTH
#endif
