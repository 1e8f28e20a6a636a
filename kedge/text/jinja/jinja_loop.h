#pragma once
// What a template knows as `loop` inside a for: counters, neighbours, cycle, changed.
#include <functional>
#include <memory>
#include <optional>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// The state of one running loop. Items are read one by one; `last`, `nextitem` read one ahead, `length` may read all.
class LoopState {
 public:
  LoopState(const Value& iterable, size_t depth0);

  bool advance(Value& item);  // false at the end
  void end();                 // the loop is over, though a template may have kept `loop`

  // The value of a name after `loop.`, and what loop(...) gives in a recursive one.
  std::optional<Value> attribute(std::string_view name);
  std::function<Value(const Value&)> recurse;

  int64_t length();
  [[nodiscard]] int64_t index0() const { return index0_; }
  [[nodiscard]] size_t depth_of_values() const { return iterable_.depth(); }

  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

 private:
  const Value& peek();

  Value iterable_;
  std::function<bool(Value&)> next_;
  int64_t index0_ = -1;
  size_t depth0_;
  std::optional<int64_t> length_;
  Value before_, current_, after_, last_changed_;
  bool ended_ = false;
};

[[nodiscard]] Value loop_object(const std::shared_ptr<LoopState>& loop);

}  // namespace kedge::jinja
