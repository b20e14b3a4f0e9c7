#include "server/api/json_body.h"

#include <nlohmann/json.hpp>

#include "server/api/api_error.h"
#include "text/unicode.h"

namespace stet {
namespace {

using Json = nlohmann::json;

// Builds the value and stops at the first breach of a limit.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back()->contains(name))
      return stop(fmt::format("the body names '{}' twice in one object", shortened(name)));
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& stopped() const { return stopped_; }
  size_t position() const { return position_; }

 private:
  bool stop(std::string why) {
    stopped_ = std::move(why);
    return false;
  }

  Json* place(Json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[std::move(key_)] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool put(Json&& value) {
    if (++values_ > limits_.values) return stop(fmt::format("the body has more than {} JSON values", limits_.values));
    place(std::move(value));
    return true;
  }

  bool open(Json&& value) {
    if (open_.size() >= limits_.depth)
      return stop(fmt::format("the body is nested deeper than {} levels", limits_.depth));
    if (++values_ > limits_.values) return stop(fmt::format("the body has more than {} JSON values", limits_.values));
    // Stays where it is while it is open: its parent gets no other child before.
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_, stopped_;
  size_t values_ = 0, position_ = 0;
};

}  // namespace

Json parse_json_body(std::string_view body, const JsonLimits& limits) {
  Builder builder(limits);
  if (Json::sax_parse(body.begin(), body.end(), &builder)) return builder.take();
  if (!builder.stopped().empty()) refuse("", "{}", builder.stopped());
  if (!is_valid_utf8(body)) refuse("", "the body is not valid UTF-8, which JSON must be");
  refuse("", "the body is not valid JSON: what begins at byte {} of {} cannot be read", builder.position(),
         body.size());
}

}  // namespace stet
