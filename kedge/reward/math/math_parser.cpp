#include "kedge/reward/math/math_parser.h"

#include <array>

#include "kedge/reward/math/math_words.h"

namespace kedge {

MathNode MathParser::answer() {
  while (take("=") || take_command("approx")) continue;  // "= 5"
  MathNode whole = list();
  while (at_ < tokens_.size() && tokens_[at_].is_sign(".")) ++at_;
  if (at_ < tokens_.size()) throw UnreadableMath{};
  return whole;
}

void MathParser::expect(std::string_view sign) {
  if (!take(sign)) throw UnreadableMath{};
}

MathNode MathParser::list() {
  const Deeper deeper(depth_);
  std::vector<MathNode> items;
  items.push_back(relation());
  while (peek() != nullptr && is_list_separator(*peek())) {
    while (peek() != nullptr && is_list_separator(*peek())) ++at_;
    if (peek() == nullptr || next_is(")") || next_is("]") || next_is("}") || next_is("\\}")) break;
    items.push_back(relation());
  }
  return items.size() == 1 ? std::move(items[0]) : node_of(MathNode::Kind::list, std::move(items));
}

char MathParser::take_relation() {
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

MathNode MathParser::relation() {
  std::vector<MathNode> sides;
  std::string names;
  sides.push_back(joined());
  for (char name = take_relation(); name != 0; name = take_relation()) {
    names += name;
    sides.push_back(joined());
  }
  return sides.size() == 1 ? std::move(sides[0]) : node_of(MathNode::Kind::relation, std::move(sides), std::move(names));
}

MathNode MathParser::joined() {
  MathNode left = sum();
  for (;;) {
    const bool is_between = left.kind == MathNode::Kind::sequence || left.kind == MathNode::Kind::set || left.kind == MathNode::Kind::join;
    std::string name;
    if (is_between && peek() != nullptr && peek()->is_word("U")) name = "cup", ++at_;
    for (const char* const command : {"cup", "cap", "setminus"})
      if (name.empty() && take_command(command)) name = command;
    if (name.empty()) return left;
    MathNode right = sum();
    if (left.kind == MathNode::Kind::join && left.name == name && name != "setminus") {
      left.parts.push_back(std::move(right));
    } else {
      std::vector<MathNode> parts;
      parts.push_back(std::move(left));
      parts.push_back(std::move(right));
      left = node_of(MathNode::Kind::join, std::move(parts), name);
      if (++num_joins_ > kMaxJoins) throw UnreadableMath{};  // mixed joins nest to the left
    }
  }
}

char MathParser::take_term_sign() {
  if (take("+")) return '+';
  if (take("-")) return '-';
  if (take_command("pm")) return 'p';
  return take_command("mp") ? 'm' : '\0';
}

MathNode MathParser::with_sign(char sign, MathNode term) {
  if (sign == '-' && term.kind == MathNode::Kind::percent) {  // (-5)%, so that an answer's percent sign is always outermost
    term.parts[0] = node_of(MathNode::Kind::negate, {std::move(term.parts[0])});
    return term;
  }
  if (sign == '-') return node_of(MathNode::Kind::negate, {std::move(term)});
  if (sign == 'p' || sign == 'm') return node_of(MathNode::Kind::plus_minus, {std::move(term)}, sign == 'm' ? "-" : "");
  return term;
}

MathNode MathParser::sum() {
  const Deeper deeper(depth_);
  std::vector<MathNode> terms;
  for (char sign = take_term_sign(); terms.empty() || sign != 0; sign = take_term_sign()) terms.push_back(with_sign(sign, product()));
  return terms.size() == 1 ? std::move(terms[0]) : node_of(MathNode::Kind::add, std::move(terms));
}

MathNode MathParser::product() {
  std::vector<MathNode> factors;
  factors.push_back(factor());
  for (bool may_be_mixed = true, is_scaled = false;;) {
    if (take("*") || take_command("bullet")) {
      factors.push_back(factor());
      may_be_mixed = true;
    } else if (take("/") || take(":")) {
      factors.push_back(node_of(MathNode::Kind::divide, {number_of(1), factor()}));
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
      MathNode whole = factors.size() == 1 ? std::move(factors[0]) : node_of(MathNode::Kind::multiply, std::move(factors));
      factors = {node_of(MathNode::Kind::percent, {std::move(whole)})};
      if (++num_joins_ > kMaxJoins) throw UnreadableMath{};
    } else if (starts_factor()) {
      factors.push_back(power());
      may_be_mixed = false;
    } else {
      return factors.size() == 1 ? std::move(factors[0]) : node_of(MathNode::Kind::multiply, std::move(factors));
    }
  }
}

bool MathParser::take_fraction_of_mixed(std::vector<MathNode>& factors) {
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
  MathNode fraction = node_of(MathNode::Kind::divide, {std::move(top), std::move(bottom)});
  if (is_mixed) {
    factors.back() = node_of(MathNode::Kind::add, {std::move(factors.back()), std::move(fraction)});
  } else {
    factors.push_back(std::move(fraction));
  }
  return true;
}

bool MathParser::skip_units(const MathNode& last) {
  if (peek() == nullptr || !starts_unit(*peek(), last.kind == MathNode::Kind::number, last.kind == MathNode::Kind::symbol)) return false;
  for (; peek() != nullptr; ++at_) {
    const MathToken& token = *peek();
    if (is_list_separator(token) || token.is_command("le") || token.is_command("ge") || token.is_command("pm")) return true;
    if (token.kind == MathToken::Kind::sign && std::string_view("=<>+)]}|&\\}\\\\").find(token.text) != std::string_view::npos) return true;
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

bool MathParser::starts_factor() const {
  const MathToken* token = peek();
  if (token == nullptr || is_list_separator(*token)) return false;
  if (token->kind == MathToken::Kind::word) return token->text != "U";
  if (token->kind == MathToken::Kind::sign) return token->text == "(" || token->text == "{" || (token->text == "|" && num_open_bars_ == 0);
  if (token->kind != MathToken::Kind::command) return false;
  constexpr std::array<std::string_view, 20> kNoFactor = {"cup",    "cap",   "setminus", "le", "ge",     "ne",    "in",
                                                          "approx", "equiv", "pm",       "mp", "rfloor", "rceil", "bullet",
                                                          "notin",  "vee",   "wedge",    "to", "mapsto", "dots"};
  return !is_in(token->text, kNoFactor) && !token->text.starts_with("end ");
}

MathNode MathParser::factor() {
  const Deeper deeper(depth_);
  if (const char sign = take_term_sign()) return with_sign(sign, factor());
  return power();
}

MathNode MathParser::power() {
  MathNode node = base();
  for (int num_postfixes = 0;; ++num_postfixes) {
    if (num_postfixes > kMaxJoins) throw UnreadableMath{};
    if (take("^")) {
      if (take_degree()) {
        node = node_of(MathNode::Kind::function, {std::move(node)}, "degree");
      } else {
        MathNode exponent = script();
        node = node_of(MathNode::Kind::power, {std::move(node), std::move(exponent)});
      }
    } else if (take_command("circ")) {
      node = node_of(MathNode::Kind::function, {std::move(node)}, "degree");
    } else if (take("!")) {
      node = node_of(MathNode::Kind::function, {std::move(node)}, "factorial");
    } else if (next_is("'") && node.kind == MathNode::Kind::symbol) {
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

bool MathParser::take_degree() {
  if (take_command("circ")) return true;
  if (!next_is("{") || peek(2) == nullptr || !peek(1)->is_command("circ") || !peek(2)->is_sign("}")) return false;
  at_ += 3;
  return true;
}

void MathParser::add_subscript(MathNode& node) {
  std::string name = node.name;
  if (node.kind == MathNode::Kind::number) {
    name = tokens_[at_ - 2].text;
  } else if (node.kind != MathNode::Kind::symbol) {
    throw UnreadableMath{};
  }
  const size_t begin = at_;
  static_cast<void>(script());
  name += '_';
  for (size_t i = begin; i < at_; ++i)
    if (!tokens_[i].is_sign("{") && !tokens_[i].is_sign("}")) name += tokens_[i].text;
  node = node.kind == MathNode::Kind::number ? MathNode{.kind = MathNode::Kind::text, .name = std::move(name)} : symbol_of(std::move(name));
}

MathNode MathParser::script() {
  const Deeper deeper(depth_);
  if (const char sign = take_term_sign()) return with_sign(sign, script());
  if (peek() != nullptr && peek()->kind == MathToken::Kind::number) return base();
  return argument();
}

MathNode MathParser::argument() {
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

}  // namespace kedge
