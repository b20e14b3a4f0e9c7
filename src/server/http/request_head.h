// The head of a request: its first line and its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet::http {

struct RequestHead {
  struct Field {
    std::string name;  // lower case
    std::string value;
  };
  std::string method, target;
  unsigned version = 11;  // 10, 11
  std::vector<Field> fields;
  bool keep_alive = false;  // what version and Connection ask for
  bool chunked = false;
  std::optional<uint64_t> content_length;

  size_t count(std::string_view name) const;
  // The value of a field that is there once; of the first, else. Empty when there is none.
  std::string_view value(std::string_view name) const;
  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// Why a request is not served. status 0: it is.
struct Refusal {
  int status = 0;
  std::string message;
  std::string code;  // of the error object; empty: null
  explicit operator bool() const { return status != 0; }
};

// What is wrong with how a request is framed: fields that may stand once, transfer codings, lengths. Two readers that
// disagree here see two different requests.
Refusal check_framing(const RequestHead& head);

// What the server does not do: methods, expectations, bodies that are too long or of unknown length.
Refusal check_abilities(const RequestHead& head, uint64_t max_body_bytes);

}  // namespace stet::http
