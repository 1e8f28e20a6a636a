#pragma once
// Reads expressions from tokens, by Jinja's rules of precedence. The statement parser builds on it.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/text/jinja/jinja_ast.h"
#include "kedge/text/jinja/jinja_lexer.h"

namespace kedge::jinja {

class ExpressionParser {
 public:
  // `name` is the template's, for errors; it must outlive the parser.
  ExpressionParser(std::vector<Token> tokens, std::string_view name) : tokens_(std::move(tokens)), name_(name) {}

  ExprPtr parse_expression(bool with_condition = true);
  // One expression, or several with commas between them as a tuple.
  struct TupleRules {
    bool simple = false;         // only names and literals
    bool with_condition = true;  // ... if ... else ...
    bool in_parentheses = false;
    bool with_spaces = false;     // name.attribute as a target
    std::string_view end_name{};  // a name that ends it
  };
  ExprPtr parse_tuple(const TupleRules& rules);
  // What can be on the left of =; `end_name` ends it.
  ExprPtr parse_target(bool with_spaces, std::string_view end_name = {});
  ExprPtr parse_filters(ExprPtr subject, bool starts_with_name);

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take();
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  const Token& expect(Token::Type type);
  void expect_op(std::string_view op);

  [[noreturn]] void fail_at(size_t line, std::string_view message) const;
  [[noreturn]] void fail_here(std::string_view message) const { fail_at(current().line, message); }
  // The token for error messages.
  [[nodiscard]] static std::string described(const Token& token);

  // Limits the nesting depth.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) parser_.fail_here("nested too deep");
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  static constexpr size_t kMaxNesting = 200;
  static constexpr size_t kMaxDepth = 300;

  ExprPtr make(Expr::Type type, size_t line, std::vector<ExprPtr> children) const;
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary(bool with_spaces);
  ExprPtr parse_name(bool with_spaces);
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr subject);
  ExprPtr parse_subscript(ExprPtr subject);
  ExprPtr parse_index(ExprPtr subject);
  ExprPtr parse_test(ExprPtr subject);
  void parse_arguments(Expr& call);
  [[nodiscard]] bool at_tuple_end(std::string_view end_name) const;
  void measure(Expr& expr) const;
  void check_target(const Expr& target) const;

  std::vector<Token> tokens_;
  std::string_view name_;
  size_t at_ = 0;
  size_t nesting_ = 0;
};

}  // namespace kedge::jinja
