#include "kedge/text/jinja/jinja_eval.h"

#include <algorithm>

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_filters.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/jinja/jinja_tests.h"

namespace kedge::jinja {

namespace {

// Sets a variable of the evaluator for a while.
template <typename T>
class Swap {
 public:
  Swap(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
  ~Swap() { place_ = std::move(before_); }
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

 private:
  T& place_;
  T before_;
};

}  // namespace

// --- Variables ---

Value& Evaluator::at(const Slot& slot) {
  Frame* frame = frame_;
  for (size_t i = 0; i < slot.hops; ++i) frame = frame->outer;
  return frame->slots[slot.index];
}

void Evaluator::enter(const Scope& scope) {
  for (const Load& load : scope.loads) {
    if (load.from == Load::From::parameter) continue;
    Value value;
    if (load.from == Load::From::outer) value = at(load.outer);
    if (load.from == Load::From::context) {
      const auto found = variables_.find(load.name);
      if (found != variables_.end()) value = found->second;
    }
    frame_->slots[load.index] = std::move(value);
  }
}

void Evaluator::leave(const Scope& scope) {
  for (const Load& load : scope.loads) frame_->slots[load.index] = Value();
}

Evaluator::Frame& Evaluator::new_frame(const Function& function, Frame* outer) {
  auto& free = free_frames_[&function];
  if (!free.empty()) {
    Frame* frame = free.back();
    free.pop_back();
    frame->outer = outer;
    return *frame;
  }
  Meter::hold(sizeof(Frame) + function.num_slots * sizeof(Value));
  frames_.push_back({std::vector<Value>(function.num_slots), outer});
  return frames_.back();
}

void Evaluator::give_back(const Function& function, Frame& frame) {
  if (function.makes_closures) return;
  std::fill(frame.slots.begin(), frame.slots.end(), Value());
  free_frames_[&function].push_back(&frame);
}

void Evaluator::check_spaces(const Expr& target) {
  if (target.type == Expr::Type::space_attribute && !at(target.slot).is(Kind::space))
    fail("cannot assign attribute on non-namespace object");
  for (const ExprPtr& item : target.children) check_spaces(*item);
}

void Evaluator::assign(const Expr& target, const Value& value) {
  if (target.type == Expr::Type::name) {
    at(target.slot) = value;
  } else if (target.type == Expr::Type::space_attribute) {
    check_spaces(target);
    set_attribute(at(target.slot).space(), target.attribute, value);
  } else {
    if (!is_iterable(value)) fail("cannot unpack non-iterable ", type_name(value), " object");
    const Values items = list_of(value);
    const size_t wanted = target.children.size();
    if (items.size() > wanted) fail("too many values to unpack (expected ", wanted, ")");
    if (items.size() < wanted) fail("not enough values to unpack (expected ", wanted, ", got ", items.size(), ")");
    for (size_t i = 0; i < wanted; ++i) assign(*target.children[i], items[i]);
  }
}

// --- Statements ---

void Evaluator::run() {
  frame_ = &new_frame(template_.function, nullptr);
  enter(template_.scope);
  run_body(template_.body);
}

Evaluator::Flow Evaluator::run_body(const Body& body) {
  for (const auto& stmt : body)
    if (const Flow flow = run(*stmt); flow != Flow::on) return flow;
  return Flow::on;
}

Evaluator::Flow Evaluator::run(const Stmt& stmt) {
  const Depth depth(*this);
  line_ = stmt.line;
  switch (stmt.type) {
    case Stmt::Type::data:
      output_->append(stmt.text);
      break;
    case Stmt::Type::print:
      for (const ExprPtr& value : stmt.values) output_->append(to_text(eval(*value)));
      break;
    case Stmt::Type::set: {
      check_spaces(*stmt.target);
      const Value value = eval(*stmt.value);
      line_ = stmt.line;
      assign(*stmt.target, value);
      break;
    }
    case Stmt::Type::condition:
      return run_condition(stmt);
    case Stmt::Type::loop:
      return run_loop(stmt);
    case Stmt::Type::macro:
      at(stmt.slot) = make_macro(stmt);
      break;
    case Stmt::Type::call_block: {
      const Value caller = make_macro(stmt);
      output_->append(to_text(eval_call(*stmt.value, &caller)));
      break;
    }
    case Stmt::Type::generation: {
      const std::string text = call_macro(stmt, frame_, {});
      generated_.push_back({root_output_.size(), text, stmt.line});
      output_->append(text);
      break;
    }
    case Stmt::Type::set_block:
    case Stmt::Type::filter_block:
      return run_captured(stmt);
    case Stmt::Type::with:
      return run_with(stmt);
    case Stmt::Type::leave:
      return Flow::leave;
    case Stmt::Type::next:
      return Flow::next;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run_condition(const Stmt& stmt) {
  if (truth(eval(*stmt.value))) return run_body(stmt.body);
  for (const auto& branch : stmt.elifs) {
    line_ = branch->line;
    if (truth(eval(*branch->value))) return run_body(branch->body);
  }
  return run_body(stmt.otherwise);
}

Evaluator::Flow Evaluator::run_with(const Stmt& stmt) {
  Values values;
  for (const ExprPtr& value : stmt.values) values.push_back(eval(*value));
  enter(stmt.scope);
  for (size_t i = 0; i < values.size(); ++i) assign(*stmt.parameters[i], values[i]);
  const Flow flow = run_body(stmt.body);
  leave(stmt.scope);
  return flow;
}

// {% set x %}...{% endset %} and {% filter x %}...{% endfilter %}: a break inside drops what was written.
Evaluator::Flow Evaluator::run_captured(const Stmt& stmt) {
  Buffer text;
  enter(stmt.scope);
  {
    const Swap<Buffer*> writing(output_, &text);
    if (const Flow flow = run_body(stmt.body); flow != Flow::on) return flow;
  }
  line_ = stmt.line;
  Value value(text.text());
  if (stmt.filter) {
    const Swap<const Value*> subject(block_text_, &value);
    value = eval(*stmt.filter);
  }
  if (stmt.type == Stmt::Type::set_block) {
    assign(*stmt.target, value);
  } else {
    output_->append(to_text(value));
  }
  leave(stmt.scope);
  return Flow::on;
}

// --- Loops ---

Evaluator::Flow Evaluator::run_loop(const Stmt& stmt) {
  const Value iterable = eval(*stmt.value);
  line_ = stmt.line;
  if (!stmt.recursive) return run_loop_over(stmt, iterable, 0);
  output_->append(run_recursive_loop(stmt, frame_, iterable, 0));
  return Flow::on;
}

std::string Evaluator::run_recursive_loop(const Stmt& stmt, Frame* around, const Value& iterable, size_t depth) {
  const Depth guard(*this);
  Buffer text;
  const Swap<Buffer*> writing(output_, &text);
  const Swap<Frame*> inside(frame_, &new_frame(stmt.function, around));
  run_loop_over(stmt, iterable, depth);
  return text.text();
}

// The items that pass the loop's test, one at a time on request.
Value Evaluator::tested(const Stmt& stmt, const Value& iterable, Frame* around) {
  const auto next = iterate(iterable);
  return Value::iterator("generator", iterable.depth(), [this, &stmt, next, around](Value& item) {
    const Depth guard(*this);
    Frame& frame = new_frame(stmt.test_function, around);
    const Swap<Frame*> inside(frame_, &frame);
    enter(stmt.test_scope);
    bool found = false;
    while (!found && next(item)) {
      assign(*stmt.test_target, item);
      found = truth(eval(*stmt.test));
    }
    give_back(stmt.test_function, frame);
    return found;
  });
}

Evaluator::Flow Evaluator::run_loop_over(const Stmt& stmt, const Value& iterable, size_t depth) {
  Frame* around = stmt.recursive ? frame_->outer : frame_;
  const auto loop = std::make_shared<LoopState>(stmt.test ? tested(stmt, iterable, around) : iterable, depth);
  if (stmt.recursive)
    loop->recurse = [this, &stmt, around, depth](const Value& inner) { return Value(run_recursive_loop(stmt, around, inner, depth + 1)); };
  const bool completed = run_rounds(stmt, loop);
  if (completed || stmt.otherwise.empty()) return Flow::on;
  enter(stmt.otherwise_scope);
  const Flow flow = run_body(stmt.otherwise);
  leave(stmt.otherwise_scope);
  return flow;
}

// Did any iteration complete? One that was left by break or continue does not count for {% else %}: so it is in Jinja.
bool Evaluator::run_rounds(const Stmt& stmt, const std::shared_ptr<LoopState>& loop) {
  struct End {
    LoopState& loop;
    ~End() { loop.end(); }
  } const end{*loop};
  const Value special = stmt.uses_loop ? loop_object(loop) : Value();
  bool completed = false;
  Flow flow = Flow::on;
  for (Value item; flow != Flow::leave && loop->advance(item);) {
    Meter::step();
    line_ = stmt.line;
    assign(*stmt.target, item);
    if (stmt.uses_loop) frame_->slots[stmt.loop_slot] = special;
    enter(stmt.scope);
    flow = run_body(stmt.body);
    completed = completed || flow == Flow::on;
  }
  leave(stmt.scope);
  return completed;
}

// --- Macros ---

Value Evaluator::make_macro(const Stmt& stmt) {
  Object object{"Macro"};
  object.call = [this, &stmt, around = frame_](const Arguments& arguments) { return Value(call_macro(stmt, around, arguments)); };
  object.attribute = [&stmt](std::string_view name) -> std::optional<Value> {
    Values parameters;
    for (const ExprPtr& parameter : stmt.parameters) parameters.emplace_back(parameter->name);
    if (name == "name") return stmt.type == Stmt::Type::macro ? Value(stmt.text) : Value(Value::None{});
    if (name == "arguments") return Value::tuple(std::move(parameters));
    if (name == "catch_kwargs") return Value(stmt.takes_kwargs);
    if (name == "catch_varargs") return Value(stmt.takes_varargs);
    if (name == "caller") return Value(stmt.takes_caller);
    return std::nullopt;
  };
  object.repr = [&stmt] { return stmt.type == Stmt::Type::macro ? "<Macro " + repr_text(stmt.text) + ">" : "<Macro anonymous>"; };
  return std::make_shared<const Object>(std::move(object));
}

std::string Evaluator::call_macro(const Stmt& stmt, Frame* around, const Arguments& arguments) {
  const Depth guard(*this);
  Frame& frame = new_frame(stmt.function, around);
  Buffer text;
  {
    const Swap<Frame*> inside(frame_, &frame);
    const Swap<Buffer*> writing(output_, &text);
    enter(stmt.scope);
    bind_parameters(stmt, arguments);
    run_body(stmt.body);
  }
  give_back(stmt.function, frame);
  return text.text();
}

void Evaluator::bind_parameters(const Stmt& stmt, const Arguments& arguments) {
  const auto called = [&] { return "macro " + repr_text(stmt.text); };
  const size_t count = stmt.parameters.size();
  auto named = arguments.named;
  const auto take = [&](std::string_view name) {
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& pair) { return pair.first == name; });
    if (found == named.end()) return Value();
    Value value = std::move(found->second);
    named.erase(found);
    return value;
  };
  for (size_t i = 0; i < count; ++i)
    frame_->slots[stmt.parameter_slots[i]] = i < arguments.positional.size() ? arguments.positional[i] : take(stmt.parameters[i]->name);
  if (stmt.takes_caller) {
    const Value caller = take("caller");
    frame_->slots[stmt.caller_slot] = caller.is_missing() || caller.is_none() ? Value::undefined("No caller defined") : caller;
  }
  if (stmt.takes_kwargs) {
    std::vector<std::pair<Value, Value>> rest;
    for (auto& [name, value] : named) rest.emplace_back(name, value);
    frame_->slots[stmt.kwargs_slot] = std::make_shared<const Dict>(std::move(rest));
  } else if (!named.empty()) {
    fail(called(), " takes no keyword argument ", repr_text(named.front().first));
  }
  const Values& given = arguments.positional;
  if (stmt.takes_varargs) {
    frame_->slots[stmt.varargs_slot] =
        Value::tuple(given.size() > count ? Values(given.begin() + static_cast<std::ptrdiff_t>(count), given.end()) : Values());
  } else if (given.size() > count) {
    fail(called(), " takes not more than ", count, " argument(s)");
  }
  for (size_t i = 0; i < count; ++i) {
    if (!frame_->slots[stmt.parameter_slots[i]].is_missing()) continue;
    const size_t first_default = count - stmt.values.size();
    Value value = i >= first_default ? eval(*stmt.values[i - first_default])
                                     : Value::undefined(str("parameter ", repr_text(stmt.parameters[i]->name), " was not provided"));
    frame_->slots[stmt.parameter_slots[i]] = std::move(value);
  }
}

}  // namespace kedge::jinja
