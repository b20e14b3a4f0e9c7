// Detached signatures of plan.json and MANIFEST, made with `ssh-keygen -Y sign -n stet-packet` and checked with
// ssh-keygen.
#pragma once

#include <string>
#include <vector>

namespace stet {

inline constexpr const char* kSignatureNamespace = "stet-packet";

struct SignatureCheck {
  enum class State { absent, not_checked, good, bad };
  std::string file;  // "MANIFEST", "plan.json"
  State state = State::absent;
  std::string signer;  // of a good one: who, as the list of signers calls them
  std::string why;     // of a bad one
};

// signers: a file of allowed signers as ssh-keygen(1) describes it; "": nothing is checked. Throws Error(kInput) when
// that file is missing, Error(kResource) when there is no ssh-keygen that can check.
std::vector<SignatureCheck> check_signatures(const std::string& packet_path, const std::string& signers);

}  // namespace stet
