// Qualification: a decoder whose kernels are wrong refuses to start. It compares a sample, so it does not replace the families.
#include <gtest/gtest.h>

#include "base/error.h"
#include "mutants.h"

namespace stet::test {
namespace {

struct QualifyCase {
  const char* name;
  Kernels (*make)();
  bool refused;
};

class QualifyMutants : public testing::TestWithParam<QualifyCase> {};

TEST_P(QualifyMutants, AreRefusedOrPass) {
  const TestModel model("synth:tiny-gqa:q4_1");
  const Kernels table = GetParam().make();
  Way way;
  way.kernels = &table;
  way.arm.qualify = Qualify::compare;
  mutants::forget();
  if (GetParam().refused) {
    EXPECT_THROW(Machine(model, way), Error) << GetParam().name;
  } else {
    EXPECT_NO_THROW(Machine(model, way)) << GetParam().name;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, QualifyMutants,
                         testing::Values(QualifyCase{"nothing_wrong", mutants::nothing_wrong, false},
                                         QualifyCase{"two_accumulators_when_wide", mutants::two_accumulators_when_wide, true},
                                         QualifyCase{"product_without_fma", mutants::product_without_fma, true},
                                         QualifyCase{"segments_by_threads", [] { return mutants::segments_by_threads(3); }, true},
                                         QualifyCase{"rotation_with_fma", mutants::rotation_with_fma, true},
                                         QualifyCase{"reads_one_slot_beyond", mutants::reads_one_slot_beyond, true},
                                         QualifyCase{"masked_times_zero", mutants::masked_times_zero, true},
                                         QualifyCase{"rotation_of_first_call", mutants::rotation_of_first_call, true},
                                         QualifyCase{"last_of_equals", mutants::last_of_equals, true},
                                         // Beyond the sample: the fourth chunk of a context.
                                         QualifyCase{"chunks_joined_in_line", mutants::chunks_joined_in_line, false}),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace stet::test
