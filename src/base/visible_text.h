// Text from files, models and users, made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace stet {

// Replaces everything that a terminal could obey, or that would show text in another order than it is stored, by a
// visible escape: C0 and C1 controls and DEL as \xHH or \u00HH (newline and tab stay when keep_layout is set, else they
// become \n and \t), bidirectional controls (U+200E, U+200F, U+061C, U+202A..202E, U+2066..2069), line and paragraph
// separators (U+2028, U+2029) and the byte order mark as \uHHHH, and each byte of invalid UTF-8 as \xHH. All else, the
// backslash included, stays as it is: the result is for eyes, not for parsing.
std::string visible_text(std::string_view text, bool keep_layout = false);

// A key or name for a message: visible, and of bounded length.
std::string shown_name(std::string_view text);

}  // namespace stet
