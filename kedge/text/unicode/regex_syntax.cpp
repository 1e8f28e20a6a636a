#include "kedge/text/unicode/regex_syntax.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

// Part of a character class: its text for PCRE2 (without brackets) and the code points meant.
struct ClassPart {
  std::string text;
  CodeSet set;
};

std::string hex_escape(char32_t code) {
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<uint32_t>(code), 16).ptr;
  return str("\\x{", std::string_view(digits.data(), static_cast<size_t>(end - digits.data())), "}");
}

std::string class_text(const CodeSet& set) {
  std::string text;
  const CodeSet nameable = set.without(CodeSet({{0xD800, 0xDFFF}}));  // PCRE2 refuses to name surrogates
  for (const CodeRange& range : nameable.ranges()) {
    text += hex_escape(range.first);
    if (range.last != range.first) text += "-" + hex_escape(range.last);
  }
  return text;
}

// Long names and properties made of categories, spelt as Oniguruma compares them: lower case, no blanks, '_' or '-'.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kLongNames = {{{"letter", "L"},
                                                                                       {"uppercaseletter", "Lu"},
                                                                                       {"lowercaseletter", "Ll"},
                                                                                       {"titlecaseletter", "Lt"},
                                                                                       {"modifierletter", "Lm"},
                                                                                       {"otherletter", "Lo"},
                                                                                       {"mark", "M"},
                                                                                       {"combiningmark", "M"},
                                                                                       {"nonspacingmark", "Mn"},
                                                                                       {"spacingmark", "Mc"},
                                                                                       {"enclosingmark", "Me"},
                                                                                       {"number", "N"},
                                                                                       {"decimalnumber", "Nd"},
                                                                                       {"punctuation", "P"},
                                                                                       {"symbol", "S"},
                                                                                       {"separator", "Z"},
                                                                                       {"other", "C"}}};

// Scripts gain characters too; these are Han's since Unicode 14.
const std::vector<CodeRange> kLateHan = {{0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF}};

const CodeSet kHexDigits({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});

class Translator {
 public:
  Translator(std::string_view expression, std::string_view where, const PropertyLookup& pcre2_set)
      : text_(expression), where_(where), pcre2_set_(pcre2_set) {}

  std::string run() {
    const size_t valid = utf8_valid_prefix(text_);
    check(valid == text_.size(), where_, ": the expression is not UTF-8 at byte ", valid);
    std::string out = alternatives(0);
    if (at_ < text_.size()) refuse(")");
    return out;
  }

 private:
  static constexpr int kMaxDepth = 100;

  [[noreturn]] void refuse(std::string_view construct) const {
    throw UsageError(str(where_, ": the expression ", text_, " uses ", construct, " at byte ", at_, ", which is not supported"));
  }
  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!next_is(what)) return false;
    at_ += what.size();
    return true;
  }
  char32_t take_char() {
    if (done()) refuse("an end in the middle of a construct");
    const char32_t code = utf8_decode(text_.substr(at_));
    at_ += utf8_length(text_.substr(at_));
    return code;
  }

  std::string alternatives(int depth) {
    if (depth > kMaxDepth) refuse("groups nested too deeply");
    std::string out;
    while (!done() && !next_is(")")) {
      if (take("|")) {
        out += '|';
      } else {
        out += quantified(depth);
      }
    }
    return out;
  }

  // One atom with its quantifiers.
  std::string quantified(int depth) {
    std::string atom = this->atom(depth);
    for (bool first = true; !done(); first = false) {
      std::string count;
      bool interval = false;
      if (next_is("*") || next_is("+") || next_is("?")) {
        count = text_[at_++];
      } else if (auto found = take_interval()) {
        count = *found;
        interval = true;
      } else {
        break;
      }
      if (!first) atom = "(?:" + atom + ")";
      atom += count;
      const bool fixed = interval && count.find(',') == std::string::npos;
      if (next_is("?") && !fixed) {
        atom += text_[at_++];  // lazy; after {n} it is a separate quantifier
      } else if (next_is("+") && !interval) {
        atom += text_[at_++];  // possessive; after an interval it is a separate quantifier
      }
    }
    return atom;
  }

  // {n}, {n,}, {n,m} and {,m}; anything else in braces is text.
  std::optional<std::string> take_interval() {
    if (!next_is("{")) return std::nullopt;
    const size_t close = text_.find('}', at_);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view body = text_.substr(at_ + 1, close - at_ - 1);
    const size_t comma = body.find(',');
    const std::string_view low = body.substr(0, comma);
    const std::string_view high = comma == std::string_view::npos ? std::string_view() : body.substr(comma + 1);
    const auto digits = [](std::string_view s) { return std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; }); };
    if (!digits(low) || !digits(high) || (low.empty() && high.empty())) return std::nullopt;
    at_ = close + 1;
    if (comma == std::string_view::npos) return str("{", low, "}");
    return str("{", low.empty() ? "0" : low, ",", high, "}");
  }

  std::string atom(int depth) {
    if (next_is("(")) return group(depth);
    if (next_is("[")) return bracket();
    if (next_is("\\")) return escape();
    if (next_is("*") || next_is("+") || next_is("?")) refuse("a quantifier with nothing before it");
    if (take("^")) return "(?m:^)";  // Ruby's anchors are those of lines
    if (take("$")) return "(?m:$)";
    if (take(".")) return dot_matches_all_ ? "(?s:.)" : "(?-s:.)";
    return literal(take_char());
  }

  static std::string literal(char32_t code) {
    if (code < 0x80 && std::isalnum(static_cast<int>(code)) == 0) return hex_escape(code);
    std::string out;
    utf8_append(out, code);
    return out;
  }

  std::string group(int depth) {
    at_ += 1;
    const bool outer_dot = dot_matches_all_;
    const bool outer_case = ignore_case_;
    std::string open;
    for (const std::string_view kind : {"?:", "?=", "?!", "?>", "?<=", "?<!"})
      if (open.empty() && take(kind)) open = kind;
    bool to_the_end = false;  // (?i) holds up to the end of the enclosing group, as if the rest were a separate group
    if (open.empty() && next_is("?")) {
      options();
      open = ignore_case_ ? "?i:" : "?-i:";
      to_the_end = take(")");
      if (!to_the_end && !take(":")) refuse("options without an end");
    }
    if (open.empty()) open = "?:";  // a capture; nothing refers to it
    const std::string body = alternatives(depth + 1);
    if (!to_the_end && !take(")")) refuse("a group without an end");
    dot_matches_all_ = outer_dot;
    ignore_case_ = outer_case;
    return str("(", open, body, ")");
  }

  // The letters of (?i:...), (?mi-x:...) and (?i).
  void options() {
    const size_t start = at_;
    at_ += 1;
    bool on = true;
    while (!done() && !next_is(":") && !next_is(")")) {
      if (take("-")) {
        on = false;
      } else if (take("i")) {
        ignore_case_ = on;
      } else if (take("m")) {
        dot_matches_all_ = on;
      } else {
        at_ = start;
        refuse(str("(", text_.substr(start, 2)));
      }
    }
  }

  std::string escape() {
    for (const char* same : {"\\A", "\\z", "\\Z", "\\R"})
      if (take(same)) return same;
    if (take("\\b")) return str("(?:(?<=", word(), ")(?!", word(), ")|(?<!", word(), ")(?=", word(), "))");
    if (take("\\B")) return str("(?:(?<=", word(), ")(?=", word(), ")|(?<!", word(), ")(?!", word(), "))");
    if (const auto part = class_escape()) return part->set.empty() ? "(?!)" : "[" + part->text + "]";
    return literal(literal_escape());
  }

  std::string word() { return "[" + word_part().text + "]"; }

  // \s, \p{L} and similar, inside or outside brackets; nothing when the escape is a single character.
  std::optional<ClassPart> class_escape() {
    const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    const bool negated = letter >= 'A' && letter <= 'Z';
    const char kind = negated ? static_cast<char>(letter - 'A' + 'a') : letter;
    if (std::string_view("sdwhp").find(kind) == std::string_view::npos) return std::nullopt;
    at_ += 2;
    const ClassPart part = kind == 's'   ? explicit_part(CodeSet::spaces())
                           : kind == 'd' ? property("Nd")
                           : kind == 'w' ? word_part()
                           : kind == 'h' ? explicit_part(kHexDigits)
                                         : named_property();
    return negated ? explicit_part(part.set.complement()) : part;
  }

  ClassPart named_property() {
    if (!take("{")) refuse("\\p without braces");
    const bool negated = take("^");
    const size_t close = text_.find('}', at_);
    if (close == std::string_view::npos) refuse("\\p{ without an end");
    const std::string name(text_.substr(at_, close - at_));
    ClassPart part = property(name);
    at_ = close + 1;
    return negated ? explicit_part(part.set.complement()) : part;
  }

  ClassPart property(const std::string& name) {
    std::string plain;
    for (const char c : name)
      if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string category = plain.size() <= 2 && !plain.empty() ? plain : "";
    for (const auto& [long_name, short_name] : kLongNames)
      if (plain == long_name) category = short_name;
    if (!category.empty()) category[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(category[0])));
    if (auto set = category_set(category)) {
      if (ignore_case_ && (category == "Lu" || category == "Ll" || category == "Lt")) refuse(str("\\p{", category, "} under (?i)"));
      return shortened(category, std::move(*set));
    }
    if (plain == "any") return explicit_part(CodeSet::all());
    if (plain == "space" || plain == "whitespace") return explicit_part(CodeSet::spaces());
    const bool script = !plain.empty() && std::all_of(plain.begin(), plain.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    if (!script || plain == "alphabetic" || plain == "alpha" || plain == "alnum" || plain == "upper" || plain == "lower" ||
        plain == "punct")
      refuse(str("\\p{", name, "}"));
    CodeSet set = pcre2_set_("sc:" + name);
    if (set.empty()) refuse(str("\\p{", name, "}"));
    if (plain == "han") set = set.united(CodeSet(kLateHan));
    return shortened("sc:" + name, std::move(set));
  }

  // \p{name} where PCRE2 means no more by it than we do, and the rest spelt out.
  ClassPart shortened(const std::string& name, CodeSet set) {
    const CodeSet theirs = pcre2_set_(name);
    if (!theirs.without(set).empty()) return explicit_part(std::move(set));
    std::string text = str("\\p{", name, "}", class_text(set.without(theirs)));
    return {std::move(text), std::move(set)};
  }

  ClassPart explicit_part(CodeSet set) {
    std::string text = class_text(set);
    return {std::move(text), std::move(set)};
  }

  // Oniguruma's \w: letters, marks, decimal and letter-like numbers, connectors, circled letters, and Latin-1's small digits.
  ClassPart word_part() {
    ClassPart all = explicit_part(
        CodeSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}}));
    for (const char* category : {"L", "M", "Nd", "Nl", "Pc"}) {
      const ClassPart part = shortened(category, *category_set(category));
      all.text += part.text;
      all.set = all.set.united(part.set);
    }
    return all;
  }

  char32_t literal_escape() {
    at_ += 1;
    const char32_t code = take_char();
    if (code == 'x') return next_is("{") ? hex_in_braces() : hex(1, 2);
    if (code == 'u') return hex(4, 4);
    static constexpr std::string_view kLetters = "nrtfvae", kMeant = "\n\r\t\f\v\a\x1B";
    if (const size_t found = code < 0x80 ? kLetters.find(static_cast<char>(code)) : std::string_view::npos; found != std::string_view::npos)
      return static_cast<unsigned char>(kMeant[found]);
    if (code < 0x80 && std::isalnum(static_cast<int>(code)) != 0) refuse(str("\\", static_cast<char>(code)));
    return code;
  }

  char32_t hex_in_braces() {
    at_ += 1;
    const char32_t code = hex(1, 8);
    if (!take("}")) refuse("\\x{ without an end");
    return code;
  }

  char32_t hex(size_t least, size_t most) {
    size_t length = 0;
    while (length < most && at_ + length < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[at_ + length])) != 0) ++length;
    uint32_t code = 0;
    std::from_chars(text_.data() + at_, text_.data() + at_ + length, code, 16);
    if (length < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) refuse("a number that is not a code point");
    at_ += length;
    return code;
  }

  std::string bracket() {
    at_ += 1;
    const ClassPart part = bracket_body(0);
    if (part.set.empty()) return "(?!)";
    return "[" + part.text + "]";
  }

  // After the opening bracket, up to and with the closing one. `&&` binds weaker than everything else.
  ClassPart bracket_body(int depth) {
    if (depth > kMaxDepth) refuse("classes nested too deeply");
    const bool negated = take("^");
    ClassPart sum;
    std::optional<CodeSet> met;  // what is left of the last &&
    for (bool first = true; !take("]"); first = false) {
      if (done()) refuse("a class without an end");
      if (take("&&")) {
        met = met ? met->common(sum.set) : sum.set;
        sum = {};
        continue;
      }
      ClassPart part = first && take("]") ? explicit_part(CodeSet({{']', ']'}})) : bracket_item(depth);
      sum.text += part.text;
      sum.set = sum.set.united(part.set);
    }
    if (met) sum = explicit_part(met->common(sum.set));
    if (!negated) return sum;
    CodeSet rest = sum.set.complement();
    std::string text = depth == 0 && !met ? "^" + sum.text : class_text(rest);
    return {std::move(text), std::move(rest)};
  }

  ClassPart bracket_item(int depth) {
    if (next_is("[:")) return posix_class();
    if (take("[")) return bracket_body(depth + 1);
    if (next_is("\\"))
      if (auto part = class_escape()) return *part;
    const char32_t first = next_is("\\") ? literal_escape() : take_char();
    char32_t last = first;
    if (next_is("-") && !next_is("-]") && !next_is("-[") && !next_is("-&&")) {
      at_ += 1;
      last = next_is("\\") ? literal_escape() : take_char();
    }
    if (last < first) refuse("a range that runs backwards");
    return explicit_part(CodeSet({{first, last}}));
  }

  ClassPart posix_class() {
    if (take("[:space:]")) return explicit_part(CodeSet::spaces());
    if (take("[:digit:]")) return property("Nd");
    if (take("[:word:]")) return word_part();
    if (take("[:xdigit:]")) return explicit_part(kHexDigits);
    if (take("[:ascii:]")) return explicit_part(CodeSet({{0, 0x7F}}));
    if (!take("[:punct:]")) refuse(text_.substr(at_, text_.substr(at_).find(']') + 1));
    ClassPart marks = property("P");
    const ClassPart symbols = property("S");
    return {marks.text + symbols.text, marks.set.united(symbols.set)};
  }

  std::string_view text_;
  std::string_view where_;
  const PropertyLookup& pcre2_set_;
  size_t at_ = 0;
  bool ignore_case_ = false;
  bool dot_matches_all_ = false;
};

}  // namespace

std::string to_pcre2(std::string_view expression, std::string_view where, const PropertyLookup& pcre2_set) {
  return Translator(expression, where, pcre2_set).run();
}

}  // namespace kedge
