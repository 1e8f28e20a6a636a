#include "kedge/reward/math/math_expression.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kedge/reward/math/math_words.h"

namespace kedge {
namespace {

using NodeKind = MathNode::Kind;

constexpr int kMaxMathDepth = 200;  // of calls; a bracket inside another takes four
constexpr int kMaxMathJoins = 40;   // parts that nest to the left: postfixes, mixed joins, factors behind a function

struct UnreadableMath {};

constexpr std::array<std::string_view, 24> kFunctions = {"sin",    "cos",   "tan",  "cot",  "sec", "csc", "arcsin", "arccos",
                                                         "arctan", "sinh",  "cosh", "tanh", "log", "ln",  "lg",     "exp",
                                                         "abs",    "floor", "ceil", "min",  "max", "gcd", "lcm",    "det"};
bool is_in(std::string_view name, auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); }

MathNode node_of(NodeKind kind, std::vector<MathNode> parts, std::string name = "") {
  return {.kind = kind, .name = std::move(name), .parts = std::move(parts)};
}
MathNode symbol_of(std::string name) { return {.kind = NodeKind::symbol, .name = std::move(name)}; }
MathNode text_of_math(std::string_view text) {
  if (const auto letter = choice_letter(text)) return symbol_of(std::string(1, *letter));
  return {.kind = NodeKind::text, .name = comparable_text(text)};
}
MathNode number_of(int64_t value) {
  return {.kind = NodeKind::number, .exact = Rational(value), .approximate = static_cast<double>(value)};
}

bool is_whole_number(const MathNode& node) {
  return node.kind == NodeKind::number && !node.has_point && node.exact && node.exact->is_integer();
}

class MathParser {
 public:
  explicit MathParser(std::vector<MathToken> tokens) : tokens_(std::move(tokens)) {}

  MathNode answer() {
    while (take("=") || take_command("approx")) continue;  // "= 5"
    MathNode whole = list();
    while (at_ < tokens_.size() && tokens_[at_].is_sign(".")) ++at_;
    if (at_ < tokens_.size()) throw UnreadableMath{};
    return whole;
  }

 private:
  // One level of the grammar's recursion.
  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ > kMaxMathDepth) throw UnreadableMath{};
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  [[nodiscard]] const MathToken* peek(size_t ahead = 0) const { return at_ + ahead < tokens_.size() ? &tokens_[at_ + ahead] : nullptr; }
  [[nodiscard]] bool next_is(std::string_view sign) const { return peek() != nullptr && peek()->is_sign(sign); }
  [[nodiscard]] bool next_is_command(std::string_view name) const { return peek() != nullptr && peek()->is_command(name); }
  bool take(std::string_view sign) { return next_is(sign) && ++at_ > 0; }
  bool take_command(std::string_view name) { return next_is_command(name) && ++at_ > 0; }
  void expect(std::string_view sign) {
    if (!take(sign)) throw UnreadableMath{};
  }

  MathNode list() {
    const Deeper deeper(depth_);
    std::vector<MathNode> items;
    items.push_back(relation());
    while (peek() != nullptr && is_list_separator(*peek())) {
      while (peek() != nullptr && is_list_separator(*peek())) ++at_;
      if (peek() == nullptr || next_is(")") || next_is("]") || next_is("}") || next_is("\\}")) break;
      items.push_back(relation());
    }
    return items.size() == 1 ? std::move(items[0]) : node_of(NodeKind::list, std::move(items));
  }

  // '=', '<', '>', 'l'e, 'g'e, '!' for not equal, 'e' for an element of; 0: none.
  char take_relation() {
    constexpr std::array<std::pair<std::string_view, char>, 6> kCommands = {
        {{"le", 'l'}, {"ge", 'g'}, {"ne", '!'}, {"in", 'e'}, {"approx", '='}, {"equiv", '='}}};
    for (const auto& [name, relation] : kCommands)
      if (take_command(name)) return relation;
    for (const char c : {'=', '<', '>'})
      if (take(std::string_view(&c, 1))) {
        if (c != '=' && take("=")) return c == '<' ? 'l' : 'g';
        return c;
      }
    return 0;
  }

  MathNode relation() {
    std::vector<MathNode> sides;
    std::string names;
    sides.push_back(joined());
    for (char name = take_relation(); name != 0; name = take_relation()) {
      names += name;
      sides.push_back(joined());
    }
    return sides.size() == 1 ? std::move(sides[0]) : node_of(NodeKind::relation, std::move(sides), std::move(names));
  }

  MathNode joined() {
    MathNode left = sum();
    for (;;) {
      const bool is_between = left.kind == NodeKind::sequence || left.kind == NodeKind::set || left.kind == NodeKind::join;
      std::string name;
      if (is_between && peek() != nullptr && peek()->is_word("U")) name = "cup", ++at_;
      for (const char* const command : {"cup", "cap", "setminus"})
        if (name.empty() && take_command(command)) name = command;
      if (name.empty()) return left;
      MathNode right = sum();
      if (left.kind == NodeKind::join && left.name == name && name != "setminus") {
        left.parts.push_back(std::move(right));
      } else {
        std::vector<MathNode> parts;
        parts.push_back(std::move(left));
        parts.push_back(std::move(right));
        left = node_of(NodeKind::join, std::move(parts), name);
        if (++num_joins_ > kMaxMathJoins) throw UnreadableMath{};  // mixed joins nest to the left
      }
    }
  }

  // The sign before a term: '+', '-', 'p' for \pm, 'm' for \mp; 0: none.
  char take_term_sign() {
    if (take("+")) return '+';
    if (take("-")) return '-';
    if (take_command("pm")) return 'p';
    return take_command("mp") ? 'm' : '\0';
  }

  MathNode with_sign(char sign, MathNode term) {
    if (sign == '-' && term.kind == NodeKind::percent) {  // (-5)%, so that an answer's percent sign is always outermost
      term.parts[0] = node_of(NodeKind::negate, {std::move(term.parts[0])});
      return term;
    }
    if (sign == '-') return node_of(NodeKind::negate, {std::move(term)});
    if (sign == 'p' || sign == 'm') return node_of(NodeKind::plus_minus, {std::move(term)}, sign == 'm' ? "-" : "");
    return term;
  }

  MathNode sum() {
    const Deeper deeper(depth_);
    std::vector<MathNode> terms;
    for (char sign = take_term_sign(); terms.empty() || sign != 0; sign = take_term_sign()) terms.push_back(with_sign(sign, product()));
    return terms.size() == 1 ? std::move(terms[0]) : node_of(NodeKind::add, std::move(terms));
  }

  MathNode product() {
    std::vector<MathNode> factors;
    factors.push_back(factor());
    for (bool may_be_mixed = true, is_scaled = false;;) {
      if (take("*") || take_command("bullet")) {
        factors.push_back(factor());
        may_be_mixed = true;
      } else if (take("/") || take(":")) {
        factors.push_back(node_of(NodeKind::divide, {number_of(1), factor()}));
        may_be_mixed = false;
      } else if (may_be_mixed && is_whole_number(factors.back()) && take_fraction_of_mixed(factors)) {
        may_be_mixed = false;
      } else if (const int64_t scale = peek() == nullptr ? 0 : scale_word(*peek()); scale > 0 && !is_scaled) {
        factors.push_back(number_of(scale));
        is_scaled = true;
        may_be_mixed = false;
        if (peek()->kind == MathToken::Kind::word) ++at_;  // in a text a unit may follow: it is skipped as one
      } else if (skip_units(factors.back())) {
        may_be_mixed = false;
      } else if (take("%")) {  // of everything before it: 2/3%
        MathNode whole = factors.size() == 1 ? std::move(factors[0]) : node_of(NodeKind::multiply, std::move(factors));
        factors = {node_of(NodeKind::percent, {std::move(whole)})};
        if (++num_joins_ > kMaxMathJoins) throw UnreadableMath{};
      } else if (starts_factor()) {
        factors.push_back(power());
        may_be_mixed = false;
      } else {
        return factors.size() == 1 ? std::move(factors[0]) : node_of(NodeKind::multiply, std::move(factors));
      }
    }
  }

  // What follows a whole number makes it a mixed one if it is a fraction of whole numbers, 2 1/2 or 2\frac12; other fractions multiply it.
  bool take_fraction_of_mixed(std::vector<MathNode>& factors) {
    MathNode top, bottom;
    if (take_command("frac")) {
      top = argument();
      bottom = argument();
    } else if (peek(2) != nullptr && peek()->kind == MathToken::Kind::number && peek()->is_spaced && peek(1)->is_sign("/") &&
               peek(2)->kind == MathToken::Kind::number) {
      top = base();
      ++at_;
      bottom = base();
    } else {
      return false;
    }
    const bool is_mixed = is_whole_number(top) && is_whole_number(bottom);
    MathNode fraction = node_of(NodeKind::divide, {std::move(top), std::move(bottom)});
    if (is_mixed) {
      factors.back() = node_of(NodeKind::add, {std::move(factors.back()), std::move(fraction)});
    } else {
      factors.push_back(std::move(fraction));
    }
    return true;
  }

  // Units are not compared: "5 cm^2" is 5.
  bool skip_units(const MathNode& last) {
    if (peek() == nullptr || !starts_unit(*peek(), last.kind == NodeKind::number, last.kind == NodeKind::symbol)) return false;
    for (; peek() != nullptr; ++at_) {
      const MathToken& token = *peek();
      if (is_list_separator(token) || token.is_command("le") || token.is_command("ge") || token.is_command("pm")) return true;
      if (token.kind == MathToken::Kind::sign && std::string_view("=<>+)]}|&\\}\\\\").find(token.text) != std::string_view::npos)
        return true;
      if (token.is_sign("-") && token.is_spaced) return true;
      if (token.kind == MathToken::Kind::number && !tokens_[at_ - 1].is_sign("^") && !tokens_[at_ - 1].is_sign("-")) throw UnreadableMath{};
      if (!token.is_sign("{")) continue;
      for (int depth = 0; peek() != nullptr; ++at_) {
        depth += next_is("{") ? 1 : (next_is("}") ? -1 : 0);
        if (depth == 0) break;
      }
    }
    return true;
  }

  [[nodiscard]] bool starts_factor() const {
    const MathToken* token = peek();
    if (token == nullptr || is_list_separator(*token)) return false;
    if (token->kind == MathToken::Kind::word) return token->text != "U";
    if (token->kind == MathToken::Kind::sign)
      return token->text == "(" || token->text == "{" || (token->text == "|" && num_open_bars_ == 0);
    if (token->kind != MathToken::Kind::command) return false;
    constexpr std::array<std::string_view, 20> kNoFactor = {"cup",    "cap",   "setminus", "le", "ge",     "ne",    "in",
                                                            "approx", "equiv", "pm",       "mp", "rfloor", "rceil", "bullet",
                                                            "notin",  "vee",   "wedge",    "to", "mapsto", "dots"};
    return !is_in(token->text, kNoFactor) && !token->text.starts_with("end ");
  }

  MathNode factor() {
    const Deeper deeper(depth_);
    if (const char sign = take_term_sign()) return with_sign(sign, factor());
    return power();
  }

  MathNode power() {
    MathNode node = base();
    for (int num_postfixes = 0;; ++num_postfixes) {
      if (num_postfixes > kMaxMathJoins) throw UnreadableMath{};
      if (take("^")) {
        if (take_degree()) {
          node = node_of(NodeKind::function, {std::move(node)}, "degree");
        } else {
          MathNode exponent = script();
          node = node_of(NodeKind::power, {std::move(node), std::move(exponent)});
        }
      } else if (take_command("circ")) {
        node = node_of(NodeKind::function, {std::move(node)}, "degree");
      } else if (take("!")) {
        node = node_of(NodeKind::function, {std::move(node)}, "factorial");
      } else if (next_is("'") && node.kind == NodeKind::symbol) {
        ++at_;
        node.name += "'";
      } else if (next_is("_")) {
        ++at_;
        add_subscript(node);
      } else {
        return node;
      }
    }
  }

  bool take_degree() {
    if (take_command("circ")) return true;
    if (!next_is("{") || peek(2) == nullptr || !peek(1)->is_command("circ") || !peek(2)->is_sign("}")) return false;
    at_ += 3;
    return true;
  }

  // x_1 is a symbol of its own; 1010_2 is a numeral, compared as it is written.
  void add_subscript(MathNode& node) {
    std::string name = node.name;
    if (node.kind == NodeKind::number) {
      name = tokens_[at_ - 2].text;
    } else if (node.kind != NodeKind::symbol) {
      throw UnreadableMath{};
    }
    const size_t begin = at_;
    static_cast<void>(script());
    name += '_';
    for (size_t i = begin; i < at_; ++i)
      if (!tokens_[i].is_sign("{") && !tokens_[i].is_sign("}")) name += tokens_[i].text;
    node = node.kind == NodeKind::number ? MathNode{.kind = NodeKind::text, .name = std::move(name)} : symbol_of(std::move(name));
  }

  // What follows ^ or _: a group, or one number, letter or command.
  MathNode script() {
    const Deeper deeper(depth_);
    if (const char sign = take_term_sign()) return with_sign(sign, script());
    if (peek() != nullptr && peek()->kind == MathToken::Kind::number) return base();
    return argument();
  }

  // A group, one digit, one letter, or a command: \frac12, \sqrt2, x^y.
  MathNode argument() {
    if (peek() == nullptr) throw UnreadableMath{};
    MathToken& token = tokens_[at_];
    const bool is_digits = token.kind == MathToken::Kind::number && token.text.find_first_not_of("0123456789") == std::string::npos;
    if ((is_digits || token.kind == MathToken::Kind::word) && token.text.size() > 1) {
      const char first = token.text[0];
      token.text.erase(0, 1);
      token.is_spaced = false;
      if (!is_digits) return symbol_of(std::string(1, first));
      token.exact = Rational::of_decimal(token.text);
      token.approximate = token.exact ? token.exact->approximate() : token.approximate;
      return number_of(first - '0');
    }
    return base();
  }

  MathNode base() {
    const Deeper deeper(depth_);
    if (peek() == nullptr) throw UnreadableMath{};
    const MathToken token = tokens_[at_++];
    switch (token.kind) {
      case MathToken::Kind::number:
        return {.kind = NodeKind::number, .exact = token.exact, .approximate = token.approximate, .has_point = token.has_point};
      case MathToken::Kind::text:
        return text_of_math(token.text);
      case MathToken::Kind::word:
        return word(token.text);
      case MathToken::Kind::command:
        return command(token.text);
      default:
        return bracket(token.text);
    }
  }

  static MathNode word(const std::string& letters) {
    if (letters.size() == 1) return symbol_of(letters);
    if (letters.size() > 3) return {.kind = NodeKind::text, .name = comparable_text(letters)};
    std::vector<MathNode> factors;
    for (const char c : letters) factors.push_back(symbol_of(std::string(1, c)));
    return node_of(NodeKind::multiply, std::move(factors));
  }

  MathNode bracket(const std::string& open) {
    if (open == "{") {
      MathNode inside = list();
      expect("}");
      return inside;
    }
    if (open == "|") {
      ++num_open_bars_;
      MathNode inside = sum();
      expect("|");
      --num_open_bars_;
      return node_of(NodeKind::function, {std::move(inside)}, "abs");
    }
    if (open == "\\{") {
      if (take("\\}")) return node_of(NodeKind::set, {});
      MathNode inside = list();
      expect("\\}");
      if (inside.kind != NodeKind::list) return node_of(NodeKind::set, {std::move(inside)});
      inside.kind = NodeKind::set;
      return inside;
    }
    if (open != "(" && open != "[" && open != "]") throw UnreadableMath{};
    const int outer_bars = std::exchange(num_open_bars_, 0);
    MathNode inside = list();
    num_open_bars_ = outer_bars;
    const bool is_closed = next_is("]");
    if (!take(")") && !take("]") && !take("[")) throw UnreadableMath{};
    if (inside.kind != NodeKind::list) return inside;
    inside.kind = NodeKind::sequence;
    inside.name = std::string(open == "[" ? "[" : "(") + (is_closed ? "]" : ")");  // ]1, 2[ is (1, 2)
    return inside;
  }

  MathNode command(const std::string& name) {
    if (name == "frac" || name == "binom") {
      MathNode top = argument(), bottom = argument();
      if (name == "frac") return node_of(NodeKind::divide, {std::move(top), std::move(bottom)});
      return node_of(NodeKind::function, {std::move(top), std::move(bottom)}, "binom");
    }
    if (name == "sqrt") return root();
    if (is_in(name, kFunctions)) return function(name);
    if (name == "lfloor" || name == "lceil") {
      MathNode inside = sum();
      if (!take_command(name == "lfloor" ? "rfloor" : "rceil")) throw UnreadableMath{};
      return node_of(NodeKind::function, {std::move(inside)}, name.substr(1));
    }
    if (name == "emptyset") return node_of(NodeKind::set, {});
    if (name == "mathbb R") return node_of(NodeKind::sequence, {node_of(NodeKind::negate, {symbol_of("infty")}), symbol_of("infty")}, "()");
    if (name.starts_with("begin ")) return matrix(name.substr(6));
    if (name == "boxed" || name == "overline") return argument();
    constexpr std::array<std::string_view, 12> kNoOperand = {"cup", "cap",    "setminus", "le",   "ge",   "ne",
                                                             "in",  "rfloor", "rceil",    "circ", "dots", "to"};
    if (is_in(name, kNoOperand) || name.starts_with("end ")) throw UnreadableMath{};
    return symbol_of(name);
  }

  MathNode root() {
    MathNode degree = number_of(2);
    if (take("[")) {
      degree = sum();
      expect("]");
    }
    MathNode of = argument();
    return node_of(NodeKind::function, {std::move(degree), std::move(of)}, "root");
  }

  MathNode function(const std::string& name) {
    std::optional<MathNode> exponent, subscript;
    for (int i = 0; i < 2; ++i) {
      if (!exponent && take("^")) exponent = script();
      if (!subscript && take("_")) subscript = script();
    }
    MathNode of = next_is("(") || next_is("{") || next_is("[") ? base() : power();
    std::vector<MathNode> parts;
    if (of.kind == NodeKind::sequence) {
      parts = std::move(of.parts);
    } else {
      parts.push_back(std::move(of));
      while (!next_is("(") && starts_factor() && peek()->kind != MathToken::Kind::command && !parts.empty()) {
        MathNode more = power();
        parts[0] = node_of(NodeKind::multiply, {std::move(parts[0]), std::move(more)});
        if (++num_joins_ > kMaxMathJoins) throw UnreadableMath{};
      }
    }
    if (subscript) parts.push_back(std::move(*subscript));
    const bool is_inverse = exponent && exponent->kind == NodeKind::negate && is_whole_number(exponent->parts[0]) &&
                            exponent->parts[0].exact == Rational(1) && (name == "sin" || name == "cos" || name == "tan");
    MathNode call = node_of(NodeKind::function, std::move(parts), is_inverse ? "arc" + name : name);
    return exponent && !is_inverse ? node_of(NodeKind::power, {std::move(call), std::move(*exponent)}) : std::move(call);
  }

  MathNode matrix(const std::string& environment) {
    if (environment == "array" && take("{")) {
      while (peek() != nullptr && !next_is("}")) ++at_;
      expect("}");
    } else if (!environment.ends_with("matrix")) {
      throw UnreadableMath{};
    }
    std::vector<MathNode> rows(1, node_of(NodeKind::sequence, {}, "()"));
    while (!take_command("end " + environment)) {
      if (take("\\\\")) {
        if (!next_is_command("end " + environment)) rows.push_back(node_of(NodeKind::sequence, {}, "()"));
      } else if (!take("&")) {
        rows.back().parts.push_back(relation());
      }
    }
    return node_of(NodeKind::matrix, std::move(rows));
  }

  std::vector<MathToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0, num_open_bars_ = 0, num_joins_ = 0;
};

}  // namespace

std::optional<MathNode> parse_math(std::string_view text) {
  auto tokens = math_tokens(text);
  if (!tokens || tokens->empty()) return std::nullopt;
  if (tokens->size() == 1 && tokens->front().kind == MathToken::Kind::text && tokens->front().text.size() < text.size())
    return parse_math(tokens->front().text);  // \text{...} around everything
  if (is_text_answer(*tokens)) {
    std::string words;
    for (const MathToken& token : *tokens) words.append(token.is_spaced && !words.empty() ? " " : "").append(token.text);
    if (words.size() > kLongestTextAnswer) return std::nullopt;
    return MathNode{.kind = NodeKind::text, .name = comparable_text(words)};
  }
  try {
    return MathParser(std::move(*tokens)).answer();
  } catch (const UnreadableMath&) {
    return std::nullopt;
  }
}

}  // namespace kedge
