#include "lab/spec_eval/text_source.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "lab/spec_eval/words.h"

namespace stet {
namespace {

constexpr size_t kGram = 8, kLongLine = 40;

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string thing(Draws& d) {
  const std::string_view noun = d.of(kNouns);
  return d.below(3) == 0 ? fmt::format("the {}", noun) : DrawnText{"the {} {}", d.of(kAdjectives), noun}.text;
}

std::string clause(Draws& d) {
  std::string text = DrawnText{"{} {} {}", thing(d), d.of(kVerbs), thing(d)}.text;
  if (d.below(2) == 0) text += DrawnText{" {}", d.of(kPlaces)}.text;
  return text;
}

std::string sentence(Draws& d) {
  switch (d.below(4)) {
    case 0:
      return capital(clause(d)) + ". ";
    case 1:
      return capital(DrawnText{"{} {} {}. ", clause(d), d.of(kJoints), clause(d)}.text);
    case 2:
      return DrawnText{"{}, {} {} {}. ", capital(std::string(d.of(kPlaces))), clause(d), d.of(kJoints), clause(d)}.text;
    default:
      return DrawnText{"Of {} {}s, {} {} {}. ", d.between(3, 97), d.of(kNouns),
                       d.between(2, 60),        d.of(kVerbs),     thing(d)}
          .text;
  }
}

std::string name(Draws& d) { return DrawnText{"{}_{}", d.of(kStems), d.of(kThings)}.text; }

std::string function(Draws& d) {
  const std::string_view items = d.of(kThings), total = d.of(kNouns);
  const std::string start = DrawnText{"def {}_{}({}, {}={}):\n    {} = {}\n",
                                      name(d),
                                      d.between(10, 999),
                                      items,
                                      d.of(kAdjectives),
                                      d.between(1, 500),
                                      total,
                                      d.between(0, 9)}
                                .text;
  switch (d.below(3)) {
    case 0:
      return start +
             DrawnText{
                 "    for i, {} in enumerate({}):\n        if {} % {} > {}:\n            {} += {} * {} - i\n   "
                 " return {} + {}\n\n",
                 d.of(kStems),
                 items,
                 total,
                 d.between(3, 60),
                 d.between(1, 40),
                 total,
                 d.between(2, 30),
                 d.between(2, 80),
                 total,
                 d.between(1, 900)}
                 .text;
    case 1:
      return start + DrawnText{"    while {} < {}:\n        {} = {} * {} + len({}) // {}\n    return {}({}, {})\n\n",
                               total,
                               d.between(100, 9999),
                               total,
                               total,
                               d.between(2, 9),
                               items,
                               d.between(2, 50),
                               name(d),
                               total,
                               d.between(1, 99)}
                         .text;
    default:
      return start +
             DrawnText{"    {} = [{}(x) for x in {} if x != {}]\n    {} += sum({}) << {}\n    return max({}, {})\n\n",
                       d.of(kThings),
                       name(d),
                       items,
                       d.between(2, 700),
                       total,
                       items,
                       d.between(1, 7),
                       total,
                       d.between(1, 99999)}
                 .text;
  }
}

std::string sum(Draws& d) {
  const uint32_t a = d.between(11, 9999), b = d.between(11, 9999), c = d.between(2, 99);
  switch (d.below(3)) {
    case 0:
      return DrawnText{"Let {} be {} and let {} {} be {}; multiply the {} by {}. ",
                       d.of(kThings),
                       a,
                       d.of(kAdjectives),
                       d.of(kNouns),
                       b,
                       d.of(kThings),
                       c}
          .text;
    case 1:
      return DrawnText{"A {} {} holds {} {}; {} of them go {} and {} share the {}. ",
                       d.of(kAdjectives),
                       d.of(kNouns),
                       a,
                       d.of(kThings),
                       b % a,
                       d.of(kPlaces),
                       c,
                       d.of(kThings)}
          .text;
    default:
      return DrawnText{"Add {} to {}, divide by {}, and compare {} with {} {} {}. ",
                       a,
                       b,
                       c,
                       d.of(kThings),
                       d.between(3, 400),
                       d.of(kAdjectives),
                       d.of(kNouns)}
          .text;
  }
}

std::string record(Draws& d) {
  return DrawnText{"#{}: {} {}; {} {}, {} units; {}; checked by the {} {}.\n",
                   d.between(1000, 999999),
                   d.of(kAdjectives),
                   d.of(kNouns),
                   d.of(kVerbs),
                   d.of(kPlaces),
                   d.between(1, 9999),
                   d.of(kThings),
                   d.of(kAdjectives),
                   d.of(kNouns)}
      .text;
}

// No word has to do with the one before it.
std::string noise(Draws& d) {
  std::string line;
  const uint32_t words = d.between(6, 14);
  for (uint32_t i = 0; i < words; ++i) {
    switch (d.below(4)) {
      case 0:
        line += DrawnText{"{:x} ", d.word()}.text;
        break;
      case 1:
        line += DrawnText{"{} ", d.of(kVerbs)}.text;
        break;
      case 2:
        line += DrawnText{"{}-{} ", d.of(kStems), d.below(10000)}.text;
        break;
      default:
        line += DrawnText{"{} ", d.of(kThings)}.text;
        break;
    }
  }
  line.back() = '\n';
  return line;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" \n\t", at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(" \n\t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

}  // namespace

std::string next_piece(TextSource source, Draws& draws) {
  switch (source) {
    case TextSource::prose:
      return sentence(draws);
    case TextSource::code:
      return function(draws);
    case TextSource::math:
      return sum(draws);
    case TextSource::extraction:
      return record(draws);
    case TextSource::adversarial:
      break;
  }
  return noise(draws);
}

std::string task_of(TextSource source, Draws& d) {
  switch (source) {
    case TextSource::prose:
      return DrawnText{"Write a {} report that explains what happened to the {} and why it matters to the {}. ",
                       d.of(kAdjectives), d.of(kNouns), d.of(kNouns)}
          .text;
    case TextSource::code:
      return DrawnText{"Write a Python function {} that sorts {} by their {} and skips what is {}; explain each step. ",
                       name(d), d.of(kThings), d.of(kThings), d.of(kAdjectives)}
          .text;
    case TextSource::math:
      return DrawnText{"Work out the following one step at a time, and state the result for the {}. ", d.of(kNouns)}
          .text;
    case TextSource::extraction:
      return DrawnText{"List what these notes say about the {} and about the {}, in your own words. ", d.of(kNouns),
                       d.of(kNouns)}
          .text;
    case TextSource::adversarial:
      break;
  }
  return DrawnText{"Describe, without quoting it, what kind of text this is and what a {} could do with it. ",
                   d.of(kNouns)}
      .text;
}

double unique_8gram_share(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < kGram) return 1.0;
  std::map<std::string, uint32_t> count;
  for (size_t i = 0; i + kGram <= words.size(); ++i) {
    std::string gram;
    for (size_t k = 0; k < kGram; ++k) gram.append(words[i + k]).push_back(' ');
    ++count[gram];
  }
  size_t once = 0;
  for (const auto& [gram, n] : count) once += n == 1;
  return static_cast<double>(once) / static_cast<double>(words.size() - kGram + 1);
}

bool repeats_a_long_line(std::string_view text) {
  std::set<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() >= kLongLine && !seen.insert(line).second) return true;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return false;
}

}  // namespace stet
