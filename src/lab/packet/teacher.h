// Answers of a plain decoder that others are compared with.
//
// A packet that is judged by an earlier one carries of it, in a note "teacher", MANIFEST and results.json as they are.
// The plan names the SHA-256 of that MANIFEST, the MANIFEST that of results.json, and results.json holds the answers:
// so that the note can be checked without the earlier packet, and cannot be exchanged for another.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/packet/packet.h"
#include "base/strict_json.h"

namespace stet {

struct TeacherAnswer {
  std::string prompt_sha256;
  std::vector<int32_t> token_ids;
  bool cancelled = false;
};

struct Teacher {
  std::string problem;                           // why it proves nothing; empty: it does
  Json identity;                                 // what of its identity has to be the candidate's too (identity_basis)
  std::map<std::string, TeacherAnswer> answers;  // by step
};

// The body of the note. Reads and verifies the packet. Throws Error(kInput) when it is damaged, Error(kUsage) when it
// is no teacher: its repeat test did not hold.
std::string teacher_note(const std::string& packet_path);
// The SHA-256 of a packet's MANIFEST: what the plan names. Throws Error(kInput).
std::string manifest_sha256(const std::string& packet_path);

// From the notes of a packet whose plan names `manifest_sha256`. Never throws for what the note says: see
// Teacher::problem.
Teacher teacher_of_notes(const Packet& packet, const std::string& manifest_sha256);
// From one arm's entry in results ("arms").
Teacher teacher_of_arm(const Json& arm);

// The members of an identity that answers depend on: model, tokenizer, template, numerics version, profile,
// activations, KV format; those that are missing are "unproven".
Json identity_basis(const std::string& identity_json);
// Empty, or the first member in which both say something and not the same.
std::string basis_difference(const Json& a, const Json& b);

}  // namespace stet
