#include "kedge/text/jinja/jinja_access.h"

#include <algorithm>
#include <array>
#include <optional>

#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/jinja/jinja_text_methods.h"

namespace kedge::jinja {
namespace {

template <size_t N>
bool one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What an error calls the object: "dict object", "None".
std::string described(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_text() && value.text().safe) return "markupsafe.Markup object";
  return type_name(value) + " object";
}

Value no_attribute(const Value& value, std::string_view name) {
  return Value::undefined(str(repr_text(described(value)), " has no attribute ", repr_text(name)));
}

Value unsafe_attribute(const Value& value, std::string_view name) {
  return Value::undefined(str("access to attribute ", repr_text(name), " of '", type_name(value), "' object is unsafe."));
}

Value method(const Value& self, std::function<Value(const Arguments&)> call) {
  Object object{"builtin_function_or_method", std::move(call)};
  object.depth = self.depth() + 1;
  return std::make_shared<const Object>(std::move(object));
}

Value refused_method(const Value& self, std::string_view name) {
  return method(self, [type = type_name(self), name = std::string(name)](const Arguments&) -> Value {
    fail("the method ", type, ".", name, " is not supported");
  });
}

Value index_of(const Value& self, const Arguments& arguments) {
  const Bound bound("index", arguments, {"", "", ""}, 1);
  const Values items = list_of(self);
  const auto size = static_cast<int64_t>(items.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  for (int64_t i = clamp(bound.integer(1, 0)); i < clamp(bound.integer(2, size)); ++i)
    if (equal(items[static_cast<size_t>(i)], bound[0])) return i;
  fail(repr(bound[0]), " is not in ", type_name(self));
}

Value count_of(const Value& self, const Arguments& arguments) {
  const Bound bound("count", arguments, {""}, 1);
  const Values items = list_of(self);
  return static_cast<int64_t>(std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(item, bound[0]); }));
}

std::optional<Value> sequence_attribute(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kChanging = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  if (name == "index") return method(value, [value](const Arguments& arguments) { return index_of(value, arguments); });
  if (name == "count") return method(value, [value](const Arguments& arguments) { return count_of(value, arguments); });
  if (value.is(Kind::list)) {
    if (one_of(name, kChanging)) return unsafe_attribute(value, name);
    if (name == "copy")
      return method(value, [value](const Arguments& arguments) {
        static_cast<void>(Bound("copy", arguments, {}));
        return Value::list(value.items());
      });
  } else if (value.is(Kind::tuple) && value.sequence().group && (name == "grouper" || name == "list")) {
    return value.items()[name == "grouper" ? 0 : 1];
  }
  return std::nullopt;
}

std::optional<Value> dict_attribute(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kChanging = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::array<std::string_view, 3> kViews = {"keys", "values", "items"};
  if (one_of(name, kChanging)) return unsafe_attribute(value, name);
  if (one_of(name, kViews)) {
    const auto what = static_cast<View::What>(std::find(kViews.begin(), kViews.end(), name) - kViews.begin());
    return method(value, [value, what](const Arguments& arguments) -> Value {
      static_cast<void>(Bound("dict method", arguments, {}));
      return std::make_shared<const View>(View{what, value.dict()});
    });
  }
  if (name == "get")
    return method(value, [value](const Arguments& arguments) -> Value {
      const Bound bound("get", arguments, {"", ""}, 1);
      const Value* found = value.dict()->find(bound[0]);
      return found != nullptr ? *found : bound.given(1) ? bound[1] : Value(Value::None{});
    });
  if (name == "copy")
    return method(value, [value](const Arguments& arguments) {
      static_cast<void>(Bound("copy", arguments, {}));
      return value;
    });
  if (name == "fromkeys") return refused_method(value, name);
  return std::nullopt;
}

std::optional<Value> number_attribute(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kMethods = {"as_integer_ratio", "bit_count", "bit_length", "conjugate",
                                                               "from_bytes",       "fromhex",   "hex",        "to_bytes"};
  const bool real = value.is(Kind::real);
  if (name == "real" || (!real && name == "numerator")) return plus(value);
  if (name == "imag") return real ? Value(0.0) : Value(0);
  if (!real && name == "denominator") return Value(1);
  const bool floats_only = name == "hex" || name == "fromhex", both = name == "as_integer_ratio" || name == "conjugate";
  if (name == "is_integer" && real) return refused_method(value, name);
  if (one_of(name, kMethods) && (both || floats_only == real)) return refused_method(value, name);
  return std::nullopt;
}

// What Python's getattr would find, made safe; nothing when it would raise AttributeError.
std::optional<Value> find_attribute(const Value& value, std::string_view name) {
  if (value.is(Kind::space)) {
    const Value* found = value.space().find(name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  // Every object has attributes like __class__, all of them out of bounds.
  if (name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__") return unsafe_attribute(value, name);
  switch (value.kind()) {
    case Kind::text:
      if (!has_text_method(name)) return std::nullopt;
      return method(value,
                    [value, name = std::string(name)](const Arguments& arguments) { return *call_text_method(value, name, arguments); });
    case Kind::list:
    case Kind::tuple:
      return sequence_attribute(value, name);
    case Kind::dict:
      return dict_attribute(value, name);
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      return number_attribute(value, name);
    case Kind::range:
      if (name == "start") return Value(value.range().start);
      if (name == "stop") return Value(value.range().stop);
      if (name == "step") return Value(value.range().step);
      return sequence_attribute(value, name);
    case Kind::view:
      if (name == "isdisjoint" || name == "mapping") return refused_method(value, name);
      return std::nullopt;
    case Kind::object:
      return value.object().attribute ? value.object().attribute(name) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// value[key] where Python would not raise TypeError or LookupError.
std::optional<Value> find_item(const Value& value, const Value& key) {
  if (value.is(Kind::dict)) {
    if (key.is(Kind::list) || key.is(Kind::dict) || key.is(Kind::view)) return std::nullopt;  // unhashable
    const Value* found = value.dict()->find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if ((value.is_text() || value.is_sequence() || value.is(Kind::range)) && key.is_integral()) return item_at(value, key.integer());
  return std::nullopt;
}

}  // namespace

Value get_attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) fail_undefined(value);
  if (auto found = find_attribute(value, name)) {
    if (value.is(Kind::dict) && found->is_undefined() && name.front() == '_')  // a key may look like a hidden attribute
      if (const Value* item = value.dict()->find_text(name)) return *item;
    return *found;
  }
  if (value.is(Kind::dict))
    if (const Value* item = value.dict()->find_text(name)) return *item;
  return no_attribute(value, name);
}

Value get_item(const Value& value, const Value& key) {
  if (value.is_undefined()) fail_undefined(value);
  if (auto found = find_item(value, key)) return *found;
  if (!key.is_text()) return Value::undefined(str(described(value), " has no element ", key.is_number() ? repr(key) : type_name(key)));
  if (auto found = find_attribute(value, key.bytes())) return *found;
  return no_attribute(value, key.bytes());
}

Value get_only_attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) fail_undefined(value);
  const auto found = find_attribute(value, name);
  return found ? *found : no_attribute(value, name);
}

bool is_callable(const Value& value) { return value.is_undefined() || (value.is(Kind::object) && static_cast<bool>(value.object().call)); }

Value call(const Value& function, const Arguments& arguments) {
  if (function.is_undefined()) fail_undefined(function);
  if (!is_callable(function)) fail("'", type_name(function), "' object is not callable");
  return function.object().call(arguments);
}

Value make_function(std::string type, std::function<Value(const Arguments&)> call) {
  return std::make_shared<const Object>(Object{std::move(type), std::move(call)});
}

}  // namespace kedge::jinja
