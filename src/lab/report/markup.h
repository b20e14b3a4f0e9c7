// HTML from texts that nobody vouches for: everything is escaped, with control characters made visible.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stet {

// For elements and quoted attributes. Line breaks and tabs stay where keep_layout is set, else they become \n and \t.
std::string html_text(std::string_view text, bool keep_layout = false);

// At most `characters` of a text, the last one an ellipsis where it was longer.
std::string with_ellipsis(std::string_view text, size_t characters);

struct HtmlColumn {
  std::string name;
  bool number = false;  // aligned to the right
};

// The first cell of a row names it. Cells are texts, not markup.
class HtmlTable {
 public:
  HtmlTable(std::string caption, std::vector<HtmlColumn> columns);
  void row(const std::vector<std::string>& cells);
  size_t rows() const { return rows_; }
  // In a box of its own that scrolls sideways where the page is narrow.
  std::string html() const;

 private:
  std::string caption_, body_;
  std::vector<HtmlColumn> columns_;
  size_t rows_ = 0;
};

// Terms and what they are; for few and short ones.
class HtmlTerms {
 public:
  void add(std::string_view term, std::string_view what);
  bool empty() const { return body_.empty(); }
  std::string html() const;

 private:
  std::string body_;
};

// <p>, <li> ... around a text.
std::string html_element(std::string_view tag, std::string_view text, std::string_view css_class = {});
// Reasons as a list; nothing for no reasons.
std::string html_list(const std::vector<std::string>& items, std::string_view css_class = {});
// A heading with what belongs to it; the id is its place in the page.
std::string html_section(std::string_view id, std::string_view heading, std::string_view body);
// What is folded away until somebody asks.
std::string html_folded(std::string_view summary, std::string_view body);

}  // namespace stet
