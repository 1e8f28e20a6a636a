#pragma once
// The parser behind parse_math(): tokens in, a tree out, by recursive descent. Operators are in math_parser.cpp, what they apply to in
// math_parser_operands.cpp.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/reward/math/math_expression.h"
#include "kedge/reward/math/math_tokens.h"

namespace kedge {

// Thrown by the parser: these tokens are no answer.
struct UnreadableMath {};

class MathParser {
 public:
  explicit MathParser(std::vector<MathToken> tokens) : tokens_(std::move(tokens)) {}
  // All of the tokens. Throws UnreadableMath.
  MathNode answer();

 private:
  static constexpr int kMaxDepth = 200;  // of calls; a bracket inside another takes four
  static constexpr int kMaxJoins = 40;   // parts that nest to the left: postfixes, mixed joins, factors behind a function

  // One level of the grammar's recursion.
  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ > kMaxDepth) throw UnreadableMath{};
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
  void expect(std::string_view sign);

  // Operators, from those that bind least to those that bind most.
  MathNode list();
  // '=', '<', '>', 'l'e, 'g'e, '!' for not equal, 'e' for an element of; 0: none.
  char take_relation();
  MathNode relation();
  MathNode joined();
  // The sign before a term: '+', '-', 'p' for \pm, 'm' for \mp; 0: none.
  char take_term_sign();
  MathNode with_sign(char sign, MathNode term);
  MathNode sum();
  MathNode product();
  // What follows a whole number makes it a mixed one if it is a fraction of whole numbers, 2 1/2 or 2\frac12; other fractions multiply it.
  bool take_fraction_of_mixed(std::vector<MathNode>& factors);
  // Units are not compared: "5 cm^2" is 5.
  bool skip_units(const MathNode& last);
  [[nodiscard]] bool starts_factor() const;
  MathNode factor();
  MathNode power();
  bool take_degree();
  // x_1 is a symbol of its own; 1010_2 is a numeral, compared as it is written.
  void add_subscript(MathNode& node);
  // What follows ^ or _: a group, or one number, letter or command.
  MathNode script();
  // A group, one digit, one letter, or a command: \frac12, \sqrt2, x^y.
  MathNode argument();

  // Operands.
  MathNode base();
  static MathNode word(const std::string& letters);
  MathNode bracket(const std::string& open);
  MathNode command(const std::string& name);
  MathNode root();
  MathNode function(const std::string& name);
  MathNode matrix(const std::string& environment);

  [[nodiscard]] static bool is_in(std::string_view name, auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); }
  [[nodiscard]] static MathNode node_of(MathNode::Kind kind, std::vector<MathNode> parts, std::string name = "") {
    return {.kind = kind, .name = std::move(name), .parts = std::move(parts)};
  }
  [[nodiscard]] static MathNode symbol_of(std::string name) { return {.kind = MathNode::Kind::symbol, .name = std::move(name)}; }
  [[nodiscard]] static MathNode number_of(int64_t value) {
    return {.kind = MathNode::Kind::number, .exact = Rational(value), .approximate = static_cast<double>(value)};
  }
  [[nodiscard]] static bool is_whole_number(const MathNode& node) {
    return node.kind == MathNode::Kind::number && !node.has_point && node.exact && node.exact->is_integer();
  }

  std::vector<MathToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0, num_open_bars_ = 0, num_joins_ = 0;
};

}  // namespace kedge
