// For tests: a tiny engine that starts in milliseconds.
#pragma once

#include "stet/options.h"

namespace stet::test {

// context: 0: what the model has.
inline Options tiny_engine(uint32_t context = 0) {
  Options o;
  o.model = "synth:tiny-gqa:q4_0";
  o.pack = "none";
  o.threads = 2;
  o.context = context;
  o.qualify = false;
  return o;
}

}  // namespace stet::test
