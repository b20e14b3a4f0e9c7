#include "text/jinja/template.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "text/golden_for_test.h"
#include "text/jinja/values_for_test.h"

namespace stet::jinja {
namespace {

using ::testing::HasSubstr;

Text render(const std::string& source, const Variables& variables = {}) {
  return Template(source).render(variables, test::golden_time());
}

// Renders and expects an error, whose message is returned.
std::string error_of(const std::string& source, Code code, const Variables& variables = {}) {
  try {
    render(source, variables);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << source << ": " << e.what();
    return e.what();
  }
  ADD_FAILURE() << source << " was not refused";
  return "";
}

// `text` with what the variables wrote in brackets.
std::string marked(const Text& text) {
  std::string out;
  for (const Span& span : text.spans()) out += span.template_text ? span.text : "[" + span.text + "]";
  return out;
}

Variables from_user(const std::string& text) { return {{"m", Value::string(text, kUntrustedSource)}}; }

TEST(Template, EqualsJinja2OnEveryConstruct) {
  std::ifstream file("tests/golden/text/jinja.json");
  ASSERT_TRUE(file.good());
  const auto golden = nlohmann::ordered_json::parse(file);
  Variables variables;
  for (const auto& [name, value] : golden.at("variables").items()) variables.emplace_back(name, test::to_value(value));
  size_t equal = 0, refused = 0;
  for (const auto& sample : golden.at("cases")) {
    const std::string source = sample.at("template");
    try {
      const Text got = render(source, variables);
      EXPECT_TRUE(sample.contains("text"))
          << source << " must fail: " << sample.value("error", "") << "; got " << got.bytes();
      if (sample.contains("text")) {
        EXPECT_EQ(got.bytes(), sample.at("text").get<std::string>()) << source;
        ++equal;
      }
    } catch (const Error& e) {
      EXPECT_TRUE(sample.contains("error")) << source << ": " << e.what();
      EXPECT_THAT(e.what(), HasSubstr("chat template line ")) << source;
      ++refused;
    }
  }
  EXPECT_GE(equal, 400u);
  EXPECT_GE(refused, 40u);
}

TEST(Template, KeepsWhoWroteEachByte) {
  const Variables v = from_user("ab <X>");
  EXPECT_EQ(marked(render("<{{ m }}>", v)), "<[ab <X>]>");
  EXPECT_EQ(marked(render("{{ '<' + m + '>' }}", v)), "<[ab <X>]>");
  EXPECT_EQ(marked(render("{{ m ~ 1 ~ m }}", v)), "[ab <X>]1[ab <X>]");
  EXPECT_EQ(marked(render("{{ m | trim }}{{ m.upper() }}", v)), "[ab <X>AB <X>]");
  EXPECT_EQ(marked(render("{{ m | replace(' ', '-') }}", v)), "[ab]-[<X>]");
  EXPECT_EQ(marked(render("{{ 'a-b' | replace('-', m) }}", v)), "a[ab <X>]b");
  EXPECT_EQ(marked(render("{{ m.split(' ') | join(',') }}", v)), "[ab],[<X>]");
  EXPECT_EQ(marked(render("{{ m[1:4] }}{{ m[0] }}{{ m[::-1] }}", v)), "[b <a>X< ba]");
  EXPECT_EQ(marked(render("{{ [m] }}", v)), "['[ab <X>]']");
  EXPECT_EQ(marked(render("{{ {'k': m} | tojson }}", v)), "{\"k\": \"[ab <X>]\"}");
  EXPECT_EQ(marked(render("{% set x %}<{{ m }}>{% endset %}{{ x }}", v)), "<[ab <X>]>");
  EXPECT_EQ(marked(render("{% macro f(a) %}({{ a }}){% endmacro %}{{ f(m) }}", v)), "([ab <X>])");
  EXPECT_EQ(
      marked(render("{% set n = namespace(s='') %}{% for c in m %}{% set n.s = n.s + c %}{% endfor %}{{ n.s }}", v)),
      "[ab <X>]");
  EXPECT_EQ(marked(render("{{ (m * 2) | indent(1, true) }}{{ m | e }}", v)), " [ab <X>ab <X>ab ]&lt;[X]&gt;");
  EXPECT_EQ(marked(render("{{ '\\n' | tojson }}{{ m | tojson }}", from_user("\n\""))), "\"\\n\"\"[\\n\\\"]\"");
  EXPECT_EQ(marked(render("{% for k in d %}{{ k }}{% endfor %}", {{"d", test::to_value(nlohmann::json{{"key", 1}})}})),
            "[key]");
}

TEST(Template, ListsItsLiterals) {
  const Template t("a<x>{{ 'b' 'c' }}{% if y == \"d\\n\" %}e{% endif %}{# no #}{{ m }}");
  EXPECT_THAT(t.literals(), ::testing::ElementsAre("a<x>", "bc", "d\n", "e"));
}

TEST(Template, RefusesUnsupportedConstructsByNameAndLine) {
  EXPECT_THAT(error_of("\n\n{% include 'x' %}", Code::kUnsupported), HasSubstr("line 3: the tag 'include'"));
  EXPECT_THAT(error_of("{% for x in y recursive %}{% endfor %}", Code::kUnsupported), HasSubstr("recursive"));
  EXPECT_THAT(error_of("\n{{ 1 | urlencode }}", Code::kUnsupported), HasSubstr("line 2: the filter 'urlencode'"));
  EXPECT_THAT(error_of("{{ 1 is filter }}", Code::kUnsupported), HasSubstr("the test 'filter'"));
  EXPECT_THAT(error_of("{{ [1].append(2) }}", Code::kUnsupported), HasSubstr("'append'"));
  EXPECT_THAT(error_of("{{ {}.update({}) }}", Code::kUnsupported), HasSubstr("'update'"));
  EXPECT_THAT(error_of("{{ 'a'.format(1) }}", Code::kUnsupported), HasSubstr("'format'"));
  EXPECT_THAT(error_of("{{ '%s' % 1 }}", Code::kUnsupported), HasSubstr("%"));
  EXPECT_THAT(error_of("{{ f(*x) }}", Code::kUnsupported), HasSubstr("*"));
  EXPECT_THAT(error_of("{{ cycler('a') }}", Code::kUnsupported), HasSubstr("'cycler'"));
  EXPECT_THAT(error_of("{{ range }}", Code::kUnsupported), HasSubstr("function"));
  EXPECT_THAT(error_of("{{ strftime_now('%c') }}", Code::kUnsupported), HasSubstr("strftime_now"));
  EXPECT_THAT(error_of("{{ 9999999999999999999 }}", Code::kUnsupported), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("{{ 9223372036854775807 + 1 }}", Code::kUnsupported), HasSubstr("64 bits"));
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Template, DepthIsLimited) {
  for (const std::string& source :
       {"{{ " + repeated("(", 20000) + "1" + repeated(")", 20000) + " }}", "{{ " + repeated("not ", 20000) + "1 }}",
        "{{ " + repeated("-", 20000) + "1 }}", "{{ " + repeated("[", 20000) + " }}",
        "{{ 1" + repeated(" + 1", 20000) + " }}", "{{ x" + repeated(".x", 20000) + " }}",
        "{{ x" + repeated(" | e", 20000) + " }}", repeated("{% if 1 %}", 20000),
        "{{ " + repeated("1 if 1 else ", 20000) + "1 }}", "{{ x" + repeated("[x", 20000) + " }}",
        std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
        std::string("{% set n = namespace(x=[]) %}{% for i in range(10000) %}{% set n.x = [n.x] %}{% endfor %}"),
        std::string("{% set n = namespace(x={}) %}{% for i in range(10000) %}{% set n.x = {'a': n.x} %}{% endfor %}"),
        std::string("{% set n = namespace(x=1) %}{% for i in range(9000) %}{% for j in [n.x, 1] %}{% set n.x = loop "
                    "%}{% endfor %}{% endfor %}")}) {
    error_of(source, Code::kInput);
  }
}

TEST(Template, WorkIsLimited) {
  const std::string thousand = "{% for a in range(1000) %}";
  for (const std::string& source :
       {repeated(thousand, 5) + repeated("{% endfor %}", 5),
        std::string("{% set n = namespace(s='ab') %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}"),
        std::string(
            "{% set n = namespace(s=[1]) %}{% for i in range(100) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}"),
        std::string("{% set n = namespace(s=[1]) %}{% for i in range(100) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ "
                    "n.s == n.s }}"),
        std::string("{{ 'a' * 100000000000 }}"), std::string("{{ [1] * 10000000000000000 }}"),
        std::string("{{ ('a' * 20000) | replace('', 'b' * 20000) }}"), std::string("{{ range(1000000) }}"),
        std::string("{{ [1, 2] | tojson(indent=9999999999) }}"),
        std::string("{{ (range(90000) | list) | join('x' * 90000) }}"), std::string("{{ 'a' | indent(99999999999) }}"),
        std::string("{% set x = range(90000) | list %}{% for i in x %}{{ x | unique | list }}{% endfor %}")}) {
    try {
      render(source);
      ADD_FAILURE() << source << " was not refused";
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == Code::kInput || e.code() == Code::kUnsupported) << e.what();
    }
  }
}

TEST(Template, LongMessagesAreNoWork) {
  const std::string text(8 << 20, 'x');
  const Text out = render("{{ (m | trim).split('</think>')[-1].strip() + '!' }}", from_user(text));
  EXPECT_EQ(out.size(), text.size() + 1);
}

TEST(Template, NamespacesThatHoldEachOtherAreFreed) {  // the leak checker sees it
  EXPECT_EQ(
      render("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% set a.me = [a] %}x").bytes(),
      "x");
}

}  // namespace
}  // namespace stet::jinja
