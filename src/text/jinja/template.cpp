#include "text/jinja/template.h"

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace stet::jinja {

Template::Template(std::string_view source) : body_(parse(source, literals_)) {}

Text Template::render(const Variables& variables, const std::tm& now, const Limits& limits) const {
  return Interpreter(limits, now).run(body_, variables);
}

}  // namespace stet::jinja
