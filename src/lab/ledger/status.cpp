#include "lab/ledger/status.h"

#include <cstddef>
#include <iterator>

#include "base/error.h"

namespace stet {
namespace {

template <typename E, size_t N>
std::string_view name_in(const std::string_view (&names)[N], E value) {
  STET_CHECK(static_cast<size_t>(value) < N);
  return names[static_cast<size_t>(value)];
}

constexpr std::string_view kCorrectness[] = {"unknown", "exact", "inexact", "unproven"};
constexpr std::string_view kComponent[] = {"none", "pass", "below_gate", "loss"};
constexpr std::string_view kEndpoint[] = {"none", "measured", "pass", "below_gate", "loss"};
constexpr std::string_view kInfrastructure[] = {"unknown",
                                                "sound",
                                                "failed_before_treatment",
                                                "failed_after_treatment",
                                                "aborted_before_treatment",
                                                "aborted_after_treatment"};
constexpr std::string_view kMeasurement[] = {"none", "valid", "invalid", "screening", "unproven"};
constexpr std::string_view kLifecycle[] = {"registered", "treated", "finished", "promoted", "refused", "terminal"};

}  // namespace

std::string_view status_name(Correctness value) { return name_in(kCorrectness, value); }
std::string_view status_name(ComponentStatus value) { return name_in(kComponent, value); }
std::string_view status_name(EndpointStatus value) { return name_in(kEndpoint, value); }
std::string_view status_name(Infrastructure value) { return name_in(kInfrastructure, value); }
std::string_view status_name(Measurement value) { return name_in(kMeasurement, value); }
std::string_view status_name(Lifecycle value) { return name_in(kLifecycle, value); }

}  // namespace stet
