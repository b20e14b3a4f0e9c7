#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stet::jinja {
namespace {

void check_depth(int depth) {
  if (depth > kMaxValueDepth) {
    throw ValueError(Code::kInput, fmt::format("the template nests values deeper than {}", kMaxValueDepth));
  }
}

// Weights stop growing here, far above any limit on work.
uint64_t add_weight(uint64_t a, uint64_t b) { return std::min(a + b, uint64_t{1} << 60); }

template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
    const Value* other = b.find(item.first);
    return other != nullptr && equal(item.second, *other);
  });
}

}  // namespace

const Value* Dict::find(const Value& key) const {
  for (const auto& [k, v] : items) {
    if (equal(k, key)) return &v;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : items) {
    if (k.text() != nullptr && k.text()->bytes() == key) return &v;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  for (auto& [k, v] : items) {
    if (equal(k, key)) {
      v = std::move(value);
      return;
    }
  }
  items.emplace_back(std::move(key), std::move(value));
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [n, v] : fields) {
    if (n == name) return &v;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [n, v] : fields) {
    if (n == name) {
      v = std::move(value);
      return;
    }
  }
  fields.emplace_back(name, std::move(value));
}

Value Value::list(std::vector<Value> items, bool is_tuple) {
  Sequence s{std::move(items), is_tuple, 1, 1};
  for (const Value& v : s.items) {
    s.depth = std::max(s.depth, v.depth() + 1);
    s.weight = add_weight(s.weight, v.weight());
  }
  check_depth(s.depth);
  return Value(std::make_shared<const Sequence>(std::move(s)));
}

Value Value::dict(Dict d) {
  d.depth = 1;
  d.weight = 1;
  for (const auto& [k, v] : d.items) {
    d.depth = std::max({d.depth, k.depth() + 1, v.depth() + 1});
    d.weight = add_weight(d.weight, add_weight(k.weight(), v.weight()));
  }
  check_depth(d.depth);
  return Value(std::make_shared<const Dict>(std::move(d)));
}

int Value::depth() const {
  if (const Sequence* s = sequence()) return s->depth;
  if (const Dict* d = dict()) return d->depth;
  if (const Callable* c = callable()) return c->depth;
  if (const Namespace* n = object()) return n->depth;
  return 0;
}

uint64_t Value::weight() const {
  if (const Text* t = text()) return t->size() + 1;
  if (const Sequence* s = sequence()) return s->weight;
  if (const Dict* d = dict()) return d->weight;
  return 1;
}

std::optional<int64_t> Value::as_integer() const {
  if (const auto* b = std::get_if<bool>(&v_)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<int64_t>(&v_)) return *i;
  return std::nullopt;
}

std::optional<double> Value::as_number() const {
  if (const auto* d = std::get_if<double>(&v_)) return *d;
  if (const std::optional<int64_t> i = as_integer()) return static_cast<double>(*i);
  return std::nullopt;
}

bool Value::truthy() const {
  if (const std::optional<double> n = as_number()) return *n != 0;
  if (const Text* t = text()) return !t->empty();
  if (const Sequence* s = sequence()) return !s->items.empty();
  if (const Dict* d = dict()) return !d->items.empty();
  return object() != nullptr || callable() != nullptr;
}

std::string_view Value::kind() const {
  constexpr std::string_view kNames[] = {"undefined", "none", "boolean",    "integer",   "float",
                                         "string",    "list", "dictionary", "namespace", "function"};
  return kNames[v_.index()];
}

bool equal(const Value& a, const Value& b) {
  if (a.as_integer() && b.as_integer()) return *a.as_integer() == *b.as_integer();
  if (a.is_number() && b.is_number()) return *a.as_number() == *b.as_number();
  if (a.text() && b.text()) return a.text()->bytes() == b.text()->bytes();
  if (a.sequence() && b.sequence()) {
    return a.sequence()->is_tuple == b.sequence()->is_tuple && equal_items(a.sequence()->items, b.sequence()->items);
  }
  if (a.dict() && b.dict()) return equal_dicts(*a.dict(), *b.dict());
  if (a.object() || b.object()) return a.object() == b.object();
  if (a.callable() || b.callable()) return a.callable() == b.callable();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

std::optional<int> compare(const Value& a, const Value& b) {
  if (a.as_integer() && b.as_integer()) return order(*a.as_integer(), *b.as_integer());
  if (a.is_number() && b.is_number()) {
    const double x = *a.as_number(), y = *b.as_number();
    if (std::isnan(x) || std::isnan(y)) return std::nullopt;
    return order(x, y);
  }
  if (a.text() && b.text()) return order(a.text()->bytes(), b.text()->bytes());
  if (!a.sequence() || !b.sequence() || a.sequence()->is_tuple != b.sequence()->is_tuple) return std::nullopt;
  const std::vector<Value>&x = a.sequence()->items, &y = b.sequence()->items;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!equal(x[i], y[i])) return compare(x[i], y[i]);
  }
  return order(x.size(), y.size());
}

}  // namespace stet::jinja
