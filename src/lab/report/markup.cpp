#include "lab/report/markup.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {

std::string html_text(std::string_view text, bool keep_layout) {
  std::string out;
  for (const char c : visible_text(text, keep_layout)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string with_ellipsis(std::string_view text, size_t characters) {
  const std::string visible = visible_text(text);
  size_t seen = 0;
  for (size_t i = 0; i < visible.size(); ++i) {
    const bool begins_character = (static_cast<unsigned char>(visible[i]) & 0xc0) != 0x80;
    if (begins_character && seen == characters) {
      size_t cut = i;  // one character back, for the ellipsis
      do --cut;
      while (cut > 0 && (static_cast<unsigned char>(visible[cut]) & 0xc0) == 0x80);
      return visible.substr(0, cut) + "…";
    }
    seen += begins_character ? 1 : 0;
  }
  return visible;
}

HtmlTable::HtmlTable(std::string caption, std::vector<HtmlColumn> columns)
    : caption_(std::move(caption)), columns_(std::move(columns)) {}

void HtmlTable::row(const std::vector<std::string>& cells) {
  STET_CHECK(cells.size() == columns_.size());
  body_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string_view tag = i == 0 ? "th scope=\"row\"" : "td";
    body_ += fmt::format("<{}{}>{}</{}>", tag, columns_[i].number ? " class=\"n\"" : "", html_text(cells[i]),
                         i == 0 ? "th" : "td");
  }
  body_ += "</tr>\n";
  ++rows_;
}

std::string HtmlTable::html() const {
  std::string head;
  for (const HtmlColumn& column : columns_)
    head += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"n\"" : "", html_text(column.name));
  const std::string caption = html_text(caption_);
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\n<caption>{}</caption>\n"
      "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
      caption, caption, head, body_);
}

void HtmlTerms::add(std::string_view term, std::string_view what) {
  body_ += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(term), html_text(what));
}

std::string HtmlTerms::html() const { return "<dl>\n" + body_ + "</dl>\n"; }

std::string html_element(std::string_view tag, std::string_view text, std::string_view css_class) {
  const std::string attribute = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  return fmt::format("<{}{}>{}</{}>\n", tag, attribute, html_text(text), tag);
}

std::string html_list(const std::vector<std::string>& items, std::string_view css_class) {
  if (items.empty()) return "";
  std::string out = css_class.empty() ? "<ul>\n" : fmt::format("<ul class=\"{}\">\n", css_class);
  for (const std::string& item : items) out += html_element("li", item);
  return out + "</ul>\n";
}

std::string html_section(std::string_view id, std::string_view heading, std::string_view body) {
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", id,
                     html_text(heading), body);
}

std::string html_folded(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(summary), body);
}

}  // namespace stet
