// Feeds arbitrary bytes to the template engine and the tokenizer. Anything but a clean refusal, a lost byte or a
// control token out of a message is a bug. The first byte chooses: templates (even) or tokenizers (odd).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace {

using stet::Error;
using stet::Span;
using stet::TokenId;
using stet::TokenType;

void require(bool holds) {
  if (!holds) std::abort();
}

// The engine must end within its limits, and what it prints must be text that the input or the template wrote.
void render(const std::string& source) {
  try {
    const stet::ChatTemplate chat(source);
    stet::ChatOptions options;
    options.bos_token = "<s>";
    options.now.tm_mday = 1;
    const stet::Text prompt = chat.apply({{"system", "Be brief."}, {"user", " Hi é \"x\" {{ n }}\n"}}, options);
    size_t end = 0;
    for (const stet::Text::Run& run : prompt.runs()) {
      require(run.end > end);
      end = run.end;
    }
    require(end == prompt.size());
  } catch (const Error& e) {
    require(e.code() == stet::Code::kInput || e.code() == stet::Code::kUnsupported);
  }
}

stet::Vocabulary make_vocabulary(uint8_t choice) {
  constexpr const char* kPres[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "deepseek-v3"};
  stet::Vocabulary vocab = stet::synthetic_vocabulary(262);
  vocab.pre = stet::find_pre_tokenizer(kPres[choice % std::size(kPres)]);
  vocab.tokens[256] = {"<|a|>", TokenType::kControl};
  vocab.tokens[257] = {"<|a|>b", TokenType::kControl};
  vocab.tokens[258] = {"<t>", TokenType::kUserDefined};
  const std::string_view merged[] = {"ab", "aba", "\xC3\xA9"};
  for (TokenId id = 259; id < 262; ++id)
    vocab.tokens[static_cast<size_t>(id)] = {std::string(merged[id - 259]), TokenType::kNormal};
  vocab.merges[stet::Vocabulary::pair_key('a', 'b')] = {1, 259};
  vocab.merges[stet::Vocabulary::pair_key(259, 'a')] = {0, 260};
  vocab.merges[stet::Vocabulary::pair_key(0xC3, 0xA9)] = {2, 261};
  return vocab;
}

// Spans between the bytes 0x01 (a message follows) and 0x02 (template text follows).
std::vector<Span> make_spans(std::string_view text) {
  std::vector<Span> spans{{"", false}};
  for (char c : text) {
    if (c == 1 || c == 2) {
      spans.push_back({"", c == 2});
    } else {
      spans.back().text.push_back(c);
    }
  }
  return spans;
}

void tokenize(uint8_t choice, std::string_view text) {
  const stet::Tokenizer tokenizer(make_vocabulary(choice));
  const std::vector<Span> spans = make_spans(text);
  std::string whole;
  bool any_template = false;
  for (const Span& span : spans) {
    whole += span.text;
    any_template = any_template || span.template_text;
  }
  const std::vector<TokenId> ids = tokenizer.encode(spans);
  require(tokenizer.decode(ids, true) == whole);
  const bool has_control = std::any_of(ids.begin(), ids.end(), [](TokenId id) { return id == 256 || id == 257; });
  require(any_template || !has_control);

  stet::Detokenizer detokenizer(tokenizer, stet::InvalidBytes::kReplace, true);
  stet::StopStrings stops({"ab\n", "\xC3\xA9"});
  std::string streamed, shown;
  for (TokenId id : ids) {
    const std::string piece = detokenizer.push(id);
    require(stet::is_valid_utf8(piece));
    streamed += piece;
    shown += stops.push(piece);
  }
  const std::string rest = detokenizer.flush();
  streamed += rest;
  shown += stops.push(rest) + stops.flush();
  require(streamed == stet::replace_invalid_utf8(whole));
  require(streamed.starts_with(shown));
  require(stops.found().has_value() || streamed == shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    render(text);
  } else {
    tokenize(static_cast<uint8_t>(data[0] / 2), text);
  }
  return 0;
}
