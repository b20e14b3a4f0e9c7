// The tables of filters.
#pragma once

#include <span>
#include <string_view>

#include "text/jinja/runtime.h"

namespace stet::jinja {

struct NamedFilter {
  std::string_view name;
  Value (*apply)(Runtime&, const Value&, const Arguments&);
};

std::span<const NamedFilter> value_filters();
std::span<const NamedFilter> list_filters();

}  // namespace stet::jinja
