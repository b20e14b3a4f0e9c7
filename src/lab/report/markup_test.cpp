#include "lab/report/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/report/look.h"
#include "lab/report/report_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

TEST(HtmlText, EscapesWhatMeansSomething) {
  EXPECT_EQ(html_text("<script>alert('&\"')</script>"), "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;");
}

TEST(HtmlText, MakesControlsVisible) {
  EXPECT_EQ(html_text("\x1b]52;c\x07"), "\\x1b]52;c\\x07");
  EXPECT_EQ(html_text("a\xe2\x80\xae b"), "a\\u202e b");
  EXPECT_EQ(html_text("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(html_text("a\nb\tc", true), "a\nb\tc");
  EXPECT_EQ(html_text("\xff<"), "\\xff&lt;");
}

TEST(WithEllipsis, CountsCharacters) {
  EXPECT_EQ(with_ellipsis("abcd", 4), "abcd");
  EXPECT_EQ(with_ellipsis("abcde", 4), "abc…");
  EXPECT_EQ(with_ellipsis("äöüßé", 4), "äöü…");
  EXPECT_EQ(with_ellipsis("", 4), "");
}

TEST(HtmlTable, EscapesCellsCaptionAndHead) {
  HtmlTable table("<c>", {{"<h>"}, {"n", true}});
  table.row({"<r>", "1&2"});
  const std::string html = table.html();
  for (const char* text : {"<caption>&lt;c&gt;", "<th scope=\"col\">&lt;h&gt;", "<th scope=\"row\">&lt;r&gt;</th>",
                           "<td class=\"n\">1&amp;2</td>"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THROW(table.row({"one"}), Error);
}

TEST(Html, PartsAreBalanced) {
  HtmlTerms terms;
  terms.add("a<", "b>");
  const std::string html = html_section(
      "h-x", "<x>", html_list({"<1>", "2"}, "bad") + terms.html() + html_folded("s&", html_element("p", "<", "c")));
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(html.find("<x>"), std::string::npos);
  EXPECT_EQ(html_list({}), "");
}

TEST(Unbalanced, CanFail) {
  EXPECT_NE(unbalanced("<p><b></p></b>"), "");
  EXPECT_NE(unbalanced("<p>"), "");
  EXPECT_NE(unbalanced("</p>"), "");
}

TEST(Look, MissesNothingBadly) {
  const Json json = parse_json(R"({"a":{"b":[1,2.5]},"s":"x","n":null,"t":true})", "test");
  EXPECT_EQ(look(json, "a", "b").size(), 2u);
  EXPECT_TRUE(look(json, "a", "c").is_null());
  EXPECT_TRUE(look(json, "s", "c", "d").is_null());
  EXPECT_EQ(numbers_of(look(json, "a", "b")), (std::vector<double>{1, 2.5}));
  EXPECT_FALSE(number_of(look(json, "s")));
  EXPECT_EQ(text_of(look(json, "n")), "");
  EXPECT_EQ(shown(look(json, "n")), "–");
  EXPECT_EQ(shown(look(json, "t")), "yes");
  EXPECT_EQ(shown(look(json, "a")), R"({"b":[1,2.5]})");
}

TEST(Look, FlattensToLeaves) {
  const Json json = parse_json(R"({"a":{"b":[1,2],"c":{}},"d":[{"e":null},{"e":"x"}]})", "test");
  const std::vector<std::pair<std::string, std::string>> want = {
      {"a.b", "[1,2]"}, {"a.c", "{}"}, {"d[0].e", "–"}, {"d[1].e", "x"}};
  EXPECT_EQ(flattened(json), want);
}

TEST(Look, ShowsFiguresWithTheirUnits) {
  EXPECT_EQ(shown_number(3.14159, 2), "3.14");
  EXPECT_EQ(shown_number(std::nullopt, 2), "–");
  EXPECT_EQ(shown_share(0.48797), "48.8 %");
  EXPECT_EQ(shown_seconds(0.2104), "210.4 ms");
  EXPECT_EQ(shown_seconds(12.345), "12.35 s");
}

}  // namespace
}  // namespace stet
