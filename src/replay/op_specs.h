// What row ops need to know beyond their buffers: constants and addresses that never change while a list lives.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "kernels/attend/attend.h"
#include "kernels/entries/entries.h"
#include "kernels/experts/experts.h"
#include "kernels/hyper/hyper.h"
#include "kernels/route/route.h"
#include "kernels/union_attend/union_attend.h"

namespace stet {

// `rounded`: as a published checkpoint has it (kernels/rounding): results in bf16, rows of the cache in e4m3 but for
// their rotated end, what an indexer compares in e2m1 behind a Hadamard transform (`indexed`).

// turn_heads: unit norm, where asked for, and rotation of every head's end. A part is a head.
struct HeadsSpec {
  uint32_t head_dim = 0;
  RopeRows rope;
  bool unit = false;
  float eps = 0.0f;
  bool rounded = false, indexed = false;
};

// cache_row: the end of the row is rotated, and the row stored at its position; rows of width 0: stored nowhere.
struct CacheSpec {
  StateRows rows;
  RopeRows rope;
  bool rounded = false;
};

// pool_row: [c, z + position[t mod ratio]] stored at t.
struct PoolRowSpec {
  StateRows rows;
  PackedMatrix position;  // (ratio, width of c)
};

// pool_entry: the entry that closes at t, normed, rotated by the angle of its first own row, and stored.
struct EntrySpec {
  PoolSpec pool;
  const float* norm = nullptr;
  float eps = 0.0f;
  RopeRows rope;
  bool rounded = false, indexed = false;
};

// round_e4m3: runs of `run` elements, each in groups of kPlaneGroup. A part is a run.
struct RoundSpec {
  uint32_t run = 0;
};

// union_attend, block_attend
struct UnionAttendSpec {
  UnionSpec attend;
  RopeRows rope;
};

// grouped: rows of the matrix in `groups` equal runs, each times its own run of the input. A part is a tile.
struct GroupedSpec {
  uint32_t groups = 1;
};

// swiglu_limit
struct LimitSpec {
  float limit = 0.0f;
};

// slice: from element `first` of the input on.
struct SliceSpec {
  uint32_t first = 0;
};

// keep_row, load_row: the row of a position, as it is.
struct KeepSpec {
  StateRows rows;
};

using OpSpec =
    std::variant<std::monostate, HyperSpec, HeadsSpec, CacheSpec, PoolRowSpec, EntrySpec, ChooseSpec, UnionAttendSpec,
                 RoundSpec, GroupedSpec, RouteSpec, LimitSpec, SliceSpec, KeepSpec, std::shared_ptr<const ExpertsSpec>>;

// Equal just when two specs have the same shapes and constants: part of a verdict's key. Empty without a spec.
std::string describe_spec(const OpSpec& spec);
// "Q4_0 64x128" (rows x columns); "F8_E4M3 by e4m3 64x128" where products read another kind than is usual.
std::string describe_matrix(const PackedMatrix& matrix);

}  // namespace stet
