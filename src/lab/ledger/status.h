// The status of an attempt on six axes, instead of one word that means all of them. No axis converts into another: a
// component that passed says nothing about an endpoint, and an endpoint that won says nothing about correctness.
#pragma once

#include <cstdint>
#include <string_view>

namespace stet {

// Of tokens, against the plain decoder or between arms.
enum class Correctness : uint8_t { unknown, exact, inexact, unproven };
// Of a part alone, measured by a program of its own (evidence class "component" or "captured").
enum class ComponentStatus : uint8_t { none, pass, below_gate, loss };
// Through the server or the engine as a user runs it (evidence class "endpoint").
enum class EndpointStatus : uint8_t { none, measured, pass, below_gate, loss };
// Whether machine, processes and tools did their part; the treatment is what the attempt is about.
enum class Infrastructure : uint8_t {
  unknown,
  sound,
  failed_before_treatment,
  failed_after_treatment,
  aborted_before_treatment,
  aborted_after_treatment
};
enum class Measurement : uint8_t { none, valid, invalid, screening, unproven };
enum class Lifecycle : uint8_t { registered, treated, finished, promoted, refused, terminal };

struct Status {
  Correctness correctness = Correctness::unknown;
  ComponentStatus component = ComponentStatus::none;
  EndpointStatus endpoint = EndpointStatus::none;
  Infrastructure infrastructure = Infrastructure::unknown;
  Measurement measurement = Measurement::none;
  Lifecycle lifecycle = Lifecycle::registered;
};

// "below_gate": what the ledger stores.
std::string_view status_name(Correctness value);
std::string_view status_name(ComponentStatus value);
std::string_view status_name(EndpointStatus value);
std::string_view status_name(Infrastructure value);
std::string_view status_name(Measurement value);
std::string_view status_name(Lifecycle value);

}  // namespace stet
