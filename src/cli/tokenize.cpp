// stet tokenize: text to token ids, and back.
#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "cli/token_list.h"
#include "cli/verb.h"
#include "engine/model_names.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace stet {
namespace {

// As the engine has it: what the template itself prints is not recognised in text.
Tokenizer open_tokenizer(const std::string& model) {
  const std::unique_ptr<TensorSource> source = open_model(model, "");
  Tokenizer tokenizer(source->metadata());
  if (ChatTemplate::in(source->metadata()))
    tokenizer.set_markers(ChatTemplate::from_metadata(source->metadata()).literals());
  return tokenizer;
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text, bool special, bool bos, bool no_bos) {
  std::vector<TokenId> ids = tokenizer.encode(text, {.add_bos = !no_bos, .parse_special = special});
  if (!bos || tokenizer.adds_bos()) return ids;
  if (!tokenizer.bos()) fail(Code::kUsage, "--bos: the model has no token that begins a text");
  ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

}  // namespace

int tokenize_main(std::span<const std::string> arguments) {
  std::string model;
  bool special = false, decode = false, bos = false, no_bos = false;
  Flags flags("tokenize", "Reads text from standard input and prints its token ids as a JSON array.");
  flags.text("-m,--model", "MODEL", &model, "a GGUF file, a folder from Hugging Face, smollm2-135m, or synth:GEOMETRY:FORMAT");
  flags.toggle("--decode", &decode,
               "the other way: a JSON array on standard input, the exact bytes on standard output");
  flags.toggle("--special", &special, "recognise control tokens spelled in the text; with --decode, print them");
  flags.toggle("--bos", &bos, "begin with the token that begins a text, whatever the model says");
  flags.toggle("--no-bos", &no_bos, "do not begin with it (without either: as the model says)");
  if (!flags.parse(arguments)) return kExitOk;
  if (model.empty()) fail(Code::kUsage, "no model given: name one with -m");
  if (bos && no_bos) fail(Code::kUsage, "--bos and --no-bos contradict each other");
  if (decode && (bos || no_bos)) fail(Code::kUsage, "--bos and --no-bos play no part with --decode");
  const Tokenizer tokenizer = open_tokenizer(model);
  const std::string input = read_text_file("-");
  if (decode) {
    show_out(tokenizer.decode(parse_token_list("standard input", input), special));
  } else {
    write_out(token_list_json(encode(tokenizer, input, special, bos, no_bos)));
  }
  return kExitOk;
}

}  // namespace stet
