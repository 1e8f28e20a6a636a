#include "kedge/text/jinja/jinja_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kedge/core/utf8.h"

namespace kedge::jinja {
namespace {

constexpr size_t kMaxDepth = 300;
constexpr size_t kLargeDict = 8;

// Values are made everywhere, so the meter that counts them is the one of the render that runs on this thread.
thread_local Meter* current_meter = nullptr;

size_t depth_above(size_t inner) {
  if (inner >= kMaxDepth) fail("values are nested more than ", kMaxDepth, " levels deep");
  return inner + 1;
}

size_t depth_of(const Values& values) {
  size_t deepest = 0;
  for (const Value& value : values) deepest = std::max(deepest, value.depth());
  return depth_above(deepest);
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

bool equal_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return left.integer() == right.integer();
  if (left.is(Kind::real) && right.is(Kind::real)) return left.real() == right.real();
  const int64_t integer = left.is_integral() ? left.integer() : right.integer();
  const double real = left.is_integral() ? right.real() : left.real();
  // An integer above 2^53 may round to the same double without being equal to it.
  return static_cast<double>(integer) == real && std::abs(real) < 0x1p63 && static_cast<int64_t>(real) == integer;
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.items.size() != right.items.size()) return false;
  return std::all_of(left.items.begin(), left.items.end(), [&](const auto& pair) {
    const Value* other = right.find(pair.first);
    return other != nullptr && equal(pair.second, *other);
  });
}

bool equal_ranges(const Range& left, const Range& right) {
  if (left.length() != right.length()) return false;
  return left.length() == 0 || (left.start == right.start && (left.length() == 1 || left.step == right.step));
}

bool equal_views(const View& left, const View& right) {
  if (left.what != right.what || left.what == View::What::values) return false;
  if (left.what == View::What::items) return equal_dicts(*left.dict, *right.dict);
  const auto& keys = left.dict->items;
  return keys.size() == right.dict->items.size() &&
         std::all_of(keys.begin(), keys.end(), [&](const auto& pair) { return right.dict->find(pair.first) != nullptr; });
}

}  // namespace

Meter::Meter(const Limits& limits) : limits_(limits), outer_(current_meter) { current_meter = this; }

Meter::~Meter() { current_meter = outer_; }

void Meter::step(size_t count) {
  if (current_meter == nullptr) return;
  current_meter->steps_ += static_cast<int64_t>(count);
  if (current_meter->steps_ > current_meter->limits_.steps)
    fail("the template runs for more than ", current_meter->limits_.steps, " steps");
}

void Meter::room_for(size_t bytes) {
  if (current_meter == nullptr) return;
  const int64_t limit = current_meter->limits_.live_bytes;
  if (bytes > static_cast<size_t>(limit) || current_meter->live_bytes_ + static_cast<int64_t>(bytes) > limit)
    fail("the template's values take more than ", limit, " bytes");
}

void Meter::hold(size_t bytes) {
  if (current_meter == nullptr) return;
  room_for(bytes);
  step_bytes(bytes);
  current_meter->live_bytes_ += static_cast<int64_t>(bytes);
}

void Meter::release(size_t bytes) {
  if (current_meter != nullptr) current_meter->live_bytes_ -= static_cast<int64_t>(bytes);
}

struct Undefined {
  std::string message;
};

Text::Text(std::string text, bool is_safe)
    : bytes(std::move(text)), length(count_characters(bytes)), safe(is_safe), charge(sizeof(Text) + bytes.size()) {}

Sequence::Sequence(Values values, bool is_group)
    : items(std::move(values)), group(is_group), depth(depth_of(items)), charge(sizeof(Sequence) + items.size() * sizeof(Value)) {}

Dict::Dict(std::vector<std::pair<Value, Value>> pairs) : charge_(sizeof(Dict) + pairs.size() * sizeof(pairs[0])) {
  size_t deepest = 0;
  for (auto& pair : pairs) {
    Meter::step();
    deepest = std::max({deepest, pair.first.depth(), pair.second.depth()});
    if (const auto old = index_of(pair.first)) {
      items[*old].second = std::move(pair.second);
      continue;
    }
    items.push_back(std::move(pair));
    if (items.size() == kLargeDict + 1) {
      for (size_t i = 0; i < items.size(); ++i) index_.emplace(hash_key(items[i].first), i);
    } else if (items.size() > kLargeDict) {
      index_.emplace(hash_key(items.back().first), items.size() - 1);
    }
  }
  depth = depth_above(deepest);
}

std::optional<size_t> Dict::index_of(const Value& key) const {
  const std::string hashed = hash_key(key);
  if (!index_.empty()) {
    const auto found = index_.find(hashed);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found = std::find_if(items.begin(), items.end(), [&](const auto& pair) { return equal(pair.first, key); });
  return found == items.end() ? std::nullopt : std::optional(static_cast<size_t>(found - items.begin()));
}

const Value* Dict::find(const Value& key) const {
  const auto index = index_of(key);
  return index ? &items[*index].second : nullptr;
}

const Value* Dict::find_text(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find("s" + std::string(key));
    return found == index_.end() ? nullptr : &items[found->second].second;
  }
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const auto& pair) { return pair.first.is_text() && pair.first.bytes() == key; });
  return found == items.end() ? nullptr : &found->second;
}

int64_t Range::length() const {
  const bool up = step > 0;
  if (up ? start >= stop : start <= stop) return 0;
  // Unsigned, because the distance between two integers may be larger than any integer.
  const auto low = static_cast<uint64_t>(up ? start : stop), high = static_cast<uint64_t>(up ? stop : start);
  const uint64_t stride = up ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t count = (high - low - 1) / stride + 1;
  return static_cast<int64_t>(std::min(count, static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
}

const Value* Namespace::find(std::string_view name) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const auto& pair) { return pair.first == name; });
  return found == attributes.end() ? nullptr : &found->second;
}

void Namespace::set(std::string_view name, Value value) {
  const auto old = std::find_if(attributes.begin(), attributes.end(), [&](const auto& pair) { return pair.first == name; });
  if (old == attributes.end()) {
    attributes.emplace_back(std::string(name), std::move(value));
  } else {
    old->second = std::move(value);
  }
}

Value::Value(std::string text, bool safe) : value_(std::shared_ptr<const Text>(std::make_shared<Text>(std::move(text), safe))) {}

Value Value::list(Values items) {
  Value value;
  value.value_ = Tagged<List>{std::make_shared<Sequence>(std::move(items), false)};
  return value;
}

Value Value::tuple(Values items) {
  Value value;
  value.value_ = Tagged<Tuple>{std::make_shared<Sequence>(std::move(items), false)};
  return value;
}

Value Value::group(Value grouper, Value items) {
  Value value;
  value.value_ = Tagged<Tuple>{std::make_shared<Sequence>(Values{std::move(grouper), std::move(items)}, true)};
  return value;
}

Value Value::iterator(std::string type, size_t inner, std::function<bool(Value&)> next) {
  // A function that holds a value and a few more; its exact size is the library's secret.
  constexpr size_t kBytes = sizeof(Iterator) + 128;
  return std::shared_ptr<Iterator>(new Iterator{std::move(type), std::move(next), depth_above(inner), Charge(kBytes)});
}

Value Value::undefined(std::string message) {
  Value value;
  value.value_ = std::shared_ptr<const Undefined>(std::make_shared<Undefined>(Undefined{std::move(message)}));
  return value;
}

Value Value::from_json(const Json& json) {
  constexpr std::string_view kWhere = "template variable";
  switch (json.kind()) {
    case Json::Kind::null:
      return None{};
    case Json::Kind::boolean:
      return json.as_bool(kWhere);
    case Json::Kind::integer:
      return json.as_integer(kWhere);
    case Json::Kind::number:
      return json.as_number(kWhere);
    case Json::Kind::text:
      if (utf8_valid_prefix(json.as_text(kWhere)) != json.as_text(kWhere).size()) fail("a template variable holds text that is not UTF-8");
      return json.as_text(kWhere);
    case Json::Kind::array: {
      Values items;
      for (const Json& item : json.as_array(kWhere)) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case Json::Kind::object:
      break;
  }
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto& [key, value] : json.as_object(kWhere)) pairs.emplace_back(key, from_json(value));
  return std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(pairs)));
}

const std::string& Value::bytes() const { return text().bytes; }

const Sequence& Value::sequence() const {
  return is(Kind::list) ? *std::get<Tagged<List>>(value_).sequence : *std::get<Tagged<Tuple>>(value_).sequence;
}

const Values& Value::items() const { return sequence().items; }

const std::string& Value::why_undefined() const { return std::get<std::shared_ptr<const Undefined>>(value_)->message; }

bool Value::same_as(const Value& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::missing:
    case Kind::none:
      return true;
    case Kind::boolean:
      return boolean() == other.boolean();
    case Kind::integer:  // CPython keeps one object for each of these
      return integer() == other.integer() && integer() >= -5 && integer() <= 256;
    case Kind::real:
      return false;
    case Kind::text:
      return &text() == &other.text() || (text().length <= 1 && bytes() == other.bytes());
    case Kind::list:
    case Kind::tuple:
      return &sequence() == &other.sequence() || (is(Kind::tuple) && items().empty() && other.items().empty());
    case Kind::dict:
      return dict() == other.dict();
    case Kind::range:
      return &range() == &other.range();
    case Kind::view:
      return &view() == &other.view();
    case Kind::iterator:
      return &iterator() == &other.iterator();
    case Kind::object:
      return &object() == &other.object();
    case Kind::space:
      return &space() == &other.space();
    case Kind::undefined:
      break;
  }
  return &why_undefined() == &other.why_undefined();
}

size_t Value::depth() const {
  switch (kind()) {
    case Kind::list:
    case Kind::tuple:
      return sequence().depth;
    case Kind::dict:
      return dict()->depth;
    case Kind::view:
      return depth_above(view().dict->depth);
    case Kind::iterator:
      return iterator().depth;
    case Kind::object:
      return object().depth;
    default:
      return 0;
  }
}

std::string hash_key(const Value& value) {
  Meter::step();
  if (value.is_text()) return "s" + value.bytes();
  if (value.is_integral()) return str("n", value.integer());
  if (value.is(Kind::real)) {
    const double real = value.real();
    if (std::abs(real) < 0x1p63 && static_cast<double>(static_cast<int64_t>(real)) == real) return str("n", static_cast<int64_t>(real));
    return "f" + shortest(real);
  }
  if (value.is(Kind::tuple)) {
    std::string key = "t";
    for (const Value& item : value.items()) {
      const std::string inner = hash_key(item);
      Meter::room_for(key.size() + inner.size());
      Meter::step_bytes(inner.size());
      key += str(inner.size(), ":", inner);
    }
    return key;
  }
  if (value.is(Kind::list) || value.is(Kind::dict) || value.is(Kind::view)) fail("unhashable type: '", type_name(value), "'");
  if (value.is(Kind::range)) return str("r", value.range().length(), ":", value.range().start, ":", value.range().step);
  if (value.is(Kind::iterator)) return str("i", static_cast<const void*>(&value.iterator()));
  if (value.is(Kind::object)) return str("o", static_cast<const void*>(&value.object()));
  if (value.is(Kind::space)) return str("p", static_cast<const void*>(&value.space()));
  return value.is_none() ? "N" : "U";
}

std::string type_name(const Value& value) {
  static constexpr std::array<std::string_view, 15> kNames = {
      "missing", "NoneType",          "bool",     "int", "float", "str", "list", "tuple", "dict", "range", "view", "iterator",
      "object",  "TemplateNamespace", "Undefined"};
  static constexpr std::array<std::string_view, 3> kViews = {"dict_keys", "dict_values", "dict_items"};
  if (value.is_text() && value.text().safe) return "Markup";
  if (value.is(Kind::view)) return std::string(kViews.at(static_cast<size_t>(value.view().what)));
  if (value.is(Kind::iterator)) return value.iterator().type;
  if (value.is(Kind::object)) return value.object().type;
  return std::string(kNames.at(static_cast<size_t>(value.kind())));
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::none:
    case Kind::undefined:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::text:
      return !value.bytes().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.items().empty();
    case Kind::dict:
      return !value.dict()->items.empty();
    case Kind::range:
      return value.range().length() > 0;
    case Kind::view:
      return !value.view().dict->items.empty();
    case Kind::iterator:  // a generator is true, even an empty one
    case Kind::object:
    case Kind::space:
      break;
  }
  return true;
}

bool equal(const Value& left, const Value& right) {
  Meter::step();
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::text:
      if (left.bytes().size() != right.bytes().size()) return false;
      Meter::step_bytes(left.bytes().size());
      return left.bytes() == right.bytes();
    case Kind::list:
    case Kind::tuple:
      return std::equal(left.items().begin(), left.items().end(), right.items().begin(), right.items().end(), equal);
    case Kind::dict:
      return equal_dicts(*left.dict(), *right.dict());
    case Kind::range:
      return equal_ranges(left.range(), right.range());
    case Kind::view:
      return left.same_as(right) || equal_views(left.view(), right.view());
    case Kind::undefined:
      return true;
    default:
      return left.same_as(right);
  }
}

}  // namespace kedge::jinja
