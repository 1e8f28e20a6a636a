#include "kedge/text/jinja/jinja_loop.h"

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_ops.h"

namespace kedge::jinja {

LoopState::LoopState(const Value& iterable, size_t depth0) : iterable_(iterable), next_(iterate(iterable)), depth0_(depth0) {}

bool LoopState::advance(Value& item) {
  if (!after_.is_missing()) {
    item = std::exchange(after_, Value());
  } else if (!next_(item)) {
    return false;
  }
  ++index0_;
  before_ = std::exchange(current_, item);
  return true;
}

void LoopState::end() {
  // `changed` may have kept the loop itself, and nothing would free such a ring.
  last_changed_ = Value();
  ended_ = true;
}

const Value& LoopState::peek() {
  if (after_.is_missing() && !next_(after_)) after_ = Value();
  return after_;
}

int64_t LoopState::length() {
  if (length_) return *length_;
  if (has_length(iterable_)) {
    length_ = jinja::length(iterable_);
  } else {
    Values rest;
    for (Value item; next_(item);) rest.push_back(item);
    length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_.is_missing() ? 0 : 1);
    next_ = iterate(Value::list(std::move(rest)));
  }
  return *length_;
}

Value LoopState::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) fail("no items for cycling given");
  return arguments.positional[static_cast<size_t>(index0_) % arguments.positional.size()];
}

Value LoopState::changed(const Arguments& arguments) {
  if (ended_) fail("loop.changed after the end of its loop is not supported");
  const Value now = Value::tuple(arguments.positional);
  if (equal(last_changed_, now)) return false;
  last_changed_ = now;
  return true;
}

std::optional<Value> LoopState::attribute(std::string_view name) {
  if (name == "index") return Value(index0_ + 1);
  if (name == "index0") return Value(index0_);
  if (name == "first") return Value(index0_ == 0);
  if (name == "last") return Value(peek().is_missing());
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index0_);
  if (name == "revindex0") return Value(length() - index0_ - 1);
  if (name == "previtem") return index0_ == 0 ? Value::undefined("there is no previous item") : before_;
  if (name == "nextitem") return peek().is_missing() ? Value::undefined("there is no next item") : peek();
  if (name == "depth") return Value(static_cast<int64_t>(depth0_) + 1);
  if (name == "depth0") return Value(static_cast<int64_t>(depth0_));
  return std::nullopt;
}

Value loop_object(const std::shared_ptr<LoopState>& loop) {
  Object object{"LoopContext"};
  object.depth = loop->depth_of_values() + 1;
  object.call = [loop](const Arguments& arguments) {
    const Bound bound("loop", arguments, {"iterable"}, 1);
    if (!loop->recurse) fail("The loop must have the 'recursive' marker to be called recursively.");
    return loop->recurse(bound[0]);
  };
  object.attribute = [loop](std::string_view name) -> std::optional<Value> {
    if (name == "cycle") return make_function("method", [loop](const Arguments& arguments) { return loop->cycle(arguments); });
    if (name == "changed") return make_function("method", [loop](const Arguments& arguments) { return loop->changed(arguments); });
    return loop->attribute(name);
  };
  object.length = [loop] { return loop->length(); };
  object.repr = [loop] { return str("<LoopContext ", loop->index0() + 1, "/", loop->length(), ">"); };
  return std::make_shared<const Object>(std::move(object));
}

}  // namespace kedge::jinja
