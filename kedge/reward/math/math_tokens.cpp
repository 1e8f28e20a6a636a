#include "kedge/reward/math/math_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace kedge {
namespace {

using TokenKind = MathToken::Kind;
using NamePair = std::pair<std::string_view, std::string_view>;

bool is_math_digit(char c) { return c >= '0' && c <= '9'; }
bool is_math_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_one_of(std::string_view name, auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); }

constexpr std::array<std::string_view, 30> kLookOnly = {
    "left",     "right",     "big",        "Big",        "bigg",   "Bigg",    "bigl",      "bigr",         "Bigl",      "Bigr",
    "biggl",    "biggr",     "Biggl",      "Biggr",      "middle", "quad",    "qquad",     "displaystyle", "textstyle", "limits",
    "nolimits", "mathstrut", "boldsymbol", "ensuremath", "hfill",  "enspace", "thinspace", "rm",           "bf",        "it"};
constexpr std::array<std::string_view, 13> kTexts = {"text",   "textbf",     "textit",       "textrm", "mathrm", "mbox",  "hbox",
                                                     "textsf", "textnormal", "operatorname", "mathit", "texttt", "mathsf"};
// Groups that only decorate their content.
constexpr std::array<std::string_view, 8> kDecorations = {"mathbf", "vec", "hat", "bar", "underline", "mathcal", "bm", "mathbb"};
// Names that are read without a backslash too.
constexpr std::array<std::string_view, 32> kPlainCommands = {
    "sqrt", "sin", "cos",   "tan",  "cot", "sec", "csc", "arcsin",   "arccos", "arctan", "sinh", "cosh",  "tanh",   "log", "ln",    "lg",
    "exp",  "abs", "floor", "ceil", "min", "max", "pi",  "infinity", "infty",  "alpha",  "beta", "theta", "lambda", "mu",  "sigma", "gcd"};
constexpr std::array<NamePair, 19> kSameCommand = {{{"dfrac", "frac"},
                                                    {"tfrac", "frac"},
                                                    {"cfrac", "frac"},
                                                    {"dbinom", "binom"},
                                                    {"tbinom", "binom"},
                                                    {"leq", "le"},
                                                    {"leqslant", "le"},
                                                    {"geq", "ge"},
                                                    {"geqslant", "ge"},
                                                    {"neq", "ne"},
                                                    {"infinity", "infty"},
                                                    {"varnothing", "emptyset"},
                                                    {"degree", "circ"},
                                                    {"bigcup", "cup"},
                                                    {"backslash", "setminus"},
                                                    {"lor", "vee"},
                                                    {"simeq", "approx"},
                                                    {"ldots", "dots"},
                                                    {"cdots", "dots"}}};
constexpr std::array<NamePair, 21> kCommandSigns = {
    {{"times", "*"}, {"cdot", "*"}, {"div", "/"},    {"lbrace", "\\{"}, {"rbrace", "\\}"}, {"lvert", "|"},  {"rvert", "|"},
     {"vert", "|"},  {"mid", "|"},  {"lbrack", "["}, {"rbrack", "]"},   {"langle", "("},   {"rangle", ")"}, {"lt", "<"},
     {"gt", ">"},    {"ast", "*"},  {"colon", ":"},  {"lparen", "("},   {"rparen", ")"},   {"prime", "'"},  {"slash", "/"}}};
// Characters outside ASCII, as LaTeX; empty: skipped.
constexpr std::array<NamePair, 34> kCharacters = {
    {{"\u2212", "-"},        {"\u2013", "-"},       {"\u00D7", "*"},          {"\u00B7", "*"},
     {"\u22C5", "*"},        {"\u00F7", "/"},       {"\u03C0", "\\pi"},       {"\u221A", "\\sqrt"},
     {"\u221E", "\\infty"},  {"\u2264", "\\le"},    {"\u2265", "\\ge"},       {"\u2260", "\\ne"},
     {"\u222A", "\\cup"},    {"\u2229", "\\cap"},   {"\u2208", "\\in"},       {"\u00B0", "^\\circ"},
     {"\u00B2", "^2"},       {"\u00B3", "^3"},      {"\u00BD", "\\frac12"},   {"\u00BC", "\\frac14"},
     {"\u00BE", "\\frac34"}, {"\u00B1", "\\pm"},    {"\u2205", "\\emptyset"}, {"\u211D", "\\mathbb{R}"},
     {"\u2248", "\\approx"}, {"\u03B8", "\\theta"}, {"\u03B1", "\\alpha"},    {"\u03B2", "\\beta"},
     {"\u20AC", ""},         {"\u00A3", ""},        {"\u00A5", ""},           {"\u00A0", " "},
     {"\u202F", " "},        {"\u2009", " "}}};

// ASCII only: the text with kCharacters replaced. Other bytes stay, and end up as signs that no grammar has.
std::string in_ascii(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80U) {
      out += text[at++];
      continue;
    }
    const auto found = std::find_if(kCharacters.begin(), kCharacters.end(),
                                    [&](const NamePair& entry) { return text.substr(at).starts_with(entry.first); });
    if (found == kCharacters.end()) {
      out += text[at++];
    } else {
      out += found->second;
      if (!found->second.empty() && is_math_letter(found->second.back())) out += ' ';  // where the name of a command ends
      at += found->first.size();
    }
  }
  return out;
}

class TokenReader {
 public:
  explicit TokenReader(std::string_view text) : text_(text) {}

  std::optional<std::vector<MathToken>> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~' || c == '$') {
        ++at_;
        is_spaced_ = is_spaced_ || c != '$';
      } else if (is_math_digit(c) || (c == '.' && digit_at(at_ + 1))) {
        read_number();
      } else if (is_math_letter(c)) {
        read_word();
      } else if (c == '\\') {
        if (!read_command()) return std::nullopt;
      } else {
        ++at_;
        add_sign(std::string(1, c));
      }
    }
    if (num_open_braces_ != 0) return std::nullopt;
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] bool digit_at(size_t at) const { return at < text_.size() && is_math_digit(text_[at]); }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  void add(MathToken token) {
    token.is_spaced = std::exchange(is_spaced_, false);
    tokens_.push_back(std::move(token));
  }

  void add_sign(std::string sign) {
    if (sign == "{") ++num_open_braces_;
    if (sign == "}") --num_open_braces_;
    if (sign == "(" || sign == "[" || sign == "\\{") ++depth_;
    if ((sign == ")" || sign == "]" || sign == "\\}") && depth_ > 0) --depth_;
    add({.kind = TokenKind::sign, .text = std::move(sign)});
  }

  // How many bytes at `at` separate thousands: a comma outside brackets, or {,} or \, or \!, or a comma with a thin space.
  [[nodiscard]] size_t separator_at(size_t at) const {
    const std::string_view here = text_.substr(at);
    for (const std::string_view separator : {"{,}", "\\,", "\\!,\\!", ",\\!", "\\!,", "\\ "})
      if (here.starts_with(separator)) return separator.size();
    return here.starts_with(',') && depth_ == 0 ? 1 : 0;
  }

  void read_number() {
    MathToken token{.kind = TokenKind::number};
    std::string digits;
    const auto take_digits = [&] {
      while (digit_at(at_)) digits += text_[at_++];
    };
    take_digits();
    if (!digits.empty() && digits.size() <= 3) {
      for (size_t width = separator_at(at_); width > 0; width = separator_at(at_)) {
        const size_t begin = at_ + width;
        if (!digit_at(begin) || !digit_at(begin + 1) || !digit_at(begin + 2) || digit_at(begin + 3)) break;
        digits += text_.substr(begin, 3);
        at_ = begin + 3;
      }
    }
    const bool point = at_ < text_.size() && text_[at_] == '.';
    if (point && (digit_at(at_ + 1) || text_.substr(at_ + 1).starts_with("\\overline{"))) {
      digits += '.';
      token.has_point = true;
      ++at_;
      take_digits();
    }
    token.text = digits;
    token.exact = Rational::of_decimal(digits);
    std::from_chars(digits.data(), digits.data() + digits.size(), token.approximate);
    if (token.has_point) read_repeating(token);
    read_exponent(token);
    if (token.exact) token.approximate = token.exact->approximate();
    add(std::move(token));
  }

  // 0.1\overline{6}: the digits below the line, over as many nines, behind the others.
  void read_repeating(MathToken& token) {
    constexpr std::string_view kMark = "\\overline{";
    if (!rest().starts_with(kMark)) return;
    size_t end = at_ + kMark.size();
    std::string digits, nines;
    for (; digit_at(end); ++end) digits += text_[end], nines += '9';
    if (digits.empty() || end >= text_.size() || text_[end] != '}') return;
    nines.append(token.text.size() - token.text.find('.') - 1, '0');
    const auto top = Rational::of_decimal(digits), bottom = Rational::of_decimal(nines);
    const auto inverse = bottom ? bottom->inverse() : std::nullopt;
    const auto tail = top && inverse ? top->times(*inverse) : std::nullopt;
    token.exact = tail && token.exact ? token.exact->plus(*tail) : std::nullopt;
    token.has_point = false;  // exact, not rounded
    at_ = end + 1;
  }

  void read_exponent(MathToken& token) {
    if (at_ >= text_.size() || (text_[at_] != 'e' && text_[at_] != 'E')) return;
    size_t end = at_ + 1;
    const bool is_negative = end < text_.size() && text_[end] == '-';
    if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
    int64_t exponent = 0;
    const char* const last = text_.data() + text_.size();
    const auto parsed = std::from_chars(text_.data() + end, last, exponent);
    if (parsed.ec != std::errc() || !digit_at(end) || (parsed.ptr != last && is_math_letter(*parsed.ptr))) return;
    if (is_negative) exponent = -exponent;
    const auto factor = Rational(10).to_power(exponent);
    token.exact = token.exact && factor ? token.exact->times(*factor) : std::nullopt;
    const std::string written = token.text + "e" + std::to_string(exponent);
    if (std::from_chars(written.data(), written.data() + written.size(), token.approximate).ec == std::errc::result_out_of_range)
      token.approximate = exponent > 0 ? std::numeric_limits<double>::infinity() : 0;
    token.text = written;
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
  }

  void read_word() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_math_letter(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    add_command_or(TokenKind::word, word);
  }

  void add_command_or(TokenKind otherwise, std::string_view name) {
    if (!is_one_of(name, kPlainCommands)) return add({.kind = otherwise, .text = std::string(name)});
    add({.kind = TokenKind::command, .text = name == "infinity" ? "infty" : std::string(name)});
  }

  // The content of the braces that follow, without reading it; nothing if there are none or they are not closed.
  std::optional<std::string_view> braced() {
    size_t begin = at_;
    while (begin < text_.size() && text_[begin] == ' ') ++begin;
    if (begin >= text_.size() || text_[begin] != '{') return std::nullopt;
    int depth = 0;
    for (size_t end = begin; end < text_.size(); ++end) {
      if (text_[end] == '{') ++depth;
      if (text_[end] == '}' && --depth == 0) {
        at_ = end + 1;
        return text_.substr(begin + 1, end - begin - 1);
      }
    }
    return std::nullopt;
  }

  bool read_command() {
    const size_t begin = ++at_;
    while (at_ < text_.size() && is_math_letter(text_[at_])) ++at_;
    if (at_ == begin) {
      if (at_ < text_.size()) read_escaped(text_[at_++]);
      return true;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (is_one_of(name, kLookOnly)) {
      if ((name == "left" || name == "right") && rest().starts_with('.')) ++at_;  // no bracket on this side
      is_spaced_ = is_spaced_ || name.ends_with("quad");
      return true;
    }
    if (is_one_of(name, kTexts)) {
      const auto content = braced();
      if (!content) return false;
      if (name == "operatorname") {
        add_command_or(TokenKind::text, *content);
      } else if (!content->empty()) {
        add({.kind = TokenKind::text, .text = std::string(*content)});
      }
      return true;
    }
    if (name == "mathbb") {
      const auto content = braced();
      if (!content) return false;
      add({.kind = TokenKind::command, .text = "mathbb " + std::string(*content)});
      return true;
    }
    if (is_one_of(name, kDecorations)) return true;  // the braces that follow are a group
    if (name == "begin" || name == "end") {
      const auto content = braced();
      if (!content) return false;
      add({.kind = TokenKind::command, .text = std::string(name) + " " + std::string(*content)});
      return true;
    }
    for (const auto& [command, sign] : kCommandSigns)
      if (name == command) {
        add_sign(std::string(sign));
        return true;
      }
    const auto same = std::find_if(kSameCommand.begin(), kSameCommand.end(), [&](const NamePair& entry) { return entry.first == name; });
    add({.kind = TokenKind::command, .text = std::string(same == kSameCommand.end() ? name : same->second)});
    return true;
  }

  void read_escaped(char c) {
    if (c == '{' || c == '}') return add_sign(std::string("\\") + c);
    if (c == '\\') return add_sign("\\\\");
    if (c == '%') return add_sign("%");
    if (c == '|') return add_sign("|");
    is_spaced_ = is_spaced_ || c == ' ' || c == ',' || c == ';' || c == ':';  // everything else is a space, a delimiter or a currency
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0, num_open_braces_ = 0;
  bool is_spaced_ = false;
  std::vector<MathToken> tokens_;
};

}  // namespace

std::optional<std::vector<MathToken>> math_tokens(std::string_view text) {
  if (text.size() > kMaxMathBytes) return std::nullopt;
  const std::string ascii = in_ascii(text);
  return TokenReader(ascii).read();
}

}  // namespace kedge
