#include "text/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "text/unicode.h"

namespace stet {
namespace {

// Texts of CONTROL tokens that end an answer in one of the known chat formats.
constexpr std::string_view kEndMarkers[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|eot|>",
    "<|eom|>",
    "<EOT>",
    "<end_of_turn>",
    "<turn|>",
    "</assistant>",
    "<|end_of_turn|>",
    "</s>",
    "<｜end▁of▁sentence｜>",
    "<|eos|>",
    "[e~[",
};

bool is_end_marker(std::string_view text) {
  return std::find(std::begin(kEndMarkers), std::end(kEndMarkers), text) != std::end(kEndMarkers);
}

bool is_hidden(TokenType type) { return type == TokenType::kControl || type == TokenType::kUnknown; }

std::vector<TokenId> find_stop_tokens(const Vocabulary& vocab) {
  std::vector<TokenId> stops;
  for (const std::optional<TokenId>& id : {vocab.eos, vocab.eot, vocab.eom}) {
    if (id) stops.push_back(*id);
  }
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    const Token& token = vocab.tokens[id];
    if (token.type == TokenType::kControl && is_end_marker(token.bytes)) stops.push_back(static_cast<TokenId>(id));
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  return stops;
}

std::string hash_tokens(const std::vector<Token>& tokens) {
  Sha256 hash;
  for (const Token& token : tokens) {
    const uint64_t bytes = token.bytes.size();
    const auto type = static_cast<uint8_t>(token.type);
    hash.update(&bytes, sizeof bytes);
    hash.update(token.bytes.data(), token.bytes.size());
    hash.update(&type, sizeof type);
  }
  return hash.hex();
}

bool is_blank(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    if ((char_classes(c.value) & kWhitespace) == 0) return false;
    at += c.bytes;
  }
  return true;
}

}  // namespace

// One call of encode(): the joined text and where template bytes end.
class Tokenizer::Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, const EncodeOptions& options) : tokenizer_(tokenizer), options_(options) {
    if (options.add_bos && tokenizer.vocab_.add_bos) out_.push_back(*tokenizer.vocab_.bos);
  }

  void run(std::string_view text, const std::vector<Text::Run>& runs) {
    size_t pending = 0;  // start of the plain text that no token was found for
    size_t run = 0;
    for (size_t at = 0; at < text.size();) {
      while (run < runs.size() && runs[run].end <= at) ++run;
      const size_t trusted_end = options_.parse_special ? text.size() : trusted_until(runs, run, at);
      const TokenTrie::Match match = tokenizer_.added_.longest(text.substr(at), [&](TokenId id, size_t bytes) {
        return !tokenizer_.trusted_[static_cast<size_t>(id)] || at + bytes <= trusted_end;
      });
      if (match.id < 0) {
        ++at;
        continue;
      }
      encode_plain(text.substr(pending, at - pending));
      out_.push_back(match.id);
      pending = at += match.bytes;
    }
    encode_plain(text.substr(pending));
  }

  std::vector<TokenId> take() { return std::move(out_); }

 private:
  // End of the template bytes that begin at `at`, or `at` when a message wrote that byte.
  static size_t trusted_until(const std::vector<Text::Run>& runs, size_t run, size_t at) {
    return run < runs.size() && runs[run].source == kTemplateSource ? runs[run].end : at;
  }

  void encode_plain(std::string_view text) {
    size_t begin = 0;
    for (size_t end : pre_tokenize(tokenizer_.vocab_.pre.kind, text)) {
      encode_piece(text.substr(begin, end - begin));
      begin = end;
    }
  }

  void encode_piece(std::string_view piece) {
    if (tokenizer_.vocab_.pre.ignore_merges) {
      const auto whole = tokenizer_.vocab_.normal.find(piece);
      if (whole != tokenizer_.vocab_.normal.end()) {
        out_.push_back(whole->second);
        return;
      }
    }
    bpe_encode(tokenizer_.vocab_, piece, options_.missing, out_);
  }

  const Tokenizer& tokenizer_;
  const EncodeOptions& options_;
  std::vector<TokenId> out_;
};

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocab_(std::move(vocabulary)),
      trusted_(vocab_.tokens.size(), false),
      stop_tokens_(find_stop_tokens(vocab_)),
      vocab_hash_(hash_tokens(vocab_.tokens)) {
  for (size_t id = 0; id < vocab_.tokens.size(); ++id) {
    const Token& token = vocab_.tokens[id];
    if (token.type != TokenType::kControl && token.type != TokenType::kUserDefined) continue;
    added_.add(token.bytes, static_cast<TokenId>(id));
    trusted_[id] = token.type == TokenType::kControl;
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Encoder encoder(*this, options);
  encoder.run(text, {{text.size(), kUntrustedSource}});
  return encoder.take();
}

std::vector<TokenId> Tokenizer::encode(std::span<const Span> spans, const EncodeOptions& options) const {
  Text text;
  for (const Span& span : spans) text.append(span.text, span.template_text ? kTemplateSource : kUntrustedSource);
  return encode(text, options);
}

std::vector<TokenId> Tokenizer::encode(const Text& text, const EncodeOptions& options) const {
  Encoder encoder(*this, options);
  encoder.run(text.bytes(), text.runs());
  return encoder.take();
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string out;
  for (TokenId id : ids) out += token_bytes(id, render_special);
  return out;
}

std::string_view Tokenizer::token_bytes(TokenId id, bool render_special) const {
  const Token& t = token(id);
  return is_hidden(t.type) && !render_special ? std::string_view() : std::string_view(t.bytes);
}

const Token& Tokenizer::token(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= size()) {
    fail(Code::kUsage, "token id {} is outside the vocabulary of {} tokens", id, size());
  }
  return vocab_.tokens[static_cast<size_t>(id)];
}

void Tokenizer::set_markers(std::span<const std::string> template_texts) {
  for (size_t id = 0; id < vocab_.tokens.size(); ++id) {
    const Token& token = vocab_.tokens[id];
    if (token.type != TokenType::kUserDefined || is_blank(token.bytes)) continue;
    trusted_[id] = std::any_of(template_texts.begin(), template_texts.end(),
                               [&](const std::string& text) { return text.find(token.bytes) != std::string::npos; });
  }
}

bool Tokenizer::is_stop(TokenId id) const { return std::binary_search(stop_tokens_.begin(), stop_tokens_.end(), id); }

}  // namespace stet
