// A parsed template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace stet::jinja {

enum class ExprKind {
  kConstant,
  kName,
  kList,       // children: items
  kTuple,      // children: items
  kDict,       // children: key, value, key, value, ...
  kAttribute,  // children: object; name: attribute
  kItem,       // children: object, index
  kSlice,      // children: object, begin, end, step (null where left out)
  kCall,       // children: callee, positional...; named
  kFilter,     // children: value, positional...; named; name: filter
  kTest,       // children: value, positional...; named; name: test
  kNot,
  kUnary,   // name: operator
  kBinary,  // name: operator
  kAnd,
  kOr,
  kCompare,  // children: operands; operators: one fewer
  kIf,       // children: value, condition, other (null where left out)
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 0;
  int depth = 1;
  std::string name;
  Value constant;
  std::vector<ExprPtr> children;
  std::vector<std::pair<std::string, ExprPtr>> named;
  std::vector<std::string> operators;
};

enum class StmtKind {
  kData,         // text
  kPrint,        // exprs[0]
  kIf,           // exprs: conditions; bodies: one each, then the else body if there is one
  kFor,          // names; exprs: iterable, filter (may be null); bodies: loop, else
  kSet,          // names or name.attribute; exprs[0]
  kSetBlock,     // names[0] or name.attribute; bodies[0]; exprs: filters of the block (on a null value)
  kMacro,        // name; names: parameters; exprs: their defaults (null where none); bodies[0]
  kScope,        // with and generation: names, exprs, bodies[0]
  kFilterBlock,  // exprs[0]: filters on a null value; bodies[0]
  kBreak,
  kContinue,
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct Stmt {
  StmtKind kind = StmtKind::kData;
  int line = 0;
  std::string text;
  std::string name;
  std::string attribute;
  std::vector<std::string> names;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;
};

}  // namespace stet::jinja
