#include "kedge/text/jinja/jinja_globals.h"

#include <array>

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"

namespace kedge::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // the sandbox's

Value make_range(const Arguments& arguments) {
  const Bound bound("range", arguments, {"", "", ""}, 1);
  Range range{0, bound.integer(0), 1};
  if (bound.given(1)) range = {bound.integer(0), bound.integer(1), bound.integer(2, 1)};
  if (range.step == 0) fail("range() arg 3 must not be zero");
  if (range.length() > kMaxRange) fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (", kMaxRange, ").");
  return std::make_shared<const Range>(range);
}

std::vector<std::pair<Value, Value>> pairs_of(const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> pairs;
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument, got ", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Kind::dict)) {
      pairs = from.dict()->items;
    } else {
      for (const Value& item : list_of(from)) {
        const Values pair = list_of(item);
        if (pair.size() != 2) fail("dictionary update sequence element has length ", pair.size(), "; 2 is required");
        pairs.emplace_back(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) pairs.emplace_back(name, value);
  return pairs;
}

Value make_dict(const Arguments& arguments) { return std::make_shared<const Dict>(pairs_of(arguments)); }

Value dict_from_keys(const Arguments& arguments) {
  const Bound bound("fromkeys", arguments, {"", ""}, 1);
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value& key : list_of(bound[0])) pairs.emplace_back(key, bound.given(1) ? bound[1] : Value(Value::None{}));
  return std::make_shared<const Dict>(std::move(pairs));
}

Value dict_function() {
  Object object{"TemplateDict", make_dict};
  object.attribute = [](std::string_view name) -> std::optional<Value> {
    if (name != "fromkeys") return std::nullopt;
    return make_function("method", dict_from_keys);
  };
  return std::make_shared<const Object>(std::move(object));
}

void check_attribute_name(std::string_view name) {
  if (!name.empty() && name.front() == '_') fail("a namespace cannot store the underscore-prefixed attribute ", repr_text(name));
}

Value make_namespace(const Arguments& arguments, std::deque<Namespace>& spaces) {
  const Dict unique(pairs_of(arguments));
  Namespace space;
  for (const auto& [name, value] : unique.items) {
    if (!name.is_text()) fail("a namespace attribute must be named by text, not ", type_name(name));
    check_attribute_name(name.bytes());
    space.attributes.emplace_back(name.bytes(), value);
  }
  Meter::hold(sizeof(Namespace) + space.attributes.size() * 64);  // until the render ends
  spaces.push_back(std::move(space));
  return &spaces.back();
}

Value make_cycler(const Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  static_cast<void>(Bound("cycler", {{}, arguments.named}, {}));
  const Value items = Value::tuple(arguments.positional);
  const auto at = std::make_shared<size_t>(0);
  Object object{"Cycler"};
  object.depth = items.depth() + 1;
  object.attribute = [items, at](std::string_view name) -> std::optional<Value> {
    if (name == "current") return items.items()[*at];
    if (name == "pos") return Value(static_cast<int64_t>(*at));
    if (name == "items") return items;
    if (name == "next")
      return make_function("method", [items, at](const Arguments& none) {
        static_cast<void>(Bound("next", none, {}));
        const size_t before = std::exchange(*at, (*at + 1) % items.items().size());
        return items.items()[before];
      });
    if (name == "reset")
      return make_function("method", [at](const Arguments& none) -> Value {
        static_cast<void>(Bound("reset", none, {}));
        *at = 0;
        return Value::None{};
      });
    return std::nullopt;
  };
  return std::make_shared<const Object>(std::move(object));
}

Value make_joiner(const Arguments& arguments) {
  const Bound bound("joiner", arguments, {"sep"});
  const Value separator = bound.given(0) ? bound[0] : Value(", ");
  const auto used = std::make_shared<bool>(false);
  Object object{"Joiner"};
  object.depth = separator.depth() + 1;
  object.call = [separator, used](const Arguments& none) {
    static_cast<void>(Bound("joiner", none, {}));
    return std::exchange(*used, true) ? separator : Value("");
  };
  return std::make_shared<const Object>(std::move(object));
}

Value raise_exception(const Arguments& arguments) { fail(to_text(Bound("raise_exception", arguments, {"message"}, 1)[0])); }

// datetime.strftime for a time without a zone: %f is microseconds, %z and %Z are empty, the rest is the C library's.
Value format_time(const Arguments& arguments, const std::optional<std::tm>& now) {
  std::tm time{};
  if (now) {
    time = *now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    ::localtime_r(&seconds, &time);
  }
  const Bound bound("strftime_now", arguments, {"format"}, 1);
  std::string format;
  const std::string& given = bound.text(0);
  if (given.size() > 1000) fail("strftime_now: a format of more than 1000 bytes");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 == given.size()) {
      format += given[i];
    } else if (const char c = given[++i]; c == 'f') {
      format += "000000";
    } else if (c != 'z' && c != 'Z') {
      format += '%', format += c;
    }
  }
  std::array<char, 8192> text{};
  const size_t size = std::strftime(text.data(), text.size(), format.c_str(), &time);
  return Value(std::string(text.data(), size));
}

}  // namespace

void set_attribute(Namespace& space, std::string_view name, Value value) {
  check_attribute_name(name);
  space.set(name, std::move(value));
}

void add_globals(Variables& variables, std::deque<Namespace>& spaces, const std::optional<std::tm>& now) {
  variables.emplace("range", make_function("function", make_range));
  variables.emplace("dict", dict_function());
  variables.emplace("lipsum", make_function("function", [](const Arguments&) -> Value { fail("the function lipsum is not supported"); }));
  variables.emplace("cycler", make_function("type", make_cycler));
  variables.emplace("joiner", make_function("type", make_joiner));
  variables.emplace("namespace",
                    make_function("type", [&spaces](const Arguments& arguments) { return make_namespace(arguments, spaces); }));
  variables.emplace("raise_exception", make_function("function", raise_exception));
  variables.emplace("strftime_now", make_function("function", [now](const Arguments& arguments) { return format_time(arguments, now); }));
}

}  // namespace kedge::jinja
