// Runs a parsed template.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace stet::jinja {

// Names of one block. Assignments go to the innermost scope, as in Jinja: what a loop sets is gone after the pass.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> names;

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter : public Runtime {
 public:
  Interpreter(const Limits& limits, const std::tm& now) : limits_(limits) { now_ = now; }
  ~Interpreter() override;
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Throws Error(kInput) for what the template refuses, for values that do not fit and for exceeded limits, and
  // Error(kUnsupported) for what this engine lacks.
  Text run(const Body& body, const std::vector<std::pair<std::string, Value>>& variables);

  Value make_namespace() override;

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class Nesting;

  Flow execute(const Body& body, const ScopePtr& scope);
  Flow execute(const Stmt& stmt, const ScopePtr& scope);
  Flow run_if(const Stmt& stmt, const ScopePtr& scope);
  Flow run_for(const Stmt& stmt, const ScopePtr& scope);
  Flow run_scope(const Stmt& stmt, const ScopePtr& scope);
  std::vector<Value> loop_items(const Stmt& stmt, const ScopePtr& scope);
  Value make_loop(const std::vector<Value>& items, size_t i);
  void set_targets(const std::vector<std::string>& names, const Value& value, const ScopePtr& scope);
  void run_set(const Stmt& stmt, const ScopePtr& scope, const Value& value);
  void run_macro(const Stmt& stmt, const ScopePtr& scope);
  Value call_macro(const Stmt& stmt, const ScopePtr& defined_in, Arguments& arguments);
  // Runs a body whose output becomes a value, through the filters of `filters`.
  Value capture(const Body& body, const ScopePtr& scope, const Expr* filters);
  void emit(const Value& value);

  Value evaluate(const Expr& expr, const ScopePtr& scope);
  Value evaluate_optional(const ExprPtr& expr, const ScopePtr& scope);
  Value evaluate_name(const Expr& expr, const ScopePtr& scope);
  Value evaluate_dict(const Expr& expr, const ScopePtr& scope);
  Value evaluate_call(const Expr& expr, const ScopePtr& scope);
  Value evaluate_compare(const Expr& expr, const ScopePtr& scope);
  Arguments evaluate_arguments(const Expr& expr, const ScopePtr& scope);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs, size_t first, const ScopePtr& scope);

  Limits limits_;
  int depth_ = 0;
  int calls_ = 0;
  Text* output_ = nullptr;
  // Namespaces can hold each other; all are kept to the end and emptied there.
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

}  // namespace stet::jinja
