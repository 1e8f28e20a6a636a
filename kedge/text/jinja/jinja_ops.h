#pragma once
// What Python's operators do with values: arithmetic, comparison, membership, length, iteration, slices. Errors are Faults in
// Python's words. Attributes and methods are in jinja_access.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

enum class Operator { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

[[nodiscard]] Value calculate(Operator op, const Value& left, const Value& right);
[[nodiscard]] Value negate(const Value& value);
[[nodiscard]] Value plus(const Value& value);

[[nodiscard]] bool compare(Comparison op, const Value& left, const Value& right);
[[nodiscard]] bool less(const Value& left, const Value& right);
[[nodiscard]] bool contains(const Value& container, const Value& item);

[[nodiscard]] int64_t length(const Value& value);
[[nodiscard]] bool has_length(const Value& value);
[[nodiscard]] bool is_iterable(const Value& value);

// A function that gives the next item, or false at the end. It keeps the value alive.
[[nodiscard]] std::function<bool(Value&)> iterate(const Value& value);
[[nodiscard]] Values list_of(const Value& value);

// An absent bound is none or null: value[start:stop:step].
[[nodiscard]] Value slice(const Value& value, const Value& start, const Value& stop, const Value& step);
// The item at a place, counted from the end when negative; nothing when it is outside.
[[nodiscard]] std::optional<Value> item_at(const Value& value, int64_t index);

// Characters [begin, end) of a text; requires 0 <= begin <= end <= length.
[[nodiscard]] std::string_view characters(const Text& text, size_t begin, size_t end);

// The first place of `part` at or after byte `from`, or npos; in linear time whatever the texts.
[[nodiscard]] size_t find_bytes(std::string_view text, std::string_view part, size_t from = 0);

// The Fault of an operation on an undefined value.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace kedge::jinja
