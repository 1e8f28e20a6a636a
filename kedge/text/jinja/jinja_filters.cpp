#include "kedge/text/jinja/jinja_filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "kedge/core/utf8.h"
#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_format.h"
#include "kedge/text/jinja/jinja_list_filters.h"
#include "kedge/text/jinja/jinja_numbers.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/jinja/jinja_text_methods.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge::jinja {
namespace {

// Text stays as it is, safe or not; anything else becomes its str().
Value soft_text(const Value& value) {
  Meter::step_characters(value.is_text() ? value.bytes().size() : 0);
  return value.is_text() ? value : Value(to_text(value));
}

Value changed(const Value& value, const Arguments& arguments, std::string (*change)(std::string_view)) {
  static_cast<void>(Bound("filter", arguments, {}));
  const Value text = soft_text(value);
  return {change(text.bytes()), text.text().safe};
}

Value upper(const Value& value, const Arguments& arguments) { return changed(value, arguments, py_upper); }
Value lower(const Value& value, const Arguments& arguments) { return changed(value, arguments, py_lower); }
Value capitalize(const Value& value, const Arguments& arguments) { return changed(value, arguments, py_capitalize); }

// Words begin after white space and after - ( { [ <; not quite what str.title does.
std::string title_words(std::string_view text) {
  const auto separates = [](char32_t c) { return py_is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos; };
  std::string out;
  while (!text.empty()) {
    const bool gap = separates(utf8_decode(text));
    size_t end = 0;
    while (end < text.size() && separates(utf8_decode(text.substr(end))) == gap) end += utf8_length(text.substr(end));
    const size_t first = utf8_length(text);
    out += py_upper(text.substr(0, first)) + py_lower(text.substr(first, end - first));
    text.remove_prefix(end);
  }
  return out;
}

Value title(const Value& value, const Arguments& arguments) { return changed(value, arguments, title_words); }

Value trim(const Value& value, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const Value text = soft_text(value);
  if (!bound.given(0) || bound[0].is_none()) return {std::string(py_strip(text.bytes())), text.text().safe};
  return {strip_characters(text.bytes(), bound.text(0), true, true), text.text().safe};
}

Value replace(const Value& value, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t count = !bound.given(2) || bound[2].is_none() ? -1 : bound.integer(2);
  return Value(replace_text(to_text(value), to_text(bound[0]), to_text(bound[1]), count));
}

Value otherwise(const Value& value, const Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  if (!value.is_undefined() && !(bound.flag(1) && !truth(value))) return value;
  return bound.given(0) ? bound[0] : Value("");
}

Value string(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("string", arguments, {}));
  return soft_text(value);
}

Value safe(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("safe", arguments, {}));
  return {to_text(value), true};
}

Value escape(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("escape", arguments, {}));
  if (value.is_text() && value.text().safe) return value;
  return {escape_html(to_text(value)), true};
}

Value forceescape(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("forceescape", arguments, {}));
  return {escape_html(to_text(value)), true};
}

Value indent(const Value& value, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_text()) fail("unsupported operand type(s) for +=: '", type_name(value), "' and 'str'");
  const Value width = !bound.given(0) ? Value("    ") : bound[0].is_text() ? bound[0] : calculate(Operator::multiply, " ", bound[0]);
  const std::vector<std::string> lines = split_lines(value.bytes() + "\n", false);
  std::string out = bound.flag(1) ? width.bytes() : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) append(out, "\n");
    if (i > 0 && (bound.flag(2) || !lines[i].empty())) append(out, width.bytes());
    append(out, lines[i]);
  }
  return {std::move(out), value.text().safe};
}

Value truncate(const Value& value, const Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const int64_t length = bound.integer(0, 255), leeway = bound.given(3) && !bound[3].is_none() ? bound.integer(3) : 5;
  const Value end = bound.given(2) ? bound[2] : Value("...");
  const int64_t end_length = jinja::length(end);
  if (length < end_length) fail("expected length >= ", end_length, ", got ", length);
  if (leeway < 0) fail("expected leeway >= 0, got ", leeway);
  if (jinja::length(value) <= length + leeway) return value;
  const Value cut = slice(value, Value(), length - end_length, Value());
  if (!cut.is_text()) fail("truncate expects text, found ", type_name(value));
  const size_t blank = cut.bytes().rfind(' ');
  const bool whole = bound.flag(1) || blank == std::string::npos;
  return calculate(Operator::add, whole ? cut : Value(cut.bytes().substr(0, blank), cut.text().safe), end);
}

Value center(const Value& value, const Arguments& arguments) {
  const Bound bound("center", arguments, {"width"});
  const Value text = soft_text(value);
  return {centered(text.text(), bound.integer(0, 80), " "), text.text().safe};
}

Value wordcount(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("wordcount", arguments, {}));
  const std::string text = to_text(value);
  Meter::step_characters(text.size());
  int64_t words = 0;
  bool inside = false;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    const char32_t c = utf8_decode(rest);
    const bool word = c == '_' || py_is_alnum(c);
    if (word && !inside) ++words;
    inside = word;
  }
  return words;
}

Value format(const Value& value, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) fail("can't handle positional and keyword arguments at the same time");
  if (arguments.named.empty()) return printf_format(soft_text(value), Value::tuple(arguments.positional));
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto& [name, named] : arguments.named) pairs.emplace_back(name, named);
  return printf_format(soft_text(value), std::make_shared<const Dict>(std::move(pairs)));
}

int64_t truncated(double value) {
  if (std::abs(value) >= 0x1p63) fail("an integer beyond 64 bits");
  return static_cast<int64_t>(value);
}

Value integer(const Value& value, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  const Value fallback = bound.given(0) ? bound[0] : Value(0);
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return value.integer();
  if (value.is(Kind::real)) {
    if (std::isinf(value.real())) fail("cannot convert float infinity to integer");
    return std::isnan(value.real()) ? fallback : Value(truncated(value.real()));
  }
  if (!value.is_text()) return fallback;
  if (const auto parsed = parse_integer(value.bytes(), bound.integer(1, 10))) return *parsed;
  const auto real = parse_real(value.bytes());
  return real && std::isfinite(*real) ? Value(truncated(*real)) : fallback;
}

Value real(const Value& value, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  const Value fallback = bound.given(0) ? bound[0] : Value(0.0);
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_number()) return value.real();
  const auto parsed = value.is_text() ? parse_real(value.bytes()) : std::nullopt;
  return parsed ? Value(*parsed) : fallback;
}

Value absolute(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("abs", arguments, {}));
  if (!value.is_number()) fail("bad operand type for abs(): '", type_name(value), "'");
  if (value.is(Kind::real)) return std::abs(value.real());
  return value.integer() < 0 ? negate(value) : plus(value);
}

Value round(const Value& value, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  const std::string method = bound.given(1) ? to_text(bound[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  if (value.is_undefined()) fail_undefined(value);
  if (method == "common") return rounded(value, bound.integer(0, 0));
  const Value unit = calculate(Operator::power, 10, bound.integer(0, 0));
  const Value scaled = calculate(Operator::multiply, value, unit);
  if (!scaled.is_number()) fail("must be real number, not ", type_name(scaled));
  if (scaled.is_integral()) return calculate(Operator::divide, scaled, unit);
  if (!std::isfinite(scaled.real())) fail("cannot convert float to integer");
  const double whole = method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real());
  return whole / unit.real();
}

Value filesizeformat(const Value& value, const Arguments& arguments) {
  const Bound bound("filesizeformat", arguments, {"binary"});
  const auto parsed = value.is_number() ? std::optional(value.real()) : value.is_text() ? parse_real(value.bytes()) : std::nullopt;
  if (!parsed) fail("could not convert ", type_name(value), " to float");
  const double bytes = *parsed, base = bound.flag(0) ? 1024 : 1000;
  if (bytes == 1) return "1 Byte";
  if (bytes < base) return Value(str(truncated(bytes), " Bytes"));
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  size_t at = 0;
  double unit = base * base;
  for (; at + 1 < kPrefixes.size() && bytes >= unit; ++at) unit *= base;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f ", base * bytes / unit);
  const std::string prefix = bound.flag(0) && at == 0 ? "K" : std::string(1, kPrefixes[at]);
  return Value(text.data() + prefix + (bound.flag(0) ? "iB" : "B"));
}

Value tojson(const Value& value, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0);
  style.sort_keys = bound.flag(3);
  if (bound.given(1) && !bound[1].is_none()) {
    style.indented = true;
    style.indent = bound[1].is_text() ? bound[1].bytes() : calculate(Operator::multiply, " ", bound.integer(1)).bytes();
    style.item_separator = ",";
  }
  if (bound.given(2) && !bound[2].is_none()) {
    const Values separators = list_of(bound[2]);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text()) fail("tojson: separators expects two texts");
    style.item_separator = separators[0].bytes(), style.key_separator = separators[1].bytes();
  }
  return Value(to_json(value, style));
}

Value attr(const Value& value, const Arguments& arguments) {
  return get_only_attribute(value, Bound("attr", arguments, {"name"}, 1).text(0));
}

const Filters& filters() {
  static const Filters table = [] {
    Filters all = {
        {"abs", absolute},
        {"attr", attr},
        {"capitalize", capitalize},
        {"center", center},
        {"d", otherwise},
        {"default", otherwise},
        {"e", escape},
        {"escape", escape},
        {"filesizeformat", filesizeformat},
        {"float", real},
        {"forceescape", forceescape},
        {"format", format},
        {"indent", indent},
        {"int", integer},
        {"lower", lower},
        {"replace", replace},
        {"round", round},
        {"safe", safe},
        {"string", string},
        {"title", title},
        {"tojson", tojson},
        {"trim", trim},
        {"truncate", truncate},
        {"upper", upper},
        {"wordcount", wordcount},
    };
    for (const std::string_view name : {"pprint", "random", "striptags", "urlencode", "urlize", "wordwrap", "xmlattr"})
      all.emplace(name, nullptr);
    all.insert(list_filters().begin(), list_filters().end());
    return all;
  }();
  return table;
}

}  // namespace

bool has_filter(std::string_view name) { return filters().count(name) > 0; }

Value call_filter(std::string_view name, const Value& value, const Arguments& arguments) {
  const auto filter = filters().find(name);
  if (filter == filters().end()) fail("No filter named ", repr_text(name), ".");
  if (filter->second == nullptr) fail("the filter ", repr_text(name), " is not supported");
  Meter::step();
  return filter->second(value, arguments);
}

}  // namespace kedge::jinja
