// Expressions.
#include "text/jinja/interpreter.h"

namespace stet::jinja {

class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

Value Interpreter::evaluate(const Expr& expr, const ScopePtr& scope) {
  const DepthGuard guard(depth_);
  line_ = expr.line;
  if (depth_ > limits_.eval_depth) error(Code::kInput, "the template nests too deep");
  charge(8);
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return evaluate_name(expr, scope);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return Value::list(evaluate_all(expr.children, 0, scope), expr.kind == ExprKind::kTuple);
    case ExprKind::kDict:
      return evaluate_dict(expr, scope);
    case ExprKind::kAttribute:
      return get_attribute(*this, evaluate(*expr.children[0], scope), expr.name);
    case ExprKind::kItem: {
      const Value object = evaluate(*expr.children[0], scope);
      return get_item(*this, object, evaluate(*expr.children[1], scope));
    }
    case ExprKind::kSlice: {
      const std::vector<Value> parts = evaluate_all(expr.children, 0, scope);
      return get_slice(*this, parts[0], parts[1], parts[2], parts[3]);
    }
    case ExprKind::kCall:
      return evaluate_call(expr, scope);
    case ExprKind::kFilter: {
      const Value value = evaluate(*expr.children[0], scope);
      return apply_filter(*this, expr.name, value, evaluate_arguments(expr, scope));
    }
    case ExprKind::kTest: {
      const Value value = evaluate(*expr.children[0], scope);
      return Value::boolean(apply_test(*this, expr.name, value, evaluate_arguments(expr, scope)));
    }
    case ExprKind::kNot:
      return Value::boolean(!evaluate(*expr.children[0], scope).truthy());
    case ExprKind::kUnary:
      return unary(*this, expr.name, evaluate(*expr.children[0], scope));
    case ExprKind::kBinary: {
      const Value left = evaluate(*expr.children[0], scope);
      return binary(*this, expr.name, left, evaluate(*expr.children[1], scope));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value left = evaluate(*expr.children[0], scope);
      return left.truthy() == (expr.kind == ExprKind::kOr) ? left : evaluate(*expr.children[1], scope);
    }
    case ExprKind::kCompare:
      return evaluate_compare(expr, scope);
    case ExprKind::kIf: {
      const bool holds = evaluate(*expr.children[1], scope).truthy();
      if (holds) return evaluate(*expr.children[0], scope);
      return expr.children[2] ? evaluate(*expr.children[2], scope) : Value::undefined("the missing else of an if");
    }
  }
  error(Code::kInternal, "an expression of an unknown kind");
}

Value Interpreter::evaluate_optional(const ExprPtr& expr, const ScopePtr& scope) {
  return expr == nullptr ? Value::none() : evaluate(*expr, scope);
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs, size_t first, const ScopePtr& scope) {
  charge_items(exprs.size());
  std::vector<Value> out;
  for (size_t i = first; i < exprs.size(); ++i) out.push_back(evaluate_optional(exprs[i], scope));
  return out;
}

Arguments Interpreter::evaluate_arguments(const Expr& expr, const ScopePtr& scope) {
  Arguments out;
  out.positional = evaluate_all(expr.children, 1, scope);
  for (const auto& [name, value] : expr.named) out.named.emplace_back(name, evaluate(*value, scope));
  line_ = expr.line;
  return out;
}

Value Interpreter::evaluate_name(const Expr& expr, const ScopePtr& scope) {
  if (const Value* found = scope->find(expr.name)) return *found;
  Value global = find_global(expr.name);
  return global.is_undefined() ? Value::undefined(expr.name) : global;
}

Value Interpreter::evaluate_dict(const Expr& expr, const ScopePtr& scope) {
  Dict out;
  for (size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    Value key = evaluate(*expr.children[i], scope);
    if (key.sequence() || key.dict() || key.object()) error(Code::kUnsupported, "a key of kind {}", key.kind());
    charge(2 * sizeof(Value) + out.items.size() * key.weight());
    out.set(std::move(key), evaluate(*expr.children[i + 1], scope));
  }
  return Value::dict(std::move(out));
}

Value Interpreter::evaluate_call(const Expr& expr, const ScopePtr& scope) {
  const Value callee = evaluate(*expr.children[0], scope);
  Arguments arguments = evaluate_arguments(expr, scope);
  if (const Callable* callable = callee.callable()) return callable->call(*this, arguments);
  if (const std::string* name = callee.undefined_name())
    error(Code::kInput, "'{}' is undefined, so it cannot be called", *name);
  error(Code::kInput, "a value of kind {} cannot be called", callee.kind());
}

Value Interpreter::evaluate_compare(const Expr& expr, const ScopePtr& scope) {
  Value left = evaluate(*expr.children[0], scope);
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.children[i + 1], scope);
    if (!compare(*this, expr.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

}  // namespace stet::jinja
