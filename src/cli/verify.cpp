// stet verify: everything of a packet that can be checked without its model.
#include "lab/packet/verify.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {
namespace {

using State = SignatureCheck::State;

struct VerifyFlags {
  std::string packet, signers;
  bool require_signature = false, json = false;

  void declare(Flags& flags) {
    flags.positional("PACKET", &packet, "the folder that stet bench, compare or spec-eval wrote");
    flags.section("Signatures");
    flags.text("--signers", "FILE", &signers,
               "check MANIFEST.sig and plan.json.sig against these allowed signers (ssh-keygen)");
    flags.toggle("--require-signature", &require_signature, "refuse a packet without a good signature of its manifest");
    flags.section("Output");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
    flags.footer(
        "Nothing that is stored is believed: every figure and verdict is computed again from the raw events and "
        "compared\n"
        "byte by byte. To sign: ssh-keygen -Y sign -f KEY -n stet-packet PACKET/MANIFEST");
  }
};

const char* state_name(State state) {
  switch (state) {
    case State::absent:
      return "absent";
    case State::not_checked:
      return "not checked";
    case State::good:
      return "good";
    case State::bad:
      return "bad";
  }
  return "";
}

std::string signature_line(const SignatureCheck& check) {
  std::string line = fmt::format("{}.sig: {}", check.file, state_name(check.state));
  if (check.state == State::good) line += ", by " + check.signer;
  if (check.state == State::not_checked) line += " (--signers FILE)";
  if (check.state == State::bad) line += ": " + check.why;
  return line;
}

std::string text_of(const VerifyReport& r) {
  const Packet& p = r.packet;
  std::string text = "files        4, each as the manifest says\n";
  text += fmt::format("plan         {} (kind {}), named by the events\n", p.plan_sha256, r.kind);
  text += fmt::format("events       {} starts, {} requests, {} frames, {} token ids, {} measures, {} notes\n",
                      p.starts.size(), p.requests.size(), r.frames, r.tokens, p.measures.size(), p.notes.size());
  text +=
      fmt::format("results      {}\n",
                  r.mismatch.empty() ? fmt::format("{} values computed again: the same bytes", r.values) : r.mismatch);
  for (const SignatureCheck& check : r.signatures) text += fmt::format("signature    {}\n", signature_line(check));
  if (!r.verdict.empty()) text += fmt::format("verdict      {}\n", r.verdict);
  return text;
}

std::string json_of(const VerifyReport& r) {
  nlohmann::ordered_json signatures = nlohmann::ordered_json::array();
  for (const SignatureCheck& c : r.signatures)
    signatures.push_back({{"file", c.file}, {"state", state_name(c.state)}, {"signer", c.signer}, {"why", c.why}});
  const Packet& p = r.packet;
  const nlohmann::ordered_json json = {
      {"sound", r.mismatch.empty()},
      {"mismatch", r.mismatch.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(r.mismatch)},
      {"kind", r.kind},
      {"verdict", r.verdict.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(r.verdict)},
      {"plan_sha256", p.plan_sha256},
      {"starts", p.starts.size()},
      {"requests", p.requests.size()},
      {"frames", r.frames},
      {"token_ids", r.tokens},
      {"measures", p.measures.size()},
      {"notes", p.notes.size()},
      {"values", r.values},
      {"signatures", signatures}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void check_signed(const VerifyReport& report, const VerifyFlags& flags) {
  for (const SignatureCheck& check : report.signatures) {
    if (check.state == State::bad) fail(Code::kDiverged, "{}/{}.sig: {}", flags.packet, check.file, check.why);
    if (flags.require_signature && check.file == "MANIFEST" && check.state != State::good)
      fail(Code::kInput, "{}: its manifest is not signed (ssh-keygen -Y sign -f KEY -n {} {}/MANIFEST)", flags.packet,
           kSignatureNamespace, flags.packet);
  }
}

}  // namespace

int verify_main(std::span<const std::string> arguments) {
  VerifyFlags flags;
  Flags parser("verify",
               "Checks a packet: its files, and every figure and verdict, computed again from the raw events.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  if (flags.packet.empty()) fail(Code::kUsage, "no packet given: stet verify PACKET");
  if (flags.require_signature && flags.signers.empty())
    fail(Code::kUsage, "--require-signature needs to know whose: --signers FILE");
  const VerifyReport report = verify_packet(flags.packet, flags.signers);
  if (flags.json)
    write_out(json_of(report));
  else
    show_out(text_of(report));
  if (!report.mismatch.empty()) fail(Code::kDiverged, "{}: {}", flags.packet, report.mismatch);
  check_signed(report, flags);
  return kExitOk;
}

}  // namespace stet
