// The floating-point contract that a compiler flag could break (docs/numerics.md section 1).
#pragma once

#ifdef __FAST_MATH__
#error "stet promises bits: build without -ffast-math"
#endif
static_assert(__FLT_EVAL_METHOD__ == 0, "f32 expressions must be evaluated in f32");
