// A template of the language Jinja2, as chat templates use it, with the environment of Hugging Face transformers
// (trim_blocks, lstrip_blocks, loop controls, the tag `generation`, tojson, raise_exception, strftime_now).
//
// Supported: if, for (with filter and else), set (blocks and namespaces too), macro, with, filter, raw, break,
// continue; all operators; the filters, tests, functions and methods of the tables in filters*.cpp, tests.cpp,
// globals.cpp and methods.cpp. Everything else is refused by name with its line: tags when the template is read, the
// rest when reached. Lists and dictionaries cannot be changed, as in Jinja's sandbox.
//
// Templates come from files that nobody checked: depth, work and with it memory are limited (Limits).
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace stet::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

class Template {
 public:
  // Throws Error(kInput) or Error(kUnsupported), with the line, for a template that cannot be read.
  explicit Template(std::string_view source);

  // `now` is what strftime_now prints. The result keeps for each byte whether the template or a variable wrote it.
  // Throws Error(kInput) when the template raises an exception, does not fit the variables or exceeds a limit, and
  // Error(kUnsupported) for what this engine lacks.
  Text render(const Variables& variables, const std::tm& now, const Limits& limits = {}) const;

  // Every text that the template itself holds: data and string constants.
  const std::vector<std::string>& literals() const { return literals_; }

 private:
  std::vector<std::string> literals_;
  Body body_;
};

}  // namespace stet::jinja
