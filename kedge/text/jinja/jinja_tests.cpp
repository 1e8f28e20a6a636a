#include "kedge/text/jinja/jinja_tests.h"

#include <functional>
#include <map>

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_filters.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/jinja/jinja_text_methods.h"

namespace kedge::jinja {
namespace {

using Test = std::function<bool(const Value&, const Arguments&)>;

Test plain(bool (*holds)(const Value&)) {
  return [holds](const Value& value, const Arguments& arguments) {
    static_cast<void>(Bound("test", arguments, {}));
    return holds(value);
  };
}

Test compared(Comparison op) {
  return [op](const Value& value, const Arguments& arguments) { return compare(op, value, Bound("test", arguments, {""}, 1)[0]); };
}

Value rest_of(const Value& value, const Value& divisor) { return calculate(Operator::modulo, value, divisor); }

bool is_known_name(const Value& value, bool (*known)(std::string_view)) {
  static_cast<void>(hash_key(value));  // a Fault for what cannot be looked up
  return value.is_text() && known(value.bytes());
}

const std::map<std::string_view, Test>& tests() {
  static const std::map<std::string_view, Test> table = {
      {"odd", plain([](const Value& v) { return equal(rest_of(v, 2), 1); })},
      {"even", plain([](const Value& v) { return equal(rest_of(v, 2), 0); })},
      {"divisibleby", [](const Value& v, const Arguments& a) { return equal(rest_of(v, Bound("divisibleby", a, {"num"}, 1)[0]), 0); }},
      {"defined", plain([](const Value& v) { return !v.is_undefined(); })},
      {"undefined", plain([](const Value& v) { return v.is_undefined(); })},
      {"filter", plain([](const Value& v) { return is_known_name(v, has_filter); })},
      {"test", plain([](const Value& v) { return is_known_name(v, has_test); })},
      {"none", plain([](const Value& v) { return v.is_none(); })},
      {"boolean", plain([](const Value& v) { return v.is(Kind::boolean); })},
      {"false", plain([](const Value& v) { return v.is(Kind::boolean) && !v.boolean(); })},
      {"true", plain([](const Value& v) { return v.is(Kind::boolean) && v.boolean(); })},
      {"integer", plain([](const Value& v) { return v.is(Kind::integer); })},
      {"float", plain([](const Value& v) { return v.is(Kind::real); })},
      {"lower", plain([](const Value& v) { return is_lower_text(to_text(v)); })},
      {"upper", plain([](const Value& v) { return is_upper_text(to_text(v)); })},
      {"string", plain([](const Value& v) { return v.is_text(); })},
      {"mapping", plain([](const Value& v) { return v.is(Kind::dict); })},
      {"number", plain([](const Value& v) { return v.is_number(); })},
      {"sequence", plain([](const Value& v) { return has_length(v) && !v.is(Kind::view) && !v.is(Kind::object); })},
      {"iterable", plain([](const Value& v) { return is_iterable(v) || (v.is(Kind::object) && v.object().length); })},
      {"callable", plain(is_callable)},
      {"sameas", [](const Value& v, const Arguments& a) { return v.same_as(Bound("sameas", a, {"other"}, 1)[0]); }},
      {"escaped", plain([](const Value& v) { return v.is_text() && v.text().safe; })},
      {"in", [](const Value& v, const Arguments& a) { return contains(Bound("in", a, {"seq"}, 1)[0], v); }},
      {"==", compared(Comparison::equal)},
      {"eq", compared(Comparison::equal)},
      {"equalto", compared(Comparison::equal)},
      {"!=", compared(Comparison::not_equal)},
      {"ne", compared(Comparison::not_equal)},
      {">", compared(Comparison::greater)},
      {"gt", compared(Comparison::greater)},
      {"greaterthan", compared(Comparison::greater)},
      {"ge", compared(Comparison::greater_equal)},
      {">=", compared(Comparison::greater_equal)},
      {"<", compared(Comparison::less)},
      {"lt", compared(Comparison::less)},
      {"lessthan", compared(Comparison::less)},
      {"<=", compared(Comparison::less_equal)},
      {"le", compared(Comparison::less_equal)},
  };
  return table;
}

}  // namespace

bool has_test(std::string_view name) { return tests().count(name) > 0; }

bool call_test(std::string_view name, const Value& value, const Arguments& arguments) {
  const auto test = tests().find(name);
  if (test == tests().end()) fail("No test named ", repr_text(name), ".");
  Meter::step();
  return test->second(value, arguments);
}

}  // namespace kedge::jinja
