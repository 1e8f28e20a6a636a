// What operators apply to: numbers, letters, texts, brackets, commands, functions, matrices.
#include <array>
#include <optional>

#include "kedge/reward/math/math_parser.h"
#include "kedge/reward/math/math_words.h"

namespace kedge {
namespace {

constexpr std::array<std::string_view, 24> kMathFunctions = {"sin",    "cos",   "tan",  "cot",  "sec", "csc", "arcsin", "arccos",
                                                             "arctan", "sinh",  "cosh", "tanh", "log", "ln",  "lg",     "exp",
                                                             "abs",    "floor", "ceil", "min",  "max", "gcd", "lcm",    "det"};

MathNode text_operand(std::string_view text) {
  if (const auto letter = choice_letter(text)) return {.kind = MathNode::Kind::symbol, .name = std::string(1, *letter)};
  return {.kind = MathNode::Kind::text, .name = comparable_text(text)};
}

}  // namespace

MathNode MathParser::base() {
  const Deeper deeper(depth_);
  if (peek() == nullptr) throw UnreadableMath{};
  const MathToken token = tokens_[at_++];
  switch (token.kind) {
    case MathToken::Kind::number:
      return {.kind = MathNode::Kind::number, .exact = token.exact, .approximate = token.approximate, .has_point = token.has_point};
    case MathToken::Kind::text:
      return text_operand(token.text);
    case MathToken::Kind::word:
      return word(token.text);
    case MathToken::Kind::command:
      return command(token.text);
    default:
      return bracket(token.text);
  }
}

MathNode MathParser::word(const std::string& letters) {
  if (letters.size() == 1) return symbol_of(letters);
  if (letters.size() > 3) return {.kind = MathNode::Kind::text, .name = comparable_text(letters)};
  std::vector<MathNode> factors;
  for (const char c : letters) factors.push_back(symbol_of(std::string(1, c)));
  return node_of(MathNode::Kind::multiply, std::move(factors));
}

MathNode MathParser::bracket(const std::string& open) {
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
    return node_of(MathNode::Kind::function, {std::move(inside)}, "abs");
  }
  if (open == "\\{") {
    if (take("\\}")) return node_of(MathNode::Kind::set, {});
    MathNode inside = list();
    expect("\\}");
    if (inside.kind != MathNode::Kind::list) return node_of(MathNode::Kind::set, {std::move(inside)});
    inside.kind = MathNode::Kind::set;
    return inside;
  }
  if (open != "(" && open != "[" && open != "]") throw UnreadableMath{};
  const int outer_bars = std::exchange(num_open_bars_, 0);
  MathNode inside = list();
  num_open_bars_ = outer_bars;
  const bool is_closed = next_is("]");
  if (!take(")") && !take("]") && !take("[")) throw UnreadableMath{};
  if (inside.kind != MathNode::Kind::list) return inside;
  inside.kind = MathNode::Kind::sequence;
  inside.name = std::string(open == "[" ? "[" : "(") + (is_closed ? "]" : ")");  // ]1, 2[ is (1, 2)
  return inside;
}

MathNode MathParser::command(const std::string& name) {
  if (name == "frac" || name == "binom") {
    MathNode top = argument(), bottom = argument();
    if (name == "frac") return node_of(MathNode::Kind::divide, {std::move(top), std::move(bottom)});
    return node_of(MathNode::Kind::function, {std::move(top), std::move(bottom)}, "binom");
  }
  if (name == "sqrt") return root();
  if (is_in(name, kMathFunctions)) return function(name);
  if (name == "lfloor" || name == "lceil") {
    MathNode inside = sum();
    if (!take_command(name == "lfloor" ? "rfloor" : "rceil")) throw UnreadableMath{};
    return node_of(MathNode::Kind::function, {std::move(inside)}, name.substr(1));
  }
  if (name == "emptyset") return node_of(MathNode::Kind::set, {});
  if (name == "mathbb R")
    return node_of(MathNode::Kind::sequence, {node_of(MathNode::Kind::negate, {symbol_of("infty")}), symbol_of("infty")}, "()");
  if (name.starts_with("begin ")) return matrix(name.substr(6));
  if (name == "boxed" || name == "overline") return argument();
  constexpr std::array<std::string_view, 12> kNoOperand = {"cup", "cap",    "setminus", "le",   "ge",   "ne",
                                                           "in",  "rfloor", "rceil",    "circ", "dots", "to"};
  if (is_in(name, kNoOperand) || name.starts_with("end ")) throw UnreadableMath{};
  return symbol_of(name);
}

MathNode MathParser::root() {
  MathNode degree = number_of(2);
  if (take("[")) {
    degree = sum();
    expect("]");
  }
  MathNode of = argument();
  return node_of(MathNode::Kind::function, {std::move(degree), std::move(of)}, "root");
}

MathNode MathParser::function(const std::string& name) {
  std::optional<MathNode> exponent, subscript;
  for (int i = 0; i < 2; ++i) {
    if (!exponent && take("^")) exponent = script();
    if (!subscript && take("_")) subscript = script();
  }
  MathNode of = next_is("(") || next_is("{") || next_is("[") ? base() : power();
  std::vector<MathNode> parts;
  if (of.kind == MathNode::Kind::sequence) {
    parts = std::move(of.parts);
  } else {
    parts.push_back(std::move(of));
    while (!next_is("(") && starts_factor() && peek()->kind != MathToken::Kind::command && !parts.empty()) {
      MathNode more = power();
      parts[0] = node_of(MathNode::Kind::multiply, {std::move(parts[0]), std::move(more)});
      if (++num_joins_ > kMaxJoins) throw UnreadableMath{};
    }
  }
  if (subscript) parts.push_back(std::move(*subscript));
  const bool is_inverse = exponent && exponent->kind == MathNode::Kind::negate && is_whole_number(exponent->parts[0]) &&
                          exponent->parts[0].exact == Rational(1) && (name == "sin" || name == "cos" || name == "tan");
  MathNode call = node_of(MathNode::Kind::function, std::move(parts), is_inverse ? "arc" + name : name);
  return exponent && !is_inverse ? node_of(MathNode::Kind::power, {std::move(call), std::move(*exponent)}) : std::move(call);
}

MathNode MathParser::matrix(const std::string& environment) {
  if (environment == "array" && take("{")) {
    while (peek() != nullptr && !next_is("}")) ++at_;
    expect("}");
  } else if (!environment.ends_with("matrix")) {
    throw UnreadableMath{};
  }
  std::vector<MathNode> rows(1, node_of(MathNode::Kind::sequence, {}, "()"));
  while (!take_command("end " + environment)) {
    if (take("\\\\")) {
      if (!next_is_command("end " + environment)) rows.push_back(node_of(MathNode::Kind::sequence, {}, "()"));
    } else if (!take("&")) {
      rows.back().parts.push_back(relation());
    }
  }
  return node_of(MathNode::Kind::matrix, std::move(rows));
}

}  // namespace kedge
