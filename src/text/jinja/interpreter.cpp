#include "text/jinja/interpreter.h"

#include <algorithm>

#include "text/jinja/parser.h"

namespace stet::jinja {

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [n, v] : scope->names) {
      if (n == name) return &v;
    }
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [n, v] : names) {
    if (n == name) {
      v = std::move(value);
      return;
    }
  }
  names.emplace_back(name, std::move(value));
}

// Counts how deep the evaluation is.
class Interpreter::Nesting {
 public:
  explicit Nesting(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter_.depth_ > interpreter_.limits_.eval_depth) {
      --interpreter_.depth_;
      interpreter_.error(Code::kInput, "the template nests too deep");
    }
  }
  ~Nesting() { --interpreter_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Interpreter& interpreter_;
};

Interpreter::~Interpreter() {
  for (const auto& ns : namespaces_) ns->fields.clear();
}

Value Interpreter::make_namespace() {
  charge(256);
  namespaces_.push_back(std::make_shared<Namespace>());
  namespaces_.back()->writable = true;
  return Value::object(namespaces_.back());
}

Text Interpreter::run(const Body& body, const std::vector<std::pair<std::string, Value>>& variables) {
  auto context = std::make_shared<Scope>();
  work_left_ = limits_.work;
  for (const auto& [name, value] : variables) {
    work_left_ += value.weight() * limits_.work_per_input_byte;
    context->set(name, value);
  }
  auto scope = std::make_shared<Scope>();
  scope->parent = context;
  Text out;
  output_ = &out;
  try {
    execute(body, scope);
  } catch (const ValueError& e) {
    error(e.code(), "{}", e.what());
  }
  return out;
}

void Interpreter::emit(const Value& value) {
  charge(value.weight());
  print(value, *output_);
}

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePtr& scope) {
  for (const StmtPtr& stmt : body) {
    if (const Flow flow = execute(*stmt, scope); flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt, const ScopePtr& scope) {
  const Nesting nesting(*this);
  line_ = stmt.line;
  charge(16);
  switch (stmt.kind) {
    case StmtKind::kData:
      charge(stmt.text.size());
      output_->append(stmt.text, kTemplateSource);
      return Flow::kNormal;
    case StmtKind::kPrint:
      emit(evaluate(*stmt.exprs[0], scope));
      return Flow::kNormal;
    case StmtKind::kIf:
      return run_if(stmt, scope);
    case StmtKind::kFor:
      return run_for(stmt, scope);
    case StmtKind::kSet:
      run_set(stmt, scope, evaluate(*stmt.exprs[0], scope));
      return Flow::kNormal;
    case StmtKind::kSetBlock:
      run_set(stmt, scope, capture(stmt.bodies[0], scope, stmt.exprs[0].get()));
      return Flow::kNormal;
    case StmtKind::kMacro:
      run_macro(stmt, scope);
      return Flow::kNormal;
    case StmtKind::kScope:
      return run_scope(stmt, scope);
    case StmtKind::kFilterBlock:
      emit(capture(stmt.bodies[0], scope, stmt.exprs[0].get()));
      return Flow::kNormal;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  error(Code::kInternal, "a statement of an unknown kind");
}

Interpreter::Flow Interpreter::run_if(const Stmt& stmt, const ScopePtr& scope) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (evaluate(*stmt.exprs[i], scope).truthy()) return execute(stmt.bodies[i], scope);
  }
  return stmt.bodies.size() > stmt.exprs.size() ? execute(stmt.bodies.back(), scope) : Flow::kNormal;
}

std::vector<Value> Interpreter::loop_items(const Stmt& stmt, const ScopePtr& scope) {
  std::vector<Value> items = iterate(*this, evaluate(*stmt.exprs[0], scope));
  if (stmt.exprs[1] == nullptr) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    charge(sizeof(Scope));
    auto inner = std::make_shared<Scope>();
    inner->parent = scope;
    set_targets(stmt.names, item, inner);
    if (evaluate(*stmt.exprs[1], inner).truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

Value Interpreter::make_loop(const std::vector<Value>& items, size_t i) {
  const auto n = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(i);
  auto loop = std::make_shared<Namespace>();
  const auto integer = [&](const char* name, int64_t v) { loop->fields.emplace_back(name, Value::integer(v)); };
  integer("index", at + 1);
  integer("index0", at);
  integer("revindex", n - at);
  integer("revindex0", n - at - 1);
  integer("length", n);
  loop->fields.emplace_back("first", Value::boolean(at == 0));
  loop->fields.emplace_back("last", Value::boolean(at + 1 == n));
  loop->fields.emplace_back("previtem", at > 0 ? items[i - 1] : Value::undefined("loop.previtem"));
  loop->fields.emplace_back("nextitem", at + 1 < n ? items[i + 1] : Value::undefined("loop.nextitem"));
  for (const auto& [name, value] : loop->fields) loop->depth = std::max(loop->depth, value.depth() + 1);
  if (loop->depth > kMaxValueDepth) error(Code::kInput, "the template nests values deeper than {}", kMaxValueDepth);
  const auto cycle = [i](Runtime& runtime, Arguments& arguments) {
    if (arguments.positional.empty()) runtime.error(Code::kInput, "loop.cycle without values");
    return arguments.positional[i % arguments.positional.size()];
  };
  loop->fields.emplace_back("cycle", Value::callable({"cycle", cycle, 1}));
  return Value::object(std::move(loop));
}

Interpreter::Flow Interpreter::run_for(const Stmt& stmt, const ScopePtr& scope) {
  const std::vector<Value> items = loop_items(stmt, scope);
  for (size_t i = 0; i < items.size(); ++i) {
    charge(512);
    auto inner = std::make_shared<Scope>();
    inner->parent = scope;
    inner->set("loop", make_loop(items, i));
    set_targets(stmt.names, items[i], inner);
    const Flow flow = execute(stmt.bodies[0], inner);
    inner->names.clear();
    if (flow == Flow::kBreak) break;
  }
  if (items.empty() && stmt.bodies.size() > 1) return execute(stmt.bodies[1], scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_scope(const Stmt& stmt, const ScopePtr& scope) {
  auto inner = std::make_shared<Scope>();
  inner->parent = scope;
  for (size_t i = 0; i < stmt.names.size(); ++i) inner->set(stmt.names[i], evaluate(*stmt.exprs[i], scope));
  const Flow flow = execute(stmt.bodies[0], inner);
  inner->names.clear();
  return flow;
}

void Interpreter::set_targets(const std::vector<std::string>& names, const Value& value, const ScopePtr& scope) {
  if (names.size() == 1) return scope->set(names[0], value);
  std::vector<Value> parts = iterate(*this, value);
  if (parts.size() != names.size()) {
    error(Code::kInput, "{} names cannot take a value of {} parts", names.size(), parts.size());
  }
  for (size_t i = 0; i < names.size(); ++i) scope->set(names[i], std::move(parts[i]));
}

void Interpreter::run_set(const Stmt& stmt, const ScopePtr& scope, const Value& value) {
  if (stmt.attribute.empty()) return set_targets(stmt.names, value, scope);
  const Value* target = scope->find(stmt.names[0]);
  Namespace* ns = target == nullptr ? nullptr : target->object();
  if (ns == nullptr || !ns->writable)
    error(Code::kInput, "'{}' is no namespace, so '{}.{}' cannot be set", stmt.names[0], stmt.names[0], stmt.attribute);
  charge(ns->fields.size());
  ns->set(stmt.attribute, value);
}

Value Interpreter::capture(const Body& body, const ScopePtr& scope, const Expr* filters) {
  Text out;
  Text* outer = std::exchange(output_, &out);
  auto inner = std::make_shared<Scope>();
  inner->parent = scope;
  try {
    execute(body, inner);
  } catch (...) {
    output_ = outer;
    throw;
  }
  output_ = outer;
  inner->names.clear();
  Value text = Value::string(std::move(out));
  if (filters == nullptr) return text;
  inner->set(kBlockText, std::move(text));
  return evaluate(*filters, inner);
}

void Interpreter::run_macro(const Stmt& stmt, const ScopePtr& scope) {
  const std::weak_ptr<Scope> defined_in = scope;
  const auto call = [this, &stmt, defined_in](Runtime&, Arguments& arguments) {
    return call_macro(stmt, defined_in.lock(), arguments);
  };
  scope->set(stmt.name, Value::callable({stmt.name, call, 1}));
}

Value Interpreter::call_macro(const Stmt& stmt, const ScopePtr& defined_in, Arguments& arguments) {
  if (defined_in == nullptr) error(Code::kInput, "the macro '{}' is called after the block that holds it", stmt.name);
  if (arguments.positional.size() > stmt.names.size()) {
    error(Code::kInput, "the macro '{}' takes {} arguments, not {}", stmt.name, stmt.names.size(),
          arguments.positional.size());
  }
  if (calls_ >= limits_.call_depth) error(Code::kInput, "macros call each other more than {} deep", limits_.call_depth);
  auto scope = std::make_shared<Scope>();
  scope->parent = defined_in;
  for (size_t i = 0; i < stmt.names.size(); ++i) {
    const std::string& name = stmt.names[i];
    const auto named =
        std::find_if(arguments.named.begin(), arguments.named.end(), [&](const auto& a) { return a.first == name; });
    if (i < arguments.positional.size()) {
      scope->set(name, arguments.positional[i]);
    } else if (named != arguments.named.end()) {
      scope->set(name, named->second);
      arguments.named.erase(named);
    } else {
      scope->set(name, stmt.exprs[i] ? evaluate(*stmt.exprs[i], scope) : Value::undefined(name));
    }
  }
  if (!arguments.named.empty()) {
    error(Code::kInput, "the macro '{}' does not take the argument '{}'", stmt.name, arguments.named[0].first);
  }
  const int line = line_;
  ++calls_;
  Value result = capture(stmt.bodies[0], scope, nullptr);
  --calls_;
  line_ = line;
  return result;
}

}  // namespace stet::jinja
