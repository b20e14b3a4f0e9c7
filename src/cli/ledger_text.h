// The ledger for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/ledger/state.h"

namespace stet {

// One line an attempt, newest first.
std::string attempts_text(const std::vector<AttemptRow>& rows);
// All of one attempt.
std::string attempt_text(const AttemptRow& row);
std::string classes_text(const std::vector<ClassState>& classes);
std::string state_text(const LabState& state);

// packet: its whole path; else its name alone, for what leaves this machine.
nlohmann::ordered_json attempt_json(const AttemptRow& row, bool whole_path);
nlohmann::ordered_json class_json(const ClassState& state);
nlohmann::ordered_json state_json(const LabState& state);
std::string ledger_export(Ledger& ledger);

}  // namespace stet
