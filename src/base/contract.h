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
