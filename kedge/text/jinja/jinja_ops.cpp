#include "kedge/text/jinja/jinja_ops.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kedge/core/utf8.h"
#include "kedge/text/jinja/jinja_format.h"
#include "kedge/text/jinja/jinja_print.h"

namespace kedge::jinja {
namespace {

constexpr std::array<std::string_view, 7> kOperators = {"+", "-", "*", "/", "//", "%", "** or pow()"};
constexpr std::array<std::string_view, 8> kComparisons = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};

[[noreturn]] void fail_operands(Operator op, const Value& left, const Value& right) {
  fail("unsupported operand type(s) for ", kOperators.at(static_cast<size_t>(op)), ": '", type_name(left), "' and '", type_name(right),
       "'");
}

[[noreturn]] void fail_too_large() { fail("an integer beyond 64 bits"); }

int64_t floor_div(int64_t left, int64_t right) {
  if (right == -1) {
    if (left == std::numeric_limits<int64_t>::min()) fail_too_large();
    return -left;
  }
  const int64_t quotient = left / right;
  return left % right != 0 && (left % right < 0) != (right < 0) ? quotient - 1 : quotient;
}

int64_t floor_mod(int64_t left, int64_t right) {
  if (right == -1) return 0;
  const int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

double float_mod(double left, double right) {
  const double rest = std::fmod(left, right);
  if (rest == 0) return std::copysign(0.0, right);
  return (rest < 0) != (right < 0) ? rest + right : rest;
}

double float_floor_div(double left, double right) {
  const double rest = float_mod(left, right);
  const double quotient = (left - rest) / right;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_too_large();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_too_large();
  }
  return result;
}

Value real_power(double base, double exponent) {
  if (base == 0 && exponent < 0) fail("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && std::floor(exponent) != exponent) fail("a complex number");
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) fail("(34, 'Numerical result out of range')");
  return result;
}

Value calculate_integers(Operator op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflow = false;
  if (right == 0 && (op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo))
    fail(op == Operator::divide ? "division by zero" : "integer division or modulo by zero");
  switch (op) {
    case Operator::add:
      overflow = __builtin_add_overflow(left, right, &result);
      break;
    case Operator::subtract:
      overflow = __builtin_sub_overflow(left, right, &result);
      break;
    case Operator::multiply:
      overflow = __builtin_mul_overflow(left, right, &result);
      break;
    case Operator::divide:
      // Wide enough to hold both exactly: Python rounds only once.
      return static_cast<double>(static_cast<long double>(left) / static_cast<long double>(right));
    case Operator::floor_divide:
      return floor_div(left, right);
    case Operator::modulo:
      return floor_mod(left, right);
    case Operator::power:
      return integer_power(left, right);
  }
  if (overflow) fail_too_large();
  return result;
}

Value calculate_reals(Operator op, double left, double right) {
  if (right == 0 && (op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo)) fail("float division by zero");
  switch (op) {
    case Operator::add:
      return left + right;
    case Operator::subtract:
      return left - right;
    case Operator::multiply:
      return left * right;
    case Operator::divide:
      return left / right;
    case Operator::floor_divide:
      return float_floor_div(left, right);
    case Operator::modulo:
      return float_mod(left, right);
    case Operator::power:
      break;
  }
  return real_power(left, right);
}

Value concatenate(const Value& left, const Value& right) {
  if (left.is_text() && right.is_text()) {
    const bool safe = left.text().safe || right.text().safe;  // Markup escapes what it is joined with
    const auto part = [&](const Value& value) { return safe && !value.text().safe ? escape_html(value.bytes()) : value.bytes(); };
    Meter::room_for(left.bytes().size() + right.bytes().size());
    return {part(left) + part(right), safe};
  }
  if (left.is_sequence() && left.kind() == right.kind()) {
    Meter::room_for((left.items().size() + right.items().size()) * sizeof(Value));
    Values items = left.items();
    items.insert(items.end(), right.items().begin(), right.items().end());
    return left.is(Kind::list) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
  }
  if (left.is_text() || left.is_sequence())
    fail("can only concatenate ", type_name(left), " (not \"", type_name(right), "\") to ", type_name(left));
  fail_operands(Operator::add, left, right);
}

Value repeat(const Value& value, int64_t times) {
  const size_t size = value.is_text() ? value.bytes().size() : value.items().size() * sizeof(Value);
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  size_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) total = std::numeric_limits<size_t>::max();
  Meter::room_for(total);
  if (value.is_text()) {
    std::string out;
    if (size > 0) {
      out.reserve(total);
      for (size_t i = 0; i < count; ++i) out += value.bytes();
    }
    return {std::move(out), value.text().safe};
  }
  Values items;
  if (size > 0)
    for (size_t i = 0; i < count; ++i) items.insert(items.end(), value.items().begin(), value.items().end());
  return value.is(Kind::list) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool ordered(Comparison op, int sign) {
  switch (op) {
    case Comparison::less:
      return sign < 0;
    case Comparison::less_equal:
      return sign <= 0;
    case Comparison::greater:
      return sign > 0;
    default:
      return sign >= 0;
  }
}

bool order(Comparison op, const Value& left, const Value& right) {
  Meter::step();
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (left.is_integral() && right.is_integral())
    return ordered(op, left.integer() < right.integer() ? -1 : left.integer() > right.integer());
  if (left.is_number() && right.is_number()) {
    const double a = left.real(), b = right.real();
    if (std::isnan(a) || std::isnan(b)) return false;
    return ordered(op, a < b ? -1 : a > b);
  }
  if (left.is_text() && right.is_text()) {  // the order of UTF-8 bytes is that of code points
    Meter::step_bytes(std::min(left.bytes().size(), right.bytes().size()));
    return ordered(op, left.bytes().compare(right.bytes()));
  }
  if (left.is_sequence() && left.kind() == right.kind()) {
    const Values &a = left.items(), &b = right.items();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (!equal(a[i], b[i])) return order(op, a[i], b[i]);
    return ordered(op, a.size() < b.size() ? -1 : a.size() > b.size());
  }
  fail("'", kComparisons.at(static_cast<size_t>(op)), "' not supported between instances of '", type_name(left), "' and '",
       type_name(right), "'");
}

// Python's rule for slice bounds: [first, last) by step, within a length.
struct Bounds {
  int64_t start, stop, step;
  [[nodiscard]] size_t count() const { return static_cast<size_t>(Range{start, stop, step}.length()); }
};

Bounds bounds_of(int64_t size, const Value& start, const Value& stop, const Value& step) {
  const auto number = [](const Value& value, int64_t otherwise) {
    if (value.is_none() || value.is_missing()) return otherwise;
    if (!value.is_integral()) fail("slice indices must be integers or None or have an __index__ method");
    return value.integer();
  };
  const int64_t by = number(step, 1);
  if (by == 0) fail("slice step cannot be zero");
  const int64_t lowest = by < 0 ? -1 : 0, highest = by < 0 ? size - 1 : size;
  const auto clamp = [&](int64_t at) { return at < 0 ? std::max(at + size, lowest) : std::min(at, highest); };
  const bool has_start = !start.is_none() && !start.is_missing(), has_stop = !stop.is_none() && !stop.is_missing();
  return {has_start ? clamp(number(start, 0)) : (by < 0 ? highest : lowest),
          has_stop ? clamp(number(stop, 0)) : (by < 0 ? lowest : highest), by};
}

Value slice_text(const Text& text, const Bounds& bounds) {
  if (bounds.step == 1) {
    const auto begin = static_cast<size_t>(bounds.start), end = static_cast<size_t>(std::max(bounds.start, bounds.stop));
    return {std::string(characters(text, begin, end)), text.safe};
  }
  std::vector<std::string_view> pieces;
  for (std::string_view rest = text.bytes; !rest.empty(); rest.remove_prefix(utf8_length(rest)))
    pieces.push_back(rest.substr(0, utf8_length(rest)));
  std::string out;
  for (size_t i = 0; i < bounds.count(); ++i) out += pieces[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)];
  return {std::move(out), text.safe};
}

// Unsigned on the way: the distance from the start may be larger than any integer, the result is not.
Value value_of(const Range& range, int64_t index) {
  return static_cast<int64_t>(static_cast<uint64_t>(range.start) + static_cast<uint64_t>(index) * static_cast<uint64_t>(range.step));
}

std::function<bool(Value&)> iterate_text(const Value& value) {
  return [value, at = size_t{0}](Value& item) mutable {
    const std::string_view rest = std::string_view(value.bytes()).substr(at);
    if (rest.empty()) return false;
    const size_t size = utf8_length(rest);
    item = Value(rest.substr(0, size));
    at += size;
    return true;
  };
}

std::function<bool(Value&)> iterate_dict(std::shared_ptr<const Dict> dict, View::What what) {
  return [dict = std::move(dict), what, at = size_t{0}](Value& item) mutable {
    if (at == dict->items.size()) return false;
    const auto& [key, value] = dict->items[at++];
    item = what == View::What::keys ? key : what == View::What::values ? value : Value::tuple({key, value});
    return true;
  };
}

}  // namespace

void fail_undefined(const Value& value) { fail(value.why_undefined()); }

size_t find_bytes(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  const size_t at = found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  Meter::step_bytes(std::min(at, text.size()) - from + part.size());
  return at;
}

Value calculate(Operator op, const Value& left, const Value& right) {
  if (op == Operator::modulo && left.is_text()) return printf_format(left, right);
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (left.is_integral() && right.is_integral()) return calculate_integers(op, left.integer(), right.integer());
  if (left.is_number() && right.is_number()) return calculate_reals(op, left.real(), right.real());
  if (op == Operator::add) return concatenate(left, right);
  if (op == Operator::multiply) {
    if ((left.is_text() || left.is_sequence()) && right.is_integral()) return repeat(left, right.integer());
    if ((right.is_text() || right.is_sequence()) && left.is_integral()) return repeat(right, left.integer());
  }
  if (left.is(Kind::view) || right.is(Kind::view))
    fail("set operations on ", type_name(left), " and ", type_name(right), " are not supported");
  fail_operands(op, left, right);
}

Value negate(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is(Kind::real)) return -value.real();
  if (!value.is_integral()) fail("bad operand type for unary -: '", type_name(value), "'");
  return calculate_integers(Operator::subtract, 0, value.integer());
}

Value plus(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_number()) fail("bad operand type for unary +: '", type_name(value), "'");
  return value.is(Kind::real) ? value : Value(value.integer());
}

bool compare(Comparison op, const Value& left, const Value& right) {
  switch (op) {
    case Comparison::equal:
      return equal(left, right);
    case Comparison::not_equal:
      return !equal(left, right);
    case Comparison::in:
      return contains(right, left);
    case Comparison::not_in:
      return !contains(right, left);
    default:
      return order(op, left, right);
  }
}

bool less(const Value& left, const Value& right) { return order(Comparison::less, left, right); }

bool contains(const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) fail("'in <string>' requires string as left operand, not ", type_name(item));
    return find_bytes(container.bytes(), item.bytes()) != std::string::npos;
  }
  if (container.is(Kind::dict)) return container.dict()->find(item) != nullptr;
  if (container.is(Kind::view) && container.view().what == View::What::keys) return container.view().dict->find(item) != nullptr;
  if (!is_iterable(container)) fail("argument of type '", type_name(container), "' is not iterable");
  const auto next = iterate(container);
  for (Value one; next(one);)
    if (one.same_as(item) || equal(one, item)) return true;
  return false;
}

bool has_length(const Value& value) {
  if (value.is(Kind::object)) return static_cast<bool>(value.object().length);
  return value.is_text() || value.is_sequence() || value.is(Kind::dict) || value.is(Kind::range) || value.is(Kind::view) ||
         value.is_undefined();
}

int64_t length(const Value& value) {
  if (!has_length(value)) fail("object of type '", type_name(value), "' has no len()");
  switch (value.kind()) {
    case Kind::text:
      return static_cast<int64_t>(value.text().length);
    case Kind::dict:
      return static_cast<int64_t>(value.dict()->items.size());
    case Kind::view:
      return static_cast<int64_t>(value.view().dict->items.size());
    case Kind::range:
      return value.range().length();
    case Kind::object:
      return value.object().length();
    case Kind::undefined:
      return 0;
    default:
      return static_cast<int64_t>(value.items().size());
  }
}

bool is_iterable(const Value& value) { return value.is(Kind::iterator) || (has_length(value) && !value.is(Kind::object)); }

std::function<bool(Value&)> iterate(const Value& value) {
  switch (value.kind()) {
    case Kind::text:
      return iterate_text(value);
    case Kind::list:
    case Kind::tuple:
      return [value, at = size_t{0}](Value& item) mutable {
        if (at == value.items().size()) return false;
        item = value.items()[at++];
        return true;
      };
    case Kind::dict:
      return iterate_dict(value.dict(), View::What::keys);
    case Kind::view:
      return iterate_dict(value.view().dict, value.view().what);
    case Kind::range:
      return [value, at = int64_t{0}](Value& item) mutable {
        if (at == value.range().length()) return false;
        item = value_of(value.range(), at++);
        return true;
      };
    case Kind::iterator:
      return [value](Value& item) { return value.iterator().next(item); };
    case Kind::undefined:
      return [](Value&) { return false; };
    default:
      fail("'", type_name(value), "' object is not iterable");
  }
}

Values list_of(const Value& value) {
  if (value.is_sequence()) return value.items();
  Values items;
  const auto next = iterate(value);
  for (Value item; next(item);) {
    Meter::step();
    Meter::room_for((items.size() + 1) * sizeof(Value));
    items.push_back(item);
  }
  return items;
}

std::string_view characters(const Text& text, size_t begin, size_t end) {
  const std::string_view bytes = text.bytes;
  if (text.length == bytes.size()) return bytes.substr(begin, end - begin);
  Meter::step_bytes(bytes.size());
  size_t at = 0;
  const auto advance = [&](size_t count) {
    while (count-- > 0) at += utf8_length(bytes.substr(at));
    return at;
  };
  const size_t first = advance(begin);
  return bytes.substr(first, advance(end - begin) - first);
}

std::optional<Value> item_at(const Value& value, int64_t index) {
  const int64_t size = length(value);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  const auto at = static_cast<size_t>(index);
  if (value.is_text()) return Value(std::string(characters(value.text(), at, at + 1)), value.text().safe);
  if (value.is(Kind::range)) return value_of(value.range(), index);
  return value.items()[at];
}

Value slice(const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_text() && !value.is_sequence() && !value.is(Kind::range)) {
    if (value.is(Kind::dict)) fail("unhashable type: 'slice'");
    fail("'", type_name(value), "' object is not subscriptable");
  }
  const Bounds bounds = bounds_of(length(value), start, stop, step);
  if (value.is_text()) return slice_text(value.text(), bounds);
  if (value.is(Kind::range)) {
    const Range& range = value.range();
    Range part{};
    if (__builtin_mul_overflow(bounds.start, range.step, &part.start) || __builtin_add_overflow(part.start, range.start, &part.start) ||
        __builtin_mul_overflow(bounds.stop, range.step, &part.stop) || __builtin_add_overflow(part.stop, range.start, &part.stop) ||
        __builtin_mul_overflow(bounds.step, range.step, &part.step))
      fail_too_large();
    return std::make_shared<const Range>(part);
  }
  Values items;
  for (size_t i = 0; i < bounds.count(); ++i)
    items.push_back(value.items()[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)]);
  return value.is(Kind::list) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

}  // namespace kedge::jinja
