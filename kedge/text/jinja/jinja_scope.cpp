#include "kedge/text/jinja/jinja_scope.h"

#include <algorithm>
#include <map>
#include <set>

#include "kedge/core/error.h"
#include "kedge/text/jinja/jinja_filters.h"
#include "kedge/text/jinja/jinja_tests.h"

namespace kedge::jinja {
namespace {

// A function while its variables are being placed. Scopes at the same level share the place of a name, as they share the
// name of a Python variable in Jinja's compiled code.
struct FunctionPlan {
  Function* function;
  size_t depth;
  FunctionPlan* outer;
  std::map<std::pair<size_t, std::string>, size_t> places{};

  size_t place(size_t level, const std::string& name) {
    const auto [found, added] = places.emplace(std::make_pair(level, name), function->num_slots);
    if (added) ++function->num_slots;
    return found->second;
  }
};

struct Reference {
  FunctionPlan* plan;
  size_t index;
};

// The names of one scope: what each refers to, and how those of its own begin.
class Symbols {
 public:
  Symbols(const Symbols* parent, FunctionPlan* plan) : parent_(parent), plan_(plan), level_(parent == nullptr ? 0 : parent->level_ + 1) {}

  // The same scope inside a branch of an if: what it adds is its own until `merge`.
  [[nodiscard]] Symbols branch() const {
    Symbols symbols(parent_, plan_);
    symbols.base_ = this;
    return symbols;
  }

  [[nodiscard]] FunctionPlan* plan() const { return plan_; }

  [[nodiscard]] const Reference* find(const std::string& name) const {
    if (const Reference* here = find_here(name)) return here;
    return parent_ == nullptr ? nullptr : parent_->find(name);
  }

  void load(const std::string& name) {
    if (find(name) == nullptr) define(name, {Load::From::context, 0, {}, name});
  }

  void store(const std::string& name) {
    stores_.insert(name);
    if (find_here(name) != nullptr) return;
    const Reference* outer = parent_ == nullptr ? nullptr : parent_->find(name);
    define(name, outer == nullptr ? Load{Load::From::nothing, 0, {}, name} : Load{Load::From::outer, 0, slot_of(*outer), name});
  }

  size_t declare_parameter(const std::string& name) {
    stores_.insert(name);
    return define(name, {Load::From::parameter, 0, {}, name});
  }

  // What the branches of an if did to the names: one that only some of them set begins as it was outside.
  void merge(const std::vector<Symbols>& branches) {
    std::set<std::string> fresh;
    for (const Symbols& branch : branches) fresh.insert(branch.stores_.begin(), branch.stores_.end());
    for (const Symbols* symbols = this; symbols != nullptr; symbols = symbols->base_)
      for (auto name = fresh.begin(); name != fresh.end();) name = symbols->stores_.count(*name) > 0 ? fresh.erase(name) : std::next(name);
    for (const Symbols& branch : branches) {
      for (const auto& [name, reference] : branch.references_) references_.insert_or_assign(name, reference);
      for (const auto& [index, load] : branch.loads_) loads_.insert_or_assign(index, load);
      stores_.insert(branch.stores_.begin(), branch.stores_.end());
    }
    for (const std::string& name : fresh) {
      const Reference* outer = parent_ == nullptr ? nullptr : parent_->find(name);
      const size_t index = find_here(name)->index;
      loads_.insert_or_assign(
          index, outer == nullptr ? Load{Load::From::context, index, {}, name} : Load{Load::From::outer, index, slot_of(*outer), name});
    }
  }

  [[nodiscard]] Slot slot_of(const Reference& reference) const { return {plan_->depth - reference.plan->depth, reference.index}; }

  [[nodiscard]] Slot slot(const std::string& name) const {
    const Reference* reference = find(name);
    ensure(reference != nullptr, "the name ", name, " has no place");
    return slot_of(*reference);
  }

  [[nodiscard]] Scope scope() const {
    Scope scope;
    for (const auto& [index, load] : loads_) scope.loads.push_back(load);
    return scope;
  }

 private:
  [[nodiscard]] const Reference* find_here(const std::string& name) const {
    if (const auto found = references_.find(name); found != references_.end()) return &found->second;
    return base_ == nullptr ? nullptr : base_->find_here(name);
  }

  size_t define(const std::string& name, Load load) {
    load.index = plan_->place(level_, name);
    references_.insert_or_assign(name, Reference{plan_, load.index});
    loads_.insert_or_assign(load.index, load);
    return load.index;
  }

  const Symbols* parent_;
  const Symbols* base_ = nullptr;
  FunctionPlan* plan_;
  size_t level_;
  std::map<std::string, Reference> references_;
  std::map<size_t, Load> loads_;
  std::set<std::string> stores_;
};

template <typename Visit>
void for_each_child(const Expr& expr, const Visit& visit) {
  for (const ExprPtr& child : expr.children)
    if (child) visit(*child);
  for (const auto& [name, child] : expr.named) visit(*child);
  if (expr.more) visit(*expr.more);
  if (expr.more_named) visit(*expr.more_named);
}

// --- First walk: which names a scope loads and stores. It does not enter scopes inside. ---

void note_loads(const Expr* expr, Symbols& symbols) {
  if (expr == nullptr) return;
  if (expr->type == Expr::Type::name || expr->type == Expr::Type::space_attribute) symbols.load(expr->name);
  for_each_child(*expr, [&](const Expr& child) { note_loads(&child, symbols); });
}

void note_target(const Expr& target, Symbols& symbols, bool as_parameter) {
  if (target.type == Expr::Type::space_attribute) symbols.load(target.name);
  if (target.type == Expr::Type::name && as_parameter) symbols.declare_parameter(target.name);
  if (target.type == Expr::Type::name && !as_parameter) symbols.store(target.name);
  for (const ExprPtr& item : target.children) note_target(*item, symbols, as_parameter);
}

void note(const Body& body, Symbols& symbols);

void note_condition(const Stmt& stmt, Symbols& symbols) {
  note_loads(stmt.value.get(), symbols);
  std::vector<Symbols> branches(3, symbols.branch());
  note(stmt.body, branches[0]);
  for (const auto& branch : stmt.elifs) note_condition(*branch, branches[1]);
  note(stmt.otherwise, branches[2]);
  symbols.merge(branches);
}

void note(const Body& body, Symbols& symbols) {
  for (const auto& stmt : body) {
    switch (stmt->type) {
      case Stmt::Type::print:
      case Stmt::Type::with:
        for (const ExprPtr& value : stmt->values) note_loads(value.get(), symbols);
        break;
      case Stmt::Type::set:
        note_loads(stmt->value.get(), symbols);
        note_target(*stmt->target, symbols, false);
        break;
      case Stmt::Type::set_block:
        note_target(*stmt->target, symbols, false);
        break;
      case Stmt::Type::condition:
        note_condition(*stmt, symbols);
        break;
      case Stmt::Type::loop:
      case Stmt::Type::call_block:
        note_loads(stmt->value.get(), symbols);
        break;
      case Stmt::Type::macro:
        symbols.store(stmt->text);
        break;
      case Stmt::Type::filter_block:
        note_loads(stmt->filter.get(), symbols);
        break;
      default:
        break;
    }
  }
}

// --- Which of some names are read before they are set, anywhere inside. ---

class Undeclared {
 public:
  explicit Undeclared(std::set<std::string> names) : names_(std::move(names)) {}

  void look(const Body& body) {
    for (const auto& stmt : body) look(*stmt);
  }
  [[nodiscard]] bool has(const std::string& name) const { return found_.count(name) > 0; }

 private:
  void look(const Stmt& stmt) {
    if (stmt.target) look_target(*stmt.target);
    look(stmt.value.get());
    for (const ExprPtr& parameter : stmt.parameters) look_target(*parameter);
    for (const ExprPtr& value : stmt.values) look(value.get());
    if (stmt.type != Stmt::Type::filter_block) look(stmt.filter.get());
    look(stmt.body), look(stmt.elifs), look(stmt.otherwise);
    if (stmt.type == Stmt::Type::filter_block) look(stmt.filter.get());
    look(stmt.test.get());
  }

  void look(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->type == Expr::Type::name && names_.count(expr->name) > 0) found_.insert(expr->name);
    for_each_child(*expr, [&](const Expr& child) { look(&child); });
  }

  void look_target(const Expr& target) {
    if (target.type == Expr::Type::name) names_.erase(target.name);
    for (const ExprPtr& item : target.children) look_target(*item);
  }

  std::set<std::string> names_, found_;
};

// --- Second walk: every name gets its slot, scopes inside are planned on the way. ---

ExprPtr copy_of_target(const Expr& target) {
  auto copy = std::make_unique<Expr>(Expr{target.type, target.line});
  copy->name = target.name;
  for (const ExprPtr& item : target.children) copy->children.push_back(copy_of_target(*item));
  return copy;
}

class Resolver {
 public:
  explicit Resolver(std::string_view name) : name_(name) {}

  // `soft`: directly inside an if, where an unknown filter is an error only when it is reached.
  void resolve(Body& body, const Symbols& symbols, bool soft) {
    for (const auto& stmt : body) resolve(*stmt, symbols, soft);
  }

 private:
  void resolve(Stmt& stmt, const Symbols& symbols, bool soft) {
    switch (stmt.type) {
      case Stmt::Type::print:
        for (const ExprPtr& value : stmt.values) resolve(value.get(), symbols, soft);
        break;
      case Stmt::Type::set:
        resolve(stmt.value.get(), symbols, soft);
        resolve(stmt.target.get(), symbols, soft);
        break;
      case Stmt::Type::condition:
        resolve(stmt.value.get(), symbols, true);
        resolve(stmt.body, symbols, true), resolve(stmt.elifs, symbols, true), resolve(stmt.otherwise, symbols, true);
        break;
      case Stmt::Type::loop:
        resolve_loop(stmt, symbols, soft);
        break;
      case Stmt::Type::macro:
        stmt.slot = symbols.slot(stmt.text);
        resolve_function(stmt, symbols);
        break;
      case Stmt::Type::call_block:
        resolve(stmt.value.get(), symbols, soft);
        resolve_function(stmt, symbols);
        break;
      case Stmt::Type::generation:
        resolve_function(stmt, symbols);
        break;
      case Stmt::Type::set_block:
        resolve(stmt.target.get(), symbols, soft);
        resolve_block(stmt, symbols);
        break;
      case Stmt::Type::filter_block:
        resolve_block(stmt, symbols);
        break;
      case Stmt::Type::with:
        resolve_with(stmt, symbols, soft);
        break;
      default:
        break;
    }
  }

  void resolve_block(Stmt& stmt, const Symbols& symbols) {
    Symbols inner(&symbols, symbols.plan());
    note(stmt.body, inner);
    note_loads(stmt.filter.get(), inner);
    resolve(stmt.body, inner, false);
    resolve(stmt.filter.get(), inner, false);
    stmt.scope = inner.scope();
  }

  void resolve_with(Stmt& stmt, const Symbols& symbols, bool soft) {
    Symbols inner(&symbols, symbols.plan());
    for (const ExprPtr& value : stmt.values) resolve(value.get(), symbols, soft);
    for (const ExprPtr& target : stmt.parameters) note_target(*target, inner, true);
    note(stmt.body, inner);
    for (const ExprPtr& target : stmt.parameters) resolve(target.get(), inner, false);
    resolve(stmt.body, inner, false);
    stmt.scope = inner.scope();
  }

  void resolve_loop(Stmt& stmt, const Symbols& symbols, bool soft) {
    resolve(stmt.value.get(), symbols, soft);
    FunctionPlan own{&stmt.function, symbols.plan()->depth + 1, symbols.plan()};  // of a recursive loop
    FunctionPlan* plan = stmt.recursive ? &own : symbols.plan();
    if (stmt.recursive) mark_closure(symbols.plan());
    Symbols inner(&symbols, plan), otherwise(&symbols, plan);
    Undeclared undeclared({"loop"});
    undeclared.look(stmt.body);
    stmt.uses_loop = stmt.recursive || undeclared.has("loop");
    if (stmt.uses_loop) stmt.loop_slot = inner.declare_parameter("loop");
    note_target(*stmt.target, inner, true);
    note(stmt.body, inner);
    note(stmt.otherwise, otherwise);
    if (stmt.test) resolve_loop_test(stmt, symbols);
    resolve(stmt.target.get(), inner, false);
    resolve(stmt.body, inner, false);
    resolve(stmt.otherwise, otherwise, false);
    stmt.scope = inner.scope(), stmt.otherwise_scope = otherwise.scope();
  }

  void resolve_loop_test(Stmt& stmt, const Symbols& symbols) {
    FunctionPlan plan{&stmt.test_function, symbols.plan()->depth + 1, symbols.plan()};
    Symbols inner(&symbols, &plan);
    stmt.test_target = copy_of_target(*stmt.target);
    note_target(*stmt.test_target, inner, true);
    note_loads(stmt.test.get(), inner);
    resolve(stmt.test_target.get(), inner, false);
    resolve(stmt.test.get(), inner, false);
    stmt.test_scope = inner.scope();
  }

  static void mark_closure(FunctionPlan* plan) {
    for (; plan != nullptr; plan = plan->outer) plan->function->makes_closures = true;
  }

  void resolve_function(Stmt& stmt, const Symbols& symbols) {
    mark_closure(symbols.plan());
    FunctionPlan plan{&stmt.function, symbols.plan()->depth + 1, symbols.plan()};
    Symbols inner(&symbols, &plan);
    Undeclared undeclared({"caller", "kwargs", "varargs"});
    undeclared.look(stmt.body);
    for (const ExprPtr& parameter : stmt.parameters) stmt.parameter_slots.push_back(inner.declare_parameter(parameter->name));
    const auto place_of = [&](const std::string& name) {
      const auto found = std::find_if(stmt.parameters.begin(), stmt.parameters.end(), [&](const ExprPtr& p) { return p->name == name; });
      return static_cast<size_t>(found - stmt.parameters.begin());
    };
    const size_t count = stmt.parameters.size();
    if (undeclared.has("caller")) {
      const size_t explicit_caller = place_of("caller");
      if (explicit_caller < count && explicit_caller < count - stmt.values.size())
        fail_at(stmt.line, "the special parameter caller must be omitted or be given a default");
      stmt.takes_caller = explicit_caller == count;
      if (stmt.takes_caller) stmt.caller_slot = inner.declare_parameter("caller");
    }
    stmt.takes_kwargs = undeclared.has("kwargs") && place_of("kwargs") == count;
    if (stmt.takes_kwargs) stmt.kwargs_slot = inner.declare_parameter("kwargs");
    stmt.takes_varargs = undeclared.has("varargs") && place_of("varargs") == count;
    if (stmt.takes_varargs) stmt.varargs_slot = inner.declare_parameter("varargs");
    for (const ExprPtr& value : stmt.values) note_loads(value.get(), inner);
    note(stmt.body, inner);
    for (const ExprPtr& value : stmt.values) resolve(value.get(), inner, false);
    resolve(stmt.body, inner, false);
    stmt.scope = inner.scope();
  }

  void resolve(Expr* expr, const Symbols& symbols, bool soft) {
    if (expr == nullptr) return;
    if (expr->type == Expr::Type::name || expr->type == Expr::Type::space_attribute) expr->slot = symbols.slot(expr->name);
    if (expr->type == Expr::Type::filter && !soft && !has_filter(expr->name))
      fail_at(expr->line, str("No filter named '", expr->name, "'."));
    if (expr->type == Expr::Type::test && !soft && !has_test(expr->name)) fail_at(expr->line, str("No test named '", expr->name, "'."));
    const bool inside = soft || expr->type == Expr::Type::conditional;
    for_each_child(*expr, [&](Expr& child) { resolve(&child, symbols, inside); });
  }

  [[noreturn]] void fail_at(size_t line, std::string_view message) const { throw UsageError(str(name_, ":", line, ": ", message)); }

  std::string_view name_;
};

}  // namespace

void resolve_names(Template& parsed, std::string_view name) {
  FunctionPlan plan{&parsed.function, 0, nullptr};
  Symbols symbols(nullptr, &plan);
  note(parsed.body, symbols);
  Resolver(name).resolve(parsed.body, symbols, false);
  parsed.scope = symbols.scope();
}

}  // namespace kedge::jinja
