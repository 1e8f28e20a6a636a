#pragma once
// A parsed template: expressions and statements, and the places of its variables.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// Where a variable lives: in the frame of the function that runs, or of one around it.
struct Slot {
  size_t hops = 0;  // functions outwards
  size_t index = 0;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  enum class Type {
    constant,
    name,
    space_attribute,  // name.attribute as the target of a set
    list,
    tuple,
    dict,       // children: key, value, key, value ...
    attribute,  // children: the object
    item,       // children: the object, the key
    slice,      // children: the object, start, stop, step; absent ones are null
    call,       // children: the function, the arguments
    filter,     // children: the subject (null: the text of a block), the arguments
    test,       // children: the subject, the arguments
    negate,
    plus,
    logical_not,
    logical_and,
    logical_or,
    calculate,
    compare,      // children: the first operand, the others
    conditional,  // children: test, then, else (may be null)
    concat,
  };

  Type type;
  size_t line;
  size_t depth = 1;
  Value constant{};
  std::string name{};       // of a variable, attribute, filter or test
  std::string attribute{};  // of a space_attribute
  std::vector<ExprPtr> children{};
  std::vector<std::pair<std::string, ExprPtr>> named{};  // keyword arguments
  ExprPtr more{}, more_named{};                          // *arguments, **arguments
  Operator op{};
  std::vector<Comparison> comparisons{};
  Slot slot{};  // of a name or the namespace of a space_attribute
};

// How a variable of a scope begins.
struct Load {
  enum class From { parameter, context, outer, nothing };
  From from;
  size_t index;      // in the function's own frame
  Slot outer{};      // where it is copied from
  std::string name;  // looked up in the context
};

struct Scope {
  std::vector<Load> loads;
};

// The template itself, a macro, the body of a call: everything with its own frame.
struct Function {
  size_t num_slots = 0;
  bool makes_closures = false;  // something inside may outlive a call
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Stmt {
  enum class Type {
    data,          // text
    print,         // values
    set,           // target = value
    set_block,     // target | filter, body
    condition,     // if value: body, elifs, otherwise
    loop,          // for target in value if test: body, otherwise
    macro,         // text is its name; parameters, values are the defaults of the last ones; body
    call_block,    // like a macro without a name, and the call it is handed to as value
    generation,    // body, as what a model would have generated
    filter_block,  // filter, body
    with,          // parameters = values, body
    leave,         // break
    next,          // continue
  };

  Type type;
  size_t line;
  std::string text{};
  ExprPtr target{}, value{}, test{}, filter{};
  ExprPtr test_target{};  // the target again: a loop's test is a function with its own variables
  std::vector<ExprPtr> parameters{}, values{};
  Body body{}, elifs{}, otherwise{};
  bool recursive = false;

  // Filled in once all names are known (jinja_scope).
  Scope scope{}, test_scope{}, otherwise_scope{};
  Function function{}, test_function{};
  Slot slot{};  // of a macro's name
  std::vector<size_t> parameter_slots{};
  bool uses_loop = false;  // its body reads `loop`
  size_t loop_slot = 0;
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false;  // a macro's unnamed parameters
  size_t caller_slot = 0, kwargs_slot = 0, varargs_slot = 0;
};

struct Template {
  Body body;
  Scope scope;
  Function function;
  bool has_generation = false;
};

}  // namespace kedge::jinja
