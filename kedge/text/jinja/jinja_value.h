#pragma once
// The values a template computes with: Python's, as far as a template can see them. Lists, tuples and dicts never change once
// created (the sandbox forbids it); only namespaces and iterators do. Independent of operators, syntax and printing.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge::jinja {

// An error inside a template, without its place: rendering adds the template's name and line.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Fault(kedge::str(parts...));
}

struct Limits {
  int64_t steps = 50'000'000;             // about a step per expression, loop round or 16 bytes of text
  int64_t live_bytes = int64_t{1} << 28;  // of all values alive at one time
};

// Counts the work and the memory of the render that runs on this thread, and ends it if it exceeds its limits. A template
// comes from a downloaded file: it must not hang or fill the memory. Nothing is counted while no Meter is alive.
class Meter {
 public:
  explicit Meter(const Limits& limits);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  static void step(size_t count = 1);
  static void step_bytes(size_t bytes) { step(1 + bytes / 16); }      // copied or compared
  static void step_characters(size_t bytes) { step(1 + bytes / 4); }  // visited one by one
  // Before something of that size is created.
  static void room_for(size_t bytes);
  // Memory in use, until it is released.
  static void hold(size_t bytes);
  static void release(size_t bytes);

 private:
  Limits limits_;
  int64_t steps_ = 0;
  int64_t live_bytes_ = 0;
  Meter* outer_;
};

// The memory of one value, released with it.
class Charge {
 public:
  explicit Charge(size_t bytes) : bytes_(bytes) { Meter::hold(bytes_); }
  ~Charge() { Meter::release(bytes_); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  size_t bytes_;
};

// Text that grows, its memory counted.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { Meter::release(text_.size()); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void append(std::string_view piece) {
    Meter::hold(piece.size());
    text_ += piece;
  }
  [[nodiscard]] size_t size() const { return text_.size(); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Value;
using Values = std::vector<Value>;
struct Text;
struct Sequence;
struct Dict;
struct Range;
struct View;
struct Iterator;
struct Object;
struct Undefined;
struct Namespace;

enum class Kind { missing, none, boolean, integer, real, text, list, tuple, dict, range, view, iterator, object, space, undefined };

class Value {
 public:
  struct None {};

  Value() = default;  // missing: a name that nothing was assigned to yet; templates never hold it
  Value(None none) : value_(none) {}
  Value(bool value) : value_(value) {}
  Value(int value) : value_(int64_t{value}) {}
  Value(int64_t value) : value_(value) {}
  Value(double value) : value_(value) {}
  Value(std::string text, bool safe = false);  // valid UTF-8
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const Text> text) : value_(std::move(text)) {}
  Value(std::shared_ptr<const Dict> dict) : value_(std::move(dict)) {}
  Value(std::shared_ptr<const Range> range) : value_(std::move(range)) {}
  Value(std::shared_ptr<const View> view) : value_(std::move(view)) {}
  Value(std::shared_ptr<Iterator> iterator) : value_(std::move(iterator)) {}
  Value(std::shared_ptr<const Object> object) : value_(std::move(object)) {}
  Value(Namespace* space) : value_(space) {}  // owned by the render

  static Value list(Values items);
  static Value tuple(Values items);
  static Value group(Value grouper, Value items);  // groupby's tuple with names
  // `next` gives false at the end; `inner` is the depth of the deepest value it holds.
  static Value iterator(std::string type, size_t inner, std::function<bool(Value&)> next);
  static Value undefined(std::string message);
  static Value from_json(const Json& json);

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(value_.index()); }
  [[nodiscard]] bool is(Kind kind) const { return this->kind() == kind; }
  [[nodiscard]] bool is_missing() const { return is(Kind::missing); }
  [[nodiscard]] bool is_undefined() const { return is(Kind::undefined); }
  [[nodiscard]] bool is_none() const { return is(Kind::none); }
  [[nodiscard]] bool is_text() const { return is(Kind::text); }
  [[nodiscard]] bool is_sequence() const { return is(Kind::list) || is(Kind::tuple); }
  [[nodiscard]] bool is_integral() const { return is(Kind::integer) || is(Kind::boolean); }  // Python's bool is an int
  [[nodiscard]] bool is_number() const { return is_integral() || is(Kind::real); }

  // Each requires the right kind.
  [[nodiscard]] bool boolean() const { return std::get<bool>(value_); }
  [[nodiscard]] int64_t integer() const { return is(Kind::boolean) ? int64_t{boolean()} : std::get<int64_t>(value_); }
  [[nodiscard]] double real() const { return is(Kind::real) ? std::get<double>(value_) : static_cast<double>(integer()); }
  [[nodiscard]] const Text& text() const { return *std::get<std::shared_ptr<const Text>>(value_); }
  [[nodiscard]] const std::string& bytes() const;
  [[nodiscard]] const Values& items() const;  // of a list or a tuple
  [[nodiscard]] const Sequence& sequence() const;
  [[nodiscard]] const std::shared_ptr<const Dict>& dict() const { return std::get<std::shared_ptr<const Dict>>(value_); }
  [[nodiscard]] const Range& range() const { return *std::get<std::shared_ptr<const Range>>(value_); }
  [[nodiscard]] const View& view() const { return *std::get<std::shared_ptr<const View>>(value_); }
  [[nodiscard]] Iterator& iterator() const { return *std::get<std::shared_ptr<Iterator>>(value_); }
  [[nodiscard]] const Object& object() const { return *std::get<std::shared_ptr<const Object>>(value_); }
  [[nodiscard]] Namespace& space() const { return *std::get<Namespace*>(value_); }
  [[nodiscard]] const std::string& why_undefined() const;

  // The same object, as Python's `is` would say.
  [[nodiscard]] bool same_as(const Value& other) const;
  // The nesting depth; bounded, so that no walk over a value can overflow the stack.
  [[nodiscard]] size_t depth() const;

 private:
  struct List;  // tags that distinguish list and tuple in the variant
  struct Tuple;
  template <typename Tag>
  struct Tagged {
    std::shared_ptr<const Sequence> sequence;
  };

  std::variant<std::monostate, None, bool, int64_t, double, std::shared_ptr<const Text>, Tagged<List>, Tagged<Tuple>,
               std::shared_ptr<const Dict>, std::shared_ptr<const Range>, std::shared_ptr<const View>, std::shared_ptr<Iterator>,
               std::shared_ptr<const Object>, Namespace*, std::shared_ptr<const Undefined>>
      value_;
};

// The arguments of a call.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Text {
  Text(std::string text, bool is_safe);
  std::string bytes;
  size_t length;  // in characters; equals bytes.size() for ASCII
  bool safe;      // Markup: already escaped for HTML
  Charge charge;
};

struct Sequence {
  Sequence(Values values, bool is_group);
  Values items;
  bool group;  // a tuple with the names `grouper` and `list`
  size_t depth;
  Charge charge;
};

// In order of insertion. Keys compare as in Python: 1, 1.0 and true are one key.
struct Dict {
  explicit Dict(std::vector<std::pair<Value, Value>> pairs);  // of equal keys the last value counts, at the first one's place
  [[nodiscard]] const Value* find(const Value& key) const;    // a Fault when the key cannot be one
  [[nodiscard]] const Value* find_text(std::string_view key) const;

  std::vector<std::pair<Value, Value>> items;
  size_t depth = 1;

 private:
  [[nodiscard]] std::optional<size_t> index_of(const Value& key) const;

  std::unordered_map<std::string, size_t> index_;  // by hash_key; only for dicts too large to look through
  Charge charge_;
};

struct Range {
  int64_t start, stop, step;
  [[nodiscard]] int64_t length() const;
};

struct View {  // dict.keys(), .values(), .items()
  enum class What { keys, values, items } what;
  std::shared_ptr<const Dict> dict;
};

struct Iterator {
  std::string type;
  std::function<bool(Value&)> next;
  size_t depth;
  Charge charge;
};

// Functions, macros, bound methods, `loop` and the like: what each of them can do. An empty function: it cannot.
struct Object {
  std::string type;
  std::function<Value(const Arguments&)> call{};
  std::function<std::optional<Value>(std::string_view)> attribute{};
  std::function<int64_t()> length{};
  std::function<std::string()> repr{};  // empty: Python would print a memory address
  size_t depth = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  [[nodiscard]] const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

// Equal keys have equal texts; a Fault for a value that Python cannot hash.
[[nodiscard]] std::string hash_key(const Value& value);

// Python's name of the type: "str", "dict", "builtin_function_or_method".
[[nodiscard]] std::string type_name(const Value& value);

[[nodiscard]] bool truth(const Value& value);
[[nodiscard]] bool equal(const Value& left, const Value& right);

}  // namespace kedge::jinja
