// Template source to a tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"

namespace stet::jinja {

// Stands for the text of a block inside the filters that are applied to it. No template can spell it.
inline constexpr std::string_view kBlockText = "%block";

// Expressions and statements nest at most so deep.
inline constexpr int kMaxTreeDepth = 400;

// Throws Error(kInput) for a template that is malformed and Error(kUnsupported) for a tag or construct that this engine
// lacks; both name the line. Appends every piece of text that the template holds (data and string constants) to
// `literals`.
Body parse(std::string_view source, std::vector<std::string>& literals);

}  // namespace stet::jinja
