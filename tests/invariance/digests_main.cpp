// Prints the digests of this build, when all instruction sets of this machine agree on them.
#include <cstdio>

#include "digests.h"

int main() {
  using namespace stet;
  const auto want = test::compute_digests(kernels(Isa::scalar));
  for (Isa isa : available_isas())
    if (test::compute_digests(kernels(isa)) != want) {
      std::fprintf(stderr, "the digests of %s are not those of scalar\n", std::string(isa_name(isa)).c_str());
      return 1;
    }
  std::fputs(test::digests_json(want).c_str(), stdout);
  return 0;
}
