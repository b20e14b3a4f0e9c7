#include "lab/spec_eval/pack.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "lab/spec_eval/text_source.h"
#include "lab/spec_eval/words.h"

namespace stet {
namespace {

constexpr uint32_t kLeastPrompt = 12, kLeastOutput = 4;
constexpr int kMostTries = 200;

TextSource source_named(const std::string& name) {
  static const std::map<std::string, TextSource> kSources = {{"prose", TextSource::prose},
                                                             {"code", TextSource::code},
                                                             {"math", TextSource::math},
                                                             {"extraction", TextSource::extraction},
                                                             {"adversarial", TextSource::adversarial}};
  return kSources.at(name);
}

// "Answer with exactly this JSON": a small object with values of its own.
std::string exact_task(Draws& d) {
  return DrawnText{
      "Answer with exactly this JSON object and nothing else: {{\"{}\": \"{}-{}\", \"{}\": {}, \"{}\": {}}}. ",
      d.of(kThings),
      d.of(kAdjectives),
      d.of(kNouns),
      d.of(kStems),
      d.between(1, 99999),
      d.of(kNouns),
      d.below(2) == 0 ? "true" : "false"}
      .text;
}

TextSource source_of_category(const std::string& category, Draws& d) {
  if (category == "code") return TextSource::code;
  if (category == "math") return TextSource::math;
  static constexpr TextSource kMixed[] = {TextSource::prose, TextSource::extraction, TextSource::code, TextSource::math,
                                          TextSource::prose};
  return kMixed[d.below(5)];
}

// Words one at a time until nothing more fits below `most`.
void fill_with_words(std::string& text, uint32_t most, Draws& d, const CountTokens& count) {
  for (int i = 0; i < kMostTries; ++i) {
    const std::string longer = text + std::string(d.below(2) == 0 ? d.of(kNouns) : d.of(kVerbs)) + " ";
    if (count(longer) > most) return;
    text = longer;
  }
}

// A task and material of its source, between the two numbers of tokens and as near to `target` as words allow.
std::string grown_text(const std::string& task, TextSource source, uint32_t target, TokenRange allowed, Draws& d,
                       const CountTokens& count) {
  // In a small bucket there is no room for a task, and the beginnings of tasks are alike: noise is not.
  std::string text = count(task) > target ? next_piece(TextSource::adversarial, d) : task;
  uint32_t tokens = count(text);
  // A piece counts about as much alone as behind others; the exact number is taken now and then.
  for (int stale = 0; tokens < target; ++stale) {
    const std::string piece = next_piece(source, d);
    const uint32_t more = count(piece);
    if (tokens + more > target) break;
    text += piece;
    tokens = stale % 16 == 15 ? count(text) : tokens + more;
  }
  tokens = count(text);
  if (tokens < target) fill_with_words(text, target, d, count);
  // What counts more in its place than alone is cut.
  while (count(text) > allowed.second && text.size() > 1)
    text.resize(text.size() - std::max<size_t>(1, text.size() / 50));
  return text;
}

TokenRange long_bucket(const SpecEvalContract& c, uint32_t tokens, double scale) {
  const auto low = static_cast<uint32_t>(std::ceil(tokens * (1 - c.long_tolerance)));
  return scaled({low, tokens}, scale, kLeastPrompt);
}

struct Shape {
  std::string category;
  TextSource source = TextSource::prose;
  bool is_long = false, exact = false;
  TokenRange prompt, output;
};

// The categories of the contract, each prompt bucket and each output bucket equally often among the short ones.
std::vector<Shape> shapes_of(const SpecEvalContract& c, double scale, Draws& d) {
  std::vector<Shape> shapes;
  for (const auto& [category, n] : c.short_requests)
    for (uint32_t i = 0; i < n; ++i) {
      const size_t k = shapes.size();
      Shape s{category, source_of_category(category, d), false, category == "exact", {}, {}};
      s.prompt = scaled(c.prompt_buckets[k % c.prompt_buckets.size()], scale, kLeastPrompt);
      s.output =
          scaled(c.output_buckets[(k + k / c.prompt_buckets.size()) % c.output_buckets.size()], scale, kLeastOutput);
      shapes.push_back(s);
    }
  size_t source = 0;
  for (const auto& [tokens, n] : c.long_requests)
    for (uint32_t i = 0; i < n; ++i) {
      const std::string& name = c.long_sources[source++ % c.long_sources.size()];
      shapes.push_back({name, source_named(name), true, false, long_bucket(c, tokens, scale),
                        scaled(c.long_output, scale, kLeastOutput)});
    }
  return shapes;
}

PackRequest request_of(const Shape& shape, const SpecEvalContract& c, Draws& d, const CountTokens& count,
                       std::set<std::string>& seen) {
  PackRequest r;
  r.category = shape.category;
  r.is_long = shape.is_long;
  r.prompt_bucket = shape.prompt;
  r.output_bucket = shape.output;
  for (int tried = 0; tried < kMostTries; ++tried) {
    const uint32_t target = shape.is_long ? shape.prompt.second : d.between(shape.prompt.first, shape.prompt.second);
    r.prompt = grown_text(shape.exact ? exact_task(d) : task_of(shape.source, d), shape.source, target, shape.prompt, d,
                          count);
    r.prompt_tokens = count(r.prompt);
    r.diversity = unique_8gram_share(r.prompt);
    const bool fits = r.prompt_tokens >= shape.prompt.first && r.prompt_tokens <= shape.prompt.second;
    if (!fits || r.diversity < c.unique_8grams || repeats_a_long_line(r.prompt)) continue;
    if (!seen.insert(r.prompt).second) continue;
    r.max_tokens = d.between(shape.output.first, shape.output.second);
    return r;
  }
  fail(Code::kUsage, "no {} prompt of {} to {} tokens can be made with this tokenizer: choose a larger --scale",
       shape.category, shape.prompt.first, shape.prompt.second);
}

// As many long requests of each length as the contract has; two lengths may fall together at a small scale.
std::vector<std::string> long_faults(const SpecEvalContract& c, const std::vector<PackRequest>& pack, double scale) {
  std::map<TokenRange, uint32_t> wanted, found;
  for (const auto& [tokens, n] : c.long_requests) wanted[long_bucket(c, tokens, scale)] += n;
  for (const PackRequest& r : pack)
    if (r.is_long) ++found[r.prompt_bucket];
  if (wanted == found) return {};
  return {"the long prompts are not of the lengths of the contract"};
}

}  // namespace

TokenRange scaled(TokenRange range, double scale, uint32_t least) {
  const auto part = [&](uint32_t n) { return std::max(least, static_cast<uint32_t>(std::floor(n * scale))); };
  // Buckets stay apart as long as their sizes do; a range of one size stays wide enough to be met.
  const uint32_t low = part(range.first);
  return {low, std::max(low + 4, part(range.second))};
}

std::vector<PackRequest> generate_pack(const SpecEvalContract& contract, uint64_t seed, const std::string& pack,
                                       double scale, const CountTokens& count) {
  Draws d(seed, "pack " + pack);
  std::vector<PackRequest> requests;
  std::set<std::string> seen;
  for (const Shape& shape : shapes_of(contract, scale, d))
    requests.push_back(request_of(shape, contract, d, count, seen));
  for (size_t i = requests.size(); i > 1; --i) std::swap(requests[i - 1], requests[d.below(static_cast<uint32_t>(i))]);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].id = fmt::format("{}-{:02}", pack, i);
  return requests;
}

std::vector<std::string> pack_faults(const SpecEvalContract& contract, const std::vector<PackRequest>& pack,
                                     double scale) {
  std::vector<std::string> faults = long_faults(contract, pack, scale);
  if (pack.size() != contract.requests())
    faults.push_back(fmt::format("{} requests instead of {}", pack.size(), contract.requests()));
  std::map<std::string, uint32_t> categories;
  std::map<TokenRange, uint32_t> prompts, outputs;
  std::set<std::string> seen;
  for (const PackRequest& r : pack) {
    if (!r.is_long) ++categories[r.category], ++prompts[r.prompt_bucket], ++outputs[r.output_bucket];
    if (r.prompt_tokens < r.prompt_bucket.first || r.prompt_tokens > r.prompt_bucket.second)
      faults.push_back(fmt::format("{}: {} prompt tokens", r.id, r.prompt_tokens));
    if (r.max_tokens < r.output_bucket.first || r.max_tokens > r.output_bucket.second)
      faults.push_back(fmt::format("{}: answers of {} tokens", r.id, r.max_tokens));
    if (unique_8gram_share(r.prompt) < contract.unique_8grams)
      faults.push_back(fmt::format("{}: it repeats itself", r.id));
    if (repeats_a_long_line(r.prompt)) faults.push_back(fmt::format("{}: a long line occurs twice", r.id));
    if (!seen.insert(r.prompt).second) faults.push_back(fmt::format("{}: a prompt occurs twice", r.id));
  }
  for (const auto& [category, n] : contract.short_requests)
    if (categories[category] != n)
      faults.push_back(fmt::format("{} requests of '{}' instead of {}", categories[category], category, n));
  const size_t each = (contract.requests() -
                       [&] {
                         size_t n = 0;
                         for (const auto& [tokens, count] : contract.long_requests) n += count;
                         return n;
                       }()) /
                      contract.prompt_buckets.size();
  for (const TokenRange& b : contract.prompt_buckets)
    if (scale == 1.0 && prompts[scaled(b, scale, kLeastPrompt)] != each)
      faults.push_back(fmt::format("a prompt bucket without {} requests", each));
  for (const TokenRange& b : contract.output_buckets)
    if (scale == 1.0 && outputs[scaled(b, scale, kLeastOutput)] != each)
      faults.push_back(fmt::format("an output bucket without {} requests", each));
  return faults;
}

std::string pack_sha256(const std::vector<PackRequest>& pack) {
  Sha256 hash;
  for (const PackRequest& r : pack) {
    const std::string head = fmt::format("{} {} {}\n", r.id, r.max_tokens, r.prompt.size());
    hash.update(head.data(), head.size());
    hash.update(r.prompt.data(), r.prompt.size());
  }
  return hash.hex();
}

}  // namespace stet
