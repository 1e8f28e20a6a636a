#include "kedge/text/jinja/jinja_list_filters.h"

#include <algorithm>
#include <unordered_set>

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_numbers.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/jinja/jinja_tests.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge::jinja {
namespace {

// "address.city.0" looked up step by step, as items before attributes; for sort, a comma between several.
class Getter {
 public:
  explicit Getter(const Value& attribute) {
    if (attribute.is_missing() || attribute.is_none()) return;
    if (!attribute.is_text()) {
      parts_.push_back(attribute);
      return;
    }
    std::string_view rest = attribute.bytes();
    while (true) {
      const size_t dot = rest.find('.');
      const std::string_view part = rest.substr(0, dot);
      const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
      parts_.push_back(digits ? Value(*parse_integer(part)) : Value(part));
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
    }
  }

  [[nodiscard]] Value operator()(Value item, const Value& otherwise = Value()) const {
    for (const Value& part : parts_) {
      item = get_item(item, part);
      if (item.is_undefined() && !otherwise.is_missing() && !otherwise.is_none()) item = otherwise;
    }
    return item;
  }

 private:
  Values parts_;
};

Value ignoring_case(const Value& value, bool case_sensitive) {
  return value.is_text() && !case_sensitive ? Value(py_lower(value.bytes())) : value;
}

// Items with the keys they are ordered by.
using Keyed = std::vector<std::pair<Value, Value>>;

Values sorted(Keyed items, bool reverse) {
  std::stable_sort(items.begin(), items.end(),
                   [&](const auto& a, const auto& b) { return reverse ? less(b.first, a.first) : less(a.first, b.first); });
  Values out;
  for (auto& item : items) out.push_back(std::move(item.second));
  return out;
}

// Starts `make` when the first item is asked for, and reads from what it gives: as a generator function does.
Value generator(const Value& over, const Arguments& arguments, std::function<std::function<bool(Value&)>()> make) {
  size_t inner = over.depth();
  for (const Value& argument : arguments.positional) inner = std::max(inner, argument.depth());
  for (const auto& [name, argument] : arguments.named) inner = std::max(inner, argument.depth());
  return Value::iterator("generator", inner, [make = std::move(make), next = std::function<bool(Value&)>()](Value& item) mutable {
    Meter::step();
    if (!next) next = make();
    return next(item);
  });
}

std::function<bool(Value&)> nothing() {
  return [](Value&) { return false; };
}

Value map(const Value& value, const Arguments& arguments) {
  return generator(value, arguments, [value, arguments]() -> std::function<bool(Value&)> {
    if (!truth(value)) return nothing();
    const bool by_attribute = arguments.positional.empty() && std::any_of(arguments.named.begin(), arguments.named.end(),
                                                                          [](const auto& pair) { return pair.first == "attribute"; });
    if (by_attribute) {
      const Bound bound("map", arguments, {"attribute", "default"});
      return [next = iterate(value), getter = Getter(bound[0]), otherwise = bound[1]](Value& item) {
        if (!next(item)) return false;
        item = getter(item, otherwise);
        return true;
      };
    }
    if (arguments.positional.empty()) fail("map requires a filter argument");
    const Value name = arguments.positional[0];
    if (!name.is_text()) fail("No filter named ", to_text(name), ".");
    Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    return [next = iterate(value), name, rest = std::move(rest)](Value& item) {
      if (!next(item)) return false;
      item = call_filter(name.bytes(), item, rest);
      return true;
    };
  });
}

Value choose(const Value& value, const Arguments& arguments, bool keep, bool by_attribute) {
  return generator(value, arguments, [=]() -> std::function<bool(Value&)> {
    if (!truth(value)) return nothing();
    const size_t offset = by_attribute ? 1 : 0;
    const Values& given = arguments.positional;
    if (given.size() < offset) fail("Missing parameter for attribute name");
    const Getter getter(by_attribute ? given[0] : Value());
    const Value test = given.size() > offset ? given[offset] : Value();
    if (!test.is_missing() && !test.is_text()) fail("No test named ", to_text(test), ".");
    Arguments rest;
    if (given.size() > offset + 1) rest.positional.assign(given.begin() + static_cast<std::ptrdiff_t>(offset) + 1, given.end());
    rest.named = arguments.named;
    return [=, next = iterate(value)](Value& item) {
      while (next(item)) {
        Meter::step();
        const Value subject = getter(item);
        if ((test.is_missing() ? truth(subject) : call_test(test.bytes(), subject, rest)) == keep) return true;
      }
      return false;
    };
  });
}

Value select(const Value& value, const Arguments& arguments) { return choose(value, arguments, true, false); }
Value reject(const Value& value, const Arguments& arguments) { return choose(value, arguments, false, false); }
Value selectattr(const Value& value, const Arguments& arguments) { return choose(value, arguments, true, true); }
Value rejectattr(const Value& value, const Arguments& arguments) { return choose(value, arguments, false, true); }

Value unique(const Value& value, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  return generator(value, arguments, [value, case_sensitive = bound.flag(0), attribute = bound[1]]() -> std::function<bool(Value&)> {
    return [=, next = iterate(value), getter = Getter(attribute), seen = std::unordered_set<std::string>()](Value& item) mutable {
      while (next(item)) {
        Meter::step();
        if (seen.insert(hash_key(ignoring_case(getter(item), case_sensitive))).second) return true;
      }
      return false;
    };
  });
}

Value items(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("items", arguments, {}));
  return generator(value, arguments, [value]() -> std::function<bool(Value&)> {
    if (value.is_undefined()) return nothing();
    if (!value.is(Kind::dict)) fail("Can only get item pairs from a mapping.");
    return iterate(std::make_shared<const View>(View{View::What::items, value.dict()}));
  });
}

Value batch(const Value& value, const Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  return generator(value, arguments, [value, count = bound[0], fill = bound[1]]() -> std::function<bool(Value&)> {
    return [=, next = iterate(value), ahead = Value(), done = false](Value& row) mutable {
      Values line;
      if (!ahead.is_missing()) line.push_back(std::exchange(ahead, Value()));
      for (Value item; !done;) {
        if (!next(item)) {
          done = true;
        } else if (equal(count, static_cast<int64_t>(line.size()))) {
          ahead = item;
          break;
        } else {
          line.push_back(item);
        }
      }
      if (line.empty() && (done || !equal(count, 0))) return false;
      if (done && !fill.is_missing() && !fill.is_none() && less(static_cast<int64_t>(line.size()), count)) {
        Meter::room_for(static_cast<size_t>(std::min<double>(count.real(), 1e15)) * sizeof(Value));
        while (less(static_cast<int64_t>(line.size()), count)) line.push_back(fill);
      }
      row = Value::list(std::move(line));
      return true;
    };
  });
}

Value slices(const Value& value, const Arguments& arguments) {
  const Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
  return generator(value, arguments, [value, count = bound.integer(0), fill = bound[1]]() -> std::function<bool(Value&)> {
    const Values all = list_of(value);
    if (count == 0) fail("integer division or modulo by zero");
    const auto size = static_cast<int64_t>(all.size());
    return [=, number = int64_t{0}](Value& row) mutable {
      if (number >= count) return false;
      const int64_t each = size / count, longer = size % count;
      const int64_t start = number * each + std::min(number, longer), end = start + each + (number < longer ? 1 : 0);
      Values part(all.begin() + start, all.begin() + end);
      if (!fill.is_missing() && !fill.is_none() && number >= longer) part.push_back(fill);
      ++number;
      row = Value::list(std::move(part));
      return true;
    };
  });
}

Value sort(const Value& value, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Getter> getters;
  if (bound[2].is_text()) {
    std::string_view rest = bound[2].bytes();
    for (size_t comma = 0; comma != std::string_view::npos; rest.remove_prefix(std::min(rest.size(), comma + 1))) {
      comma = rest.find(',');
      getters.emplace_back(Value(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
    }
  } else {
    getters.emplace_back(bound[2]);
  }
  Keyed keyed;
  for (const Value& item : list_of(value)) {
    Values key;
    for (const Getter& getter : getters) key.push_back(ignoring_case(getter(item), bound.flag(1)));
    keyed.emplace_back(Value::list(std::move(key)), item);
  }
  return Value::list(sorted(std::move(keyed), bound.flag(0)));
}

Value dictsort(const Value& value, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = bound.given(1) ? to_text(bound[1]) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is(Kind::dict)) fail("'", type_name(value), "' object has no attribute 'items'");
  Keyed keyed;
  for (const auto& [key, item] : value.dict()->items)
    keyed.emplace_back(ignoring_case(by == "key" ? key : item, bound.flag(0)), Value::tuple({key, item}));
  return Value::list(sorted(std::move(keyed), bound.flag(2)));
}

Value groupby(const Value& value, const Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const Getter getter(bound[0]);
  const auto key = [&](const Value& item) { return ignoring_case(getter(item, bound[1]), bound.flag(2)); };
  Keyed keyed;
  for (const Value& item : list_of(value)) keyed.emplace_back(key(item), item);
  const Values ordered = sorted(std::move(keyed), false);
  Values groups;
  for (size_t begin = 0; begin < ordered.size();) {
    size_t end = begin + 1;
    while (end < ordered.size() && equal(key(ordered[end]), key(ordered[begin]))) ++end;
    Values members(ordered.begin() + static_cast<std::ptrdiff_t>(begin), ordered.begin() + static_cast<std::ptrdiff_t>(end));
    const Value shown = bound.flag(2) ? key(ordered[begin]) : getter(ordered[begin], bound[1]);
    groups.push_back(Value::group(shown, Value::list(std::move(members))));
    begin = end;
  }
  return Value::list(std::move(groups));
}

Value extreme(const Value& value, const Arguments& arguments, bool largest) {
  const Bound bound(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const Getter getter(bound[1]);
  Value best, best_key;
  const auto next = iterate(value);
  for (Value item; next(item);) {
    const Value key = ignoring_case(getter(item), bound.flag(0));
    if (best.is_missing() || (largest ? less(best_key, key) : less(key, best_key))) best = item, best_key = key;
  }
  return best.is_missing() ? Value::undefined("No aggregated item, sequence was empty.") : best;
}

Value min(const Value& value, const Arguments& arguments) { return extreme(value, arguments, false); }
Value max(const Value& value, const Arguments& arguments) { return extreme(value, arguments, true); }

Value sum(const Value& value, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  const Getter getter(bound[0]);
  Value total = bound.given(1) ? bound[1] : Value(0);
  if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const auto next = iterate(value);
  for (Value item; next(item);) total = calculate(Operator::add, total, getter(item));
  return total;
}

Value join(const Value& value, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const Getter getter(bound[1]);
  const std::string separator = bound.given(0) ? to_text(bound[0]) : "";
  std::string out;
  bool first = true;
  const auto next = iterate(value);
  for (Value item; next(item); first = false) {
    Meter::step();
    if (!first) append(out, separator);
    append(out, to_text(getter(item)));
  }
  return Value(std::move(out));
}

Value first(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("first", arguments, {}));
  Value item;
  return iterate(value)(item) ? item : Value::undefined("No first item, sequence was empty.");
}

bool is_reversible(const Value& value) { return has_length(value) && !value.is(Kind::object); }

Value last(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("last", arguments, {}));
  if (!is_reversible(value)) fail("'", type_name(value), "' object is not reversible");
  if (length(value) == 0) return Value::undefined("No last item, sequence was empty.");
  return value.is_text() || value.is_sequence() || value.is(Kind::range) ? *item_at(value, -1) : list_of(value).back();
}

Value reverse(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("reverse", arguments, {}));
  if (value.is_text()) return slice(value, Value(), Value(), -1);
  if (!is_iterable(value)) fail("argument must be iterable");
  Values items = list_of(value);
  std::reverse(items.begin(), items.end());
  const Value backwards = Value::list(std::move(items));
  if (!is_reversible(value)) return backwards;
  return Value::iterator(type_name(value) + "_reverseiterator", backwards.depth(), iterate(backwards));
}

Value list(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("list", arguments, {}));
  return Value::list(list_of(value));
}

Value count(const Value& value, const Arguments& arguments) {
  static_cast<void>(Bound("length", arguments, {}));
  return length(value);
}

}  // namespace

const Filters& list_filters() {
  static const Filters table = {
      {"batch", batch},     {"count", count},     {"dictsort", dictsort},
      {"first", first},     {"groupby", groupby}, {"items", items},
      {"join", join},       {"last", last},       {"length", count},
      {"list", list},       {"map", map},         {"max", max},
      {"min", min},         {"reject", reject},   {"rejectattr", rejectattr},
      {"reverse", reverse}, {"select", select},   {"selectattr", selectattr},
      {"slice", slices},    {"sort", sort},       {"sum", sum},
      {"unique", unique},
  };
  return table;
}

}  // namespace kedge::jinja
