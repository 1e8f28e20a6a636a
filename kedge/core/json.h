#pragma once
// A JSON value. Objects keep the order of the file. Parsing is strict: valid UTF-8, no duplicate keys, bounded depth.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kedge {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;
  enum class Kind { null, boolean, integer, number, text, array, object };

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // `origin` names the text in errors: "tokenizer.json:3:17: not valid JSON: ...". Where the text is a part of a file,
  // `first_line` is the line of the file it begins on.
  static Json parse(std::string_view text, std::string_view origin = "JSON", int64_t first_line = 1);

  // One line, or indented by `indent` spaces a level. Numbers read back to the same bits; NaN and infinities, which JSON
  // lacks, become null; bytes that are not UTF-8 become U+FFFD.
  [[nodiscard]] std::string dump(int indent = -1) const;
  // The same in as few bytes as possible: {"a":[1,2]}.
  [[nodiscard]] std::string dump_compact() const;

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(value_.index()); }
  [[nodiscard]] bool is_null() const { return kind() == Kind::null; }
  [[nodiscard]] bool is_bool() const { return kind() == Kind::boolean; }
  [[nodiscard]] bool is_integer() const { return kind() == Kind::integer; }
  [[nodiscard]] bool is_number() const { return kind() == Kind::integer || kind() == Kind::number; }
  [[nodiscard]] bool is_text() const { return kind() == Kind::text; }
  [[nodiscard]] bool is_array() const { return kind() == Kind::array; }
  [[nodiscard]] bool is_object() const { return kind() == Kind::object; }

  // The value as the wanted kind; otherwise a UsageError: "WHERE: expected a string, found 3".
  [[nodiscard]] bool as_bool(std::string_view where) const;
  [[nodiscard]] int64_t as_integer(std::string_view where) const;
  [[nodiscard]] double as_number(std::string_view where) const;  // integers too
  [[nodiscard]] const std::string& as_text(std::string_view where) const;
  [[nodiscard]] const Array& as_array(std::string_view where) const;
  [[nodiscard]] const Object& as_object(std::string_view where) const;

  // The member of that name, or null if there is none or this is not an object. Linear in the number of members.
  [[nodiscard]] const Json* find(std::string_view key) const;
  // The same, but absence is a UsageError: "WHERE: no \"key\" field".
  [[nodiscard]] const Json& at(std::string_view key, std::string_view where) const;

  // Adds or replaces a member; a null value becomes an object first.
  void set(std::string_view key, Json value);
  // Adds a member that is known to be new, without looking for an old one.
  void append(std::string key, Json value);
  void push_back(Json value);

  friend bool operator==(const Json&, const Json&) = default;

 private:
  void write(std::string& out, int indent, int level) const;

  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value_ = nullptr;
};

// A name for people: "a string", "an object".
[[nodiscard]] std::string_view name_of(Json::Kind kind);

// The shortest text that reads back to the same double; always with a point, an exponent or a name (nan, inf).
[[nodiscard]] std::string shortest(double value);

[[nodiscard]] inline Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

}  // namespace kedge
