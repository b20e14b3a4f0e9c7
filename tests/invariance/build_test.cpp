// Build: the digests of tiny models are those that are committed. tests/build_matrix.sh compares other compilers and options.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "digests.h"
#include "mutants.h"

namespace stet::test {
namespace {

std::string golden() {
  std::ifstream file("tests/golden/digests.json");
  EXPECT_TRUE(file.good()) << "tests/golden/digests.json is missing (run from the root of the project)";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A difference means that the arithmetic changed: that needs a new numerics version, or is a fault.
TEST(Build, DigestsAreTheCommittedOnes) {
  for (Isa isa : available_isas()) EXPECT_TRUE(digests_json(compute_digests(kernels(isa))) == golden()) << isa_name(isa);
}

// What another build could do wrong: contract or split a multiply-add, sum in another order.
class BuildMutants : public testing::TestWithParam<Kernels (*)()> {};

TEST_P(BuildMutants, AreCaught) {
  EXPECT_NE(compute_digests(GetParam()(), 1), compute_digests(kernels(available_isas().back()), 1));
}

INSTANTIATE_TEST_SUITE_P(Arithmetic, BuildMutants,
                         testing::Values(mutants::product_without_fma, mutants::rotation_with_fma, mutants::two_accumulators_when_wide));

}  // namespace
}  // namespace stet::test
