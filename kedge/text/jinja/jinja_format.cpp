#include "kedge/text/jinja/jinja_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "kedge/core/utf8.h"
#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"

namespace kedge::jinja {
namespace {

constexpr int64_t kMaxWidth = 1'000'000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =, or 0: the type decides
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;
};

std::string ascii_only(std::string_view text) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(utf8_length(text))) {
    const char32_t c = utf8_decode(text);
    std::array<char, 16> escape{};
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      std::snprintf(escape.data(), escape.size(), c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", static_cast<unsigned>(c));
      out += escape.data();
    }
  }
  return out;
}

std::string pad(const std::string& body, const Spec& spec, char default_align) {
  const Text text(body, false);
  if (spec.width <= static_cast<int64_t>(text.length)) return body;
  const size_t missing = static_cast<size_t>(spec.width) - text.length;
  const char align = spec.align != 0 ? spec.align : default_align;
  const size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out;
  const auto fill = [&](size_t count) {
    Meter::room_for(count * spec.fill.size());
    while (count-- > 0) out += spec.fill;
  };
  size_t sign = 0;
  if (align == '=') sign = body.find_first_of("0123456789in", 0) == std::string::npos ? 0 : body.find_first_of("0123456789in");
  if (align == '=' && body.size() > sign + 1 && body[sign] == '0' && (spec.alternate)) sign += 2;  // after 0x
  out += body.substr(0, align == '=' ? sign : 0);
  fill(left);
  out += body.substr(align == '=' ? sign : 0);
  fill(missing - left);
  return out;
}

std::string signed_text(bool negative, const std::string& digits, char sign) {
  return (negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "") + digits;
}

std::string grouped(const std::string& digits, char separator, size_t size) {
  const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(end);
}

std::string digits_of(uint64_t value, unsigned base, bool upper) {
  std::string digits;
  do {
    digits += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    value /= base;
  } while (value > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string print_real(double value, int64_t precision, char type, bool alternate) {
  const std::string pattern = std::string("%") + (alternate ? "#" : "") + ".*" + type;
  const int places = static_cast<int>(std::min<int64_t>(precision, 10'000));
  const int size = std::snprintf(nullptr, 0, pattern.c_str(), places, value);
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), pattern.c_str(), places, value);
  out.pop_back();
  return out;
}

// Without a type but with a precision: like g, but it always looks like a float.
std::string general_real(double value, int64_t precision) {
  const int64_t places = std::max<int64_t>(precision, 1);
  const std::string scientific = print_real(value, places - 1, 'e', false);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= places - 1) {
    std::string mantissa = scientific.substr(0, scientific.find('e'));
    if (mantissa.find('.') != std::string::npos) {
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + scientific.substr(scientific.find('e'));
  }
  std::string out = print_real(value, places, 'g', false);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string format_real(double value, const Spec& spec) {
  const char type = spec.type == 'n' ? 'g' : spec.type;
  std::string digits;
  const double magnitude = std::abs(value);
  if (!std::isfinite(value)) {
    digits = std::isnan(value) ? "nan" : "inf";
    if (type == 'F' || type == 'E' || type == 'G')
      std::transform(digits.begin(), digits.end(), digits.begin(), [](char c) { return c - 32; });
  } else if (type == 0) {
    digits = spec.precision < 0 ? repr_real(magnitude) : general_real(magnitude, spec.precision);
  } else if (type == '%') {
    digits = print_real(magnitude * 100, spec.precision < 0 ? 6 : spec.precision, 'f', spec.alternate) + "%";
  } else if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
    digits = print_real(magnitude, spec.precision < 0 ? 6 : spec.precision, type, spec.alternate);
  } else {
    fail("Unknown format code '", type, "' for object of type 'float'");
  }
  if (spec.grouping != 0) digits = grouped(digits, spec.grouping, 3);
  return pad(signed_text(std::signbit(value) && !std::isnan(value), digits, spec.sign), spec, '>');
}

std::string format_integer(int64_t value, const Spec& spec) {
  if (spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)
    return format_real(static_cast<double>(value), spec);
  if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
  if (spec.type == 'c') {
    if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) fail("%c arg not in range(0x110000)");
    std::string character;
    utf8_append(character, static_cast<char32_t>(value));
    return pad(character, spec, '<');
  }
  const size_t which = std::string_view("dnboxX").find(spec.type == 0 ? 'd' : spec.type);
  if (which == std::string_view::npos) fail("Unknown format code '", spec.type, "' for object of type 'int'");
  static constexpr std::array<unsigned, 6> kBases = {10, 10, 2, 8, 16, 16};
  static constexpr std::array<std::string_view, 6> kLeads = {"", "", "0b", "0o", "0x", "0X"};
  const uint64_t magnitude = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::string digits = digits_of(magnitude, kBases.at(which), spec.type == 'X');
  if (spec.grouping != 0) digits = grouped(digits, spec.grouping, which <= 1 ? 3 : 4);
  if (spec.alternate) digits = std::string(kLeads.at(which)) + digits;
  return pad(signed_text(value < 0, digits, spec.sign), spec, '>');
}

std::string cut(const std::string& text, int64_t precision) {
  const Text whole(text, false);
  if (precision < 0 || static_cast<size_t>(precision) >= whole.length) return text;
  return std::string(characters(whole, 0, static_cast<size_t>(precision)));
}

std::string format_text(const std::string& text, const Spec& spec) {
  if (spec.type != 0 && spec.type != 's') fail("Unknown format code '", spec.type, "' for object of type 'str'");
  if (spec.align == '=') fail("'=' alignment not allowed in string format specifier");
  return pad(cut(text, spec.precision), spec, '<');
}

int64_t read_number(std::string_view& rest, int64_t otherwise) {
  if (rest.empty() || rest.front() < '0' || rest.front() > '9') return otherwise;
  int64_t number = 0;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    number = number * 10 + (rest.front() - '0');
    if (number > kMaxWidth) fail("a format wider than ", kMaxWidth, " characters");
    rest.remove_prefix(1);
  }
  return number;
}

Spec parse_spec(std::string_view rest) {
  Spec spec;
  const auto take = [&](std::string_view any) {
    if (rest.empty() || any.find(rest.front()) == std::string_view::npos) return char{0};
    const char c = rest.front();
    rest.remove_prefix(1);
    return c;
  };
  const size_t first = rest.empty() ? 0 : utf8_length(rest);
  if (rest.size() > first && std::string_view("<>^=").find(rest[first]) != std::string_view::npos) {
    spec.fill = rest.substr(0, first);
    rest.remove_prefix(first);
  }
  spec.align = take("<>^=");
  if (const char sign = take("+- "); sign != 0) spec.sign = sign;
  spec.alternate = take("#") != 0;
  spec.zero = take("0") != 0;
  if (spec.zero && spec.align == 0) spec.fill = "0", spec.align = '=';
  spec.width = read_number(rest, 0);
  spec.grouping = take(",_");
  if (spec.grouping != 0 && spec.fill == "0" && spec.align == '=') fail("a format with both zero padding and thousands separators");
  if (take(".") != 0) {
    spec.precision = read_number(rest, -1);
    if (spec.precision < 0) fail("Format specifier missing precision");
  }
  if (!rest.empty()) spec.type = rest.front(), rest.remove_prefix(1);
  if (!rest.empty()) fail("Invalid format specifier");
  return spec;
}

std::string format_value(const Value& value, std::string_view text) {
  if (text.empty()) return to_text(value);
  Spec spec = parse_spec(text);
  if (value.is_integral()) return format_integer(value.integer(), spec);
  if (value.is(Kind::real)) return format_real(value.real(), spec);
  if (value.is_text()) {
    if (spec.zero && spec.align == '=') spec.align = '<';
    return format_text(value.bytes(), spec);
  }
  fail("unsupported format string passed to ", type_name(value), ".__format__");
}

std::string converted(const Value& value, char conversion) {
  if (conversion == 'r') return repr(value);
  if (conversion == 'a') return ascii_only(repr(value));
  return to_text(value);
}

// One "{field!conversion:spec}" after another.
class BraceFormatter {
 public:
  BraceFormatter(const Arguments& arguments, const Value* mapping) : arguments_(arguments), mapping_(mapping) {}

  std::string format(std::string_view text, int depth) {
    if (depth < 0) fail("Max string recursion exceeded");
    std::string out;
    while (!text.empty()) {
      const size_t brace = text.find_first_of("{}");
      append(out, text.substr(0, brace));
      if (brace == std::string_view::npos) break;
      const char c = text[brace];
      text.remove_prefix(brace + 1);
      if (!text.empty() && text.front() == c) {
        out += c;
        text.remove_prefix(1);
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else {
        append(out, field(take_field(text), depth));
      }
    }
    return out;
  }

 private:
  // The field up to its closing brace, which is removed too.
  static std::string_view take_field(std::string_view& text) {
    size_t open = 1, at = 0;
    for (; at < text.size() && open > 0; ++at) {
      if (text[at] == '[' && open == 1) {
        at = std::min(text.find(']', at), text.size() - 1);
      } else if (text[at] == '{') {
        ++open;
      } else if (text[at] == '}') {
        --open;
      }
    }
    if (open > 0) fail(text.empty() ? "Single '{' encountered in format string" : "expected '}' before end of string");
    const std::string_view found = text.substr(0, at - 1);
    text.remove_prefix(at);
    return found;
  }

  std::string field(std::string_view text, int depth) {
    size_t end = 0;
    while (end < text.size() && text[end] != '!' && text[end] != ':') {
      if (text[end] == '[') end = std::min(text.find(']', end), text.size() - 1);
      ++end;
    }
    const std::string_view name = text.substr(0, end);
    std::string_view rest = text.substr(end);
    char conversion = 0;
    if (!rest.empty() && rest.front() == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) fail("expected ':' after conversion specifier");
      conversion = rest[1];
      if (std::string_view("rsa").find(conversion) == std::string_view::npos) fail("Unknown conversion specifier ", conversion);
      rest.remove_prefix(2);
    }
    const Value value = lookup(name);
    if (!rest.empty()) rest.remove_prefix(1);
    const std::string spec = rest.find_first_of("{}") == std::string_view::npos ? std::string(rest) : format(rest, depth - 1);
    return conversion == 0 ? format_value(value, spec) : format_value(Value(converted(value, conversion)), spec);
  }

  Value lookup(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    name.remove_prefix(end);
    while (!name.empty()) {
      if (name.front() == '.') {
        const size_t stop = std::min(name.find_first_of(".[", 1), name.size());
        if (stop == 1) fail("Empty attribute in format string");
        value = get_attribute(value, name.substr(1, stop - 1));
        name.remove_prefix(stop);
      } else {
        const size_t stop = name.find(']');
        if (name.front() != '[' || stop == std::string_view::npos) fail("Only '.' or '[' may follow ']' in format field specifier");
        const std::string_view key = name.substr(1, stop - 1);
        if (key.empty()) fail("Empty attribute in format string");
        value = get_item(value, is_number(key) ? Value(number(key)) : Value(key));
        name.remove_prefix(stop + 1);
      }
    }
    return value;
  }

  static bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos; }

  static int64_t number(std::string_view text) {
    std::string_view rest = text;
    return read_number(rest, 0);
  }

  Value first(std::string_view name) {
    if (name.empty() || is_number(name)) {
      if (numbering_ != 0 && (numbering_ == 'a') != name.empty())
        fail("cannot switch between manual field specification and automatic field numbering");
      numbering_ = name.empty() ? 'a' : 'm';
      const auto index = name.empty() ? next_++ : static_cast<size_t>(number(name));
      if (mapping_ != nullptr || index >= arguments_.positional.size())
        fail("Replacement index ", index, " out of range for positional args tuple");
      return arguments_.positional[index];
    }
    if (mapping_ != nullptr) {
      if (!mapping_->is(Kind::dict)) fail("format_map() argument must be a mapping");
      if (const Value* found = mapping_->dict()->find_text(name)) return *found;
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    fail("KeyError: ", repr_text(name));
  }

  const Arguments& arguments_;
  const Value* mapping_;
  char numbering_ = 0;
  size_t next_ = 0;
};

// One "%(key)flags width.precision type" after another.
class PrintfFormatter {
 public:
  explicit PrintfFormatter(const Value& values) : values_(values) {}

  std::string format(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const size_t percent = text.find('%');
      append(out, text.substr(0, percent));
      if (percent == std::string_view::npos) break;
      text.remove_prefix(percent + 1);
      append(out, place(text));
    }
    const bool tuple = values_.is(Kind::tuple);
    const bool any_count_will_do = values_.is(Kind::dict) || values_.is(Kind::list) || values_.is(Kind::range) || values_.is_undefined();
    if (used_ < (tuple ? values_.items().size() : 1) && !any_count_will_do) fail("not all arguments converted during string formatting");
    return out;
  }

 private:
  std::string place(std::string_view& text) {
    Spec spec;
    const Value* keyed = nullptr;
    if (!text.empty() && text.front() == '(') {
      const size_t close = text.find(')');
      if (close == std::string_view::npos) fail("incomplete format key");
      if (!values_.is(Kind::dict)) fail("format requires a mapping");
      keyed = values_.dict()->find_text(text.substr(1, close - 1));
      if (keyed == nullptr) fail("KeyError: ", repr_text(text.substr(1, close - 1)));
      text.remove_prefix(close + 1);
    }
    for (; !text.empty() && std::string_view("-+ #0").find(text.front()) != std::string_view::npos; text.remove_prefix(1)) {
      const char flag = text.front();
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (flag == '#') spec.alternate = true;
      if (flag == '0') spec.zero = true;
    }
    spec.width = width(text, spec);
    if (!text.empty() && text.front() == '.') {
      text.remove_prefix(1);
      spec.precision = std::max<int64_t>(width(text, spec), 0);
    }
    if (!text.empty() && std::string_view("hlL").find(text.front()) != std::string_view::npos) text.remove_prefix(1);
    if (text.empty()) fail("incomplete format");
    const char type = text.front();
    text.remove_prefix(1);
    if (type == '%') return "%";
    return convert(keyed != nullptr ? *keyed : next(), type, spec);
  }

  int64_t width(std::string_view& text, Spec& spec) {
    if (text.empty() || text.front() != '*') return read_number(text, 0);
    text.remove_prefix(1);
    const Value given = next();
    if (!given.is_integral()) fail("* wants int");
    if (given.integer() < 0) spec.align = '<';
    if (std::abs(given.real()) > static_cast<double>(kMaxWidth)) fail("a format wider than ", kMaxWidth, " characters");
    return std::abs(given.integer());
  }

  const Value& next() {
    const size_t count = values_.is(Kind::tuple) ? values_.items().size() : 1;
    if (used_ >= count) fail("not enough arguments for format string");
    ++used_;
    return values_.is(Kind::tuple) ? values_.items()[used_ - 1] : values_;
  }

  static std::string convert(const Value& value, char type, Spec spec) {
    if (std::string_view("sra").find(type) != std::string_view::npos) return pad(cut(converted(value, type), spec.precision), spec, '>');
    if (type == 'c') return pad(character(value), spec, '>');
    if (spec.zero && spec.align == 0) spec.fill = "0", spec.align = '=';
    if (std::string_view("diu").find(type) != std::string_view::npos) {
      if (!value.is_number()) fail("%", type, " format: a real number is required, not ", type_name(value));
      if (std::abs(value.real()) >= 0x1p63 || std::isnan(value.real())) fail("%", type, " format: a number beyond 64 bits");
      return integer(value.is_integral() ? value.integer() : static_cast<int64_t>(value.real()), 'd', spec);
    }
    if (std::string_view("oxX").find(type) != std::string_view::npos) {
      if (!value.is_integral()) fail("%", type, " format: an integer is required, not ", type_name(value));
      return integer(value.integer(), type, spec);
    }
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos) fail("unsupported format character '", type, "'");
    if (!value.is_number()) fail("must be real number, not ", type_name(value));
    spec.type = type;
    return format_real(value.real(), spec);
  }

  static std::string integer(int64_t value, char type, Spec spec) {
    const auto least = static_cast<size_t>(std::max<int64_t>(spec.precision, 0));
    spec.precision = -1, spec.type = type;
    if (least == 0) return format_integer(value, spec);
    Spec bare;
    bare.type = type;
    std::string digits = format_integer(value, bare);
    const bool negative = digits.front() == '-';
    if (negative) digits.erase(0, 1);
    if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
    return pad(signed_text(negative, digits, spec.sign), spec, '>');
  }

  static std::string character(const Value& value) {
    if (value.is_text() && value.text().length == 1) return value.bytes();
    if (!value.is_integral()) fail("%c requires int or char");
    Spec spec;
    spec.type = 'c';
    return format_integer(value.integer(), spec);
  }

  const Value& values_;
  size_t used_ = 0;
};

}  // namespace

Value printf_format(const Value& format, const Value& values) {
  if (format.text().safe) fail("% on a text marked as safe is not supported");
  return Value(PrintfFormatter(values).format(format.bytes()));
}

Value brace_format(const Value& format, const Arguments& arguments, const Value* mapping) {
  if (format.text().safe) fail("format on a text marked as safe is not supported");
  return Value(BraceFormatter(arguments, mapping).format(format.bytes(), 2));
}

}  // namespace kedge::jinja
