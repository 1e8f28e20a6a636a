#include "kedge/core/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr size_t kMaxDepth = 256;
constexpr int kCompact = -2;  // as an indent: one line without spaces

std::string line_and_column(std::string_view text, size_t position, int64_t first_line) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto line = first_line + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return str(line, ":", before.size() - line_start + 1);
}

// Builds a Json from the parser's events, so that there is no second tree in memory.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::string_view origin, int64_t first_line) : text_(text), origin_(origin), first_line_(first_line) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max())) return add(static_cast<double>(value));
    return add(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none

  bool start_object(std::size_t) override { return open(Json::Object{}); }
  bool start_array(std::size_t) override { return open(Json::Array{}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (!level.keys.insert(value).second)
      throw UsageError(str(origin_, ":", first_line_, ": not valid JSON: key \"", value, "\" occurs twice in one object"));
    level.key = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's text opens with its own error number and position; what follows them is for people.
    std::string_view what = error.what();
    if (const size_t start = what.find("column "); start != std::string_view::npos) {
      what.remove_prefix(start);
      what.remove_prefix(std::min(what.size(), what.find(": ") == std::string_view::npos ? 0 : what.find(": ") + 2));
    }
    throw UsageError(str(origin_, ":", line_and_column(text_, position == 0 ? 0 : position - 1, first_line_),
                         ": not valid JSON: ", utf8_replace_invalid(what)));
  }

 private:
  struct Level {
    Json container;
    std::string key;                       // of the member to come
    std::unordered_set<std::string> keys;  // seen so far
  };

  bool add(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (levels_.back().container.is_array()) {
      levels_.back().container.push_back(std::move(value));
    } else {
      levels_.back().container.append(std::move(levels_.back().key), std::move(value));
    }
    return true;
  }
  bool open(Json container) {
    if (levels_.size() >= kMaxDepth)
      throw UsageError(str(origin_, ":", first_line_, ": not valid JSON: nested deeper than ", kMaxDepth, " levels"));
    levels_.push_back({std::move(container), {}, {}});
    return true;
  }
  bool close() {
    Json done = std::move(levels_.back().container);
    levels_.pop_back();
    return add(std::move(done));
  }

  std::string_view text_;
  std::string_view origin_;
  int64_t first_line_;
  Json root_;
  std::vector<Level> levels_;
};

void write_text(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  const std::string repaired = utf8_valid_prefix(text) == text.size() ? std::string() : utf8_replace_invalid(text);
  out += '"';
  for (const char c : repaired.empty() ? text : std::string_view(repaired)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00", out += kHex[byte >> 4U], out += kHex[byte & 0xFU];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <typename T>
const T& wanted(const T* value, const Json& found, Json::Kind kind, std::string_view where) {
  if (value != nullptr) return *value;
  std::string text = found.dump();
  if (text.size() > 60) text = str(std::string_view(text).substr(0, utf8_valid_prefix(std::string_view(text).substr(0, 57))), "...");
  throw UsageError(str(where, ": expected ", name_of(kind), ", found ", text));
}

}  // namespace

std::string_view name_of(Json::Kind kind) {
  static constexpr std::array<std::string_view, 7> kNames = {"null",     "true or false", "an integer", "a number",
                                                             "a string", "a list",        "an object"};
  return kNames.at(static_cast<size_t>(kind));
}

std::string shortest(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";  // n, i: nan and inf
  return text;
}

Json Json::parse(std::string_view text, std::string_view origin, int64_t first_line) {
  // The library takes a NUL byte for the end of the text and would not see what follows it.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    throw UsageError(str(origin, ":", line_and_column(text, nul, first_line), ": not valid JSON: a NUL byte"));
  Builder builder(text, origin, first_line);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

std::string Json::dump_compact() const {
  std::string out;
  write(out, kCompact, 0);
  return out;
}

void Json::write(std::string& out, int indent, int level) const {
  const std::string_view comma = indent == -1 ? ", " : ",";
  const auto new_line = [&](int at) {
    if (indent >= 0) out += '\n', out.append(static_cast<size_t>(indent) * static_cast<size_t>(at), ' ');
  };
  switch (kind()) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += std::get<bool>(value_) ? "true" : "false";
      break;
    case Kind::integer:
      out += std::to_string(std::get<int64_t>(value_));
      break;
    case Kind::number:
      out += std::isfinite(std::get<double>(value_)) ? shortest(std::get<double>(value_)) : "null";
      break;
    case Kind::text:
      write_text(out, std::get<std::string>(value_));
      break;
    case Kind::array: {
      const auto& items = std::get<Array>(value_);
      out += '[';
      for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out += comma;
        new_line(level + 1);
        items[i].write(out, indent, level + 1);
      }
      if (!items.empty()) new_line(level);
      out += ']';
      break;
    }
    case Kind::object: {
      const auto& members = std::get<Object>(value_);
      out += '{';
      for (size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out += comma;
        new_line(level + 1);
        write_text(out, members[i].first);
        out += indent == kCompact ? ":" : ": ";
        members[i].second.write(out, indent, level + 1);
      }
      if (!members.empty()) new_line(level);
      out += '}';
      break;
    }
  }
}

bool Json::as_bool(std::string_view where) const { return wanted(std::get_if<bool>(&value_), *this, Kind::boolean, where); }

int64_t Json::as_integer(std::string_view where) const { return wanted(std::get_if<int64_t>(&value_), *this, Kind::integer, where); }

double Json::as_number(std::string_view where) const {
  if (const auto* integer = std::get_if<int64_t>(&value_)) return static_cast<double>(*integer);
  return wanted(std::get_if<double>(&value_), *this, Kind::number, where);
}

const std::string& Json::as_text(std::string_view where) const {
  return wanted(std::get_if<std::string>(&value_), *this, Kind::text, where);
}

const Json::Array& Json::as_array(std::string_view where) const { return wanted(std::get_if<Array>(&value_), *this, Kind::array, where); }

const Json::Object& Json::as_object(std::string_view where) const {
  return wanted(std::get_if<Object>(&value_), *this, Kind::object, where);
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(), [&](const Member& member) { return member.first == key; });
  return found == members->end() ? nullptr : &found->second;
}

const Json& Json::at(std::string_view key, std::string_view where) const {
  static_cast<void>(as_object(where));
  const Json* value = find(key);
  check(value != nullptr, where, ": no \"", key, "\" field");
  return *value;
}

void Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  auto& members = std::get<Object>(value_);
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.first == key; });
  if (found == members.end()) {
    members.emplace_back(std::string(key), std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void Json::append(std::string key, Json value) {
  if (is_null()) value_ = Object{};
  std::get<Object>(value_).emplace_back(std::move(key), std::move(value));
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
}

}  // namespace kedge
