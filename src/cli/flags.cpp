#include "cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "cli/terminal.h"

namespace stet {

struct Flags::App {
  explicit App(const std::string& summary) : parser(summary) {}
  CLI::App parser;
  std::string section = "Options";

  CLI::Option* value(std::string_view names, std::string_view meta, std::string_view help,
                     const std::function<void(const std::string&)>& take) {
    CLI::Option* option = parser.add_option_function<std::string>(std::string(names), take, std::string(help));
    return option->option_text(std::string(meta))->group(section);
  }
  // The long names of all flags.
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const CLI::Option* option : parser.get_options())
      for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
    return all;
  }
};

namespace {

std::string program(std::string_view verb) { return verb.empty() ? "stet" : fmt::format("stet {}", verb); }

// The long name of "-m,--model".
std::string long_name(std::string_view names) {
  const size_t at = names.rfind("--");
  return std::string(at == std::string_view::npos ? names : names.substr(at));
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Flags::Flags(std::string_view verb, std::string_view summary)
    : app_(std::make_unique<App>(std::string(summary))), verb_(verb) {
  app_->parser.name(program(verb));
  app_->parser.set_help_flag("-h,--help", "print this help")->group("Help");
  app_->parser.get_formatter()->column_width(34);
}
Flags::~Flags() = default;

void Flags::section(std::string_view title) { app_->section = title; }
void Flags::footer(std::string_view text) { app_->parser.footer("\n" + std::string(text)); }

void Flags::toggle(std::string_view names, bool* value, std::string_view help) {
  app_->parser
      .add_flag_callback(
          std::string(names), [value] { *value = true; }, std::string(help))
      ->group(app_->section);
}

void Flags::preset(std::string_view names, std::string* value, std::string preset, std::string_view help) {
  app_->parser
      .add_flag_callback(
          std::string(names), [value, preset = std::move(preset)] { *value = preset; }, std::string(help))
      ->group(app_->section);
}

void Flags::text(std::string_view names, std::string_view meta, std::string* value, std::string_view help) {
  app_->value(names, meta, help, [value](const std::string& given) { *value = given; });
}

void Flags::text(std::string_view names, std::string_view meta, std::optional<std::string>* value,
                 std::string_view help) {
  app_->value(names, meta, help, [value](const std::string& given) { *value = given; });
}

void Flags::texts(std::string_view names, std::string_view meta, std::vector<std::string>* values,
                  std::string_view help) {
  // One value each time, and none of it is taken for a list in brackets.
  CLI::Option* option =
      app_->parser.add_option(std::string(names), CLI::callback_t([values](const CLI::results_t& all) {
                                *values = all;
                                return true;
                              }),
                              std::string(help));
  option->type_size(1)->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  option->option_text(std::string(meta))->group(app_->section);
}

void Flags::choice(std::string_view names, std::string* value, std::vector<std::string> allowed,
                   std::string_view help) {
  const std::string meta = fmt::format("{}", fmt::join(allowed, "|"));
  app_->value(names, meta, help, [value, allowed, name = long_name(names)](const std::string& given) {
    if (std::find(allowed.begin(), allowed.end(), given) == allowed.end())
      fail(Code::kUsage, "{} is '{}': choose one of {}", name, given, fmt::join(allowed, ", "));
    *value = given;
  });
}

void Flags::count(std::string_view names, uint32_t* value, uint32_t low, uint32_t high, std::string_view help) {
  app_->value(names, "N", help, [=, name = long_name(names)](const std::string& given) {
    *value = static_cast<uint32_t>(parse_whole(name, given, low, high));
  });
}

void Flags::number(std::string_view names, float* value, std::string_view help) {
  app_->value(names, "X", help,
              [=, name = long_name(names)](const std::string& given) { *value = parse_number(name, given); });
}

void Flags::number(std::string_view names, std::optional<float>* value, std::string_view help) {
  app_->value(names, "X", help,
              [=, name = long_name(names)](const std::string& given) { *value = parse_number(name, given); });
}

void Flags::seed(std::string_view names, std::optional<uint64_t>* value, std::string_view help) {
  app_->value(names, "N", help, [=, name = long_name(names)](const std::string& given) {
    *value = parse_whole(name, given, 0, UINT64_MAX);
  });
}

void Flags::positional(std::string_view name, std::string* value, std::string_view help) {
  app_->value(name, "", help, [value](const std::string& given) { *value = given; })->group("Arguments");
}

bool Flags::parse(std::span<const std::string> arguments) {
  // CLI11 would take the next argument for the value.
  for (const std::string& name : app_->names())
    for (const std::string& argument : arguments)
      if (argument == name + "=") fail(Code::kUsage, "{} has no value; an empty one is written {} ''", argument, name);
  // CLI11 takes them last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app_->parser.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    write_out(help());
    return false;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> known = app_->names();
    const std::vector<std::string> unknown = app_->parser.remaining();
    const std::string word = unknown.empty() ? "" : unknown.front();
    if (!word.starts_with("-"))
      fail(Code::kUsage, "'{}' is one argument too many for {}; see {} --help", word, program(verb_), program(verb_));
    const std::string near = closest(word.substr(0, word.find('=')), known);
    if (!near.empty())
      fail(Code::kUsage, "{} has no flag {}; did you mean {}? ({} --help)", program(verb_), word, near, program(verb_));
    fail(Code::kUsage, "{} has no flag {}; it has {}", program(verb_), word, fmt::join(known, ", "));
  } catch (const CLI::ArgumentMismatch&) {
    fail_on_count(arguments);
  } catch (const CLI::ParseError& e) {
    fail(Code::kUsage, "{}; see {} --help", e.what(), program(verb_));
  }
  return true;
}

bool Flags::given(const std::string& name) const { return app_->parser.get_option(name)->count() > 0; }

// CLI11 says that a number of values is wrong, and not which way round.
void Flags::fail_on_count(std::span<const std::string> arguments) const {
  for (const CLI::Option* option : app_->parser.get_options()) {
    if (option->count() > 1 && option->get_expected_max() == 1)
      fail(Code::kUsage, "{} was given {} times: give it once", option->get_name(), option->count());
  }
  fail(Code::kUsage, "{} needs a value; see {} --help", arguments.empty() ? "" : arguments.back(), program(verb_));
}

std::string Flags::help() const {
  std::string text = app_->parser.help();
  for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

uint64_t parse_whole(std::string_view what, std::string_view text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    fail(Code::kUsage, "{} is '{}': choose a whole number from {} to {}", what, text, low, high);
  return value;
}

float parse_number(std::string_view what, std::string_view text) {
  float value = 0.0f;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    fail(Code::kUsage, "{} is '{}': give a decimal number such as 0.8", what, text);
  return value;
}

std::string closest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best_distance = distance, best = candidate;
  }
  return best;
}

}  // namespace stet
