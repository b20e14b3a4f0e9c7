// Request bodies as JSON, within limits.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace stet {

struct JsonLimits {
  size_t depth = 64;          // arrays and objects inside one another
  size_t values = 2'000'000;  // of all kinds: bounds the memory that a body can take, which is up to 30 times its bytes
};

// Parses a body. Throws ApiError(400) for what is no JSON, is no valid UTF-8, is deeper or has more values than
// allowed, or names a key of an object twice (readers differ in which one counts).
nlohmann::json parse_json_body(std::string_view body, const JsonLimits& limits = {});

}  // namespace stet
