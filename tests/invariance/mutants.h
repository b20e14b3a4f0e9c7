// Deliberately wrong variants. Each is a mistake that somebody could make; the test of the family that must catch it says so
// (docs/numerics.md lists them). Tables are the fastest of this machine with one entry replaced.
#pragma once

#include <map>

#include "harness.h"

namespace stet::test::mutants {

// Summation.
Kernels nothing_wrong();               // the code of those below, without their mistake
Kernels two_accumulators_when_wide();  // passes of several rows sum even and odd blocks apart
Kernels segments_by_threads(unsigned threads);  // K is cut by the number of threads, not by K
Kernels chunks_joined_in_line();       // attention inside one run joins its chunks one by one, not by the tree
// Rounding.
Kernels product_without_fma();         // acc + a * b where the contract writes fma(a, b, acc)
Kernels rotation_with_fma();           // fma(x, cos, y * sin) where the contract rounds every operation
// Slots.
Kernels reads_one_slot_beyond();       // attention sees the slot behind the row's own
Kernels masked_times_zero();           // slots that a row does not see are multiplied by zero
// Life.
Kernels rotation_of_first_call();      // the position of the first call stays, as if it were part of the recording
Kernels loses_store_2048();            // an 11-bit counter of stores: the one at its wrap is lost
void forget();                         // clears what the two above remember
// Ties.
Kernels last_of_equals();              // argmax takes the highest id among equals

// Delay hook of a pool: worker 0 flushes subnormals to zero inside its launches; the others come late, so that it has work to do.
void flush_to_zero_in_worker_0(unsigned worker);

// What speculate() does wrong.
enum class Fault {
  none,                 // nothing: the loop is an independent oracle of Session, Txn and step()
  stale_row,            // the KV row of a rejected proposal comes back after the rollback
  draft_as_target,      // a row is judged by the draft's own choice
  noise_by_row,         // noise depends on the row inside the pass, not on the absolute position
  counts_without_draft,  // penalties do not count the proposals before a row
  past_stop,            // tokens behind an accepted stop token are kept
  past_limit,           // tokens behind max_tokens are kept
};

// Speculative decoding written down a second time, over a bare Decoder. `cached` leading tokens of the prompt are taken for cached.
Trace speculate(Machine& machine, const Ask& ask, const Help& help, Fault fault, uint32_t cached = 0);

}  // namespace stet::test::mutants
