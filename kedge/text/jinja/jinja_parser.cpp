#include "kedge/text/jinja/jinja_parser.h"

#include <algorithm>
#include <array>

#include "kedge/core/error.h"
#include "kedge/text/jinja/jinja_expression_parser.h"
#include "kedge/text/jinja/jinja_scope.h"

namespace kedge::jinja {
namespace {

using Type = Token::Type;
using Names = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Template parse() {
    Template result;
    result.body = parse_body({});
    result.has_generation = has_generation_;
    return result;
  }

 private:
  // Statements up to a tag of one of these names, which is left as the current token. Without names: to the end.
  Body parse_body(Names ends) {
    const Nesting nesting(*this);
    Body body;
    while (current().type != Type::end) {
      const Token& token = take();
      if (token.type == Type::data) {
        body.push_back(make(Stmt::Type::data, token.line));
        body.back()->text = token.text;
      } else if (token.type == Type::variable_begin) {
        body.push_back(make(Stmt::Type::print, token.line));
        body.back()->values.push_back(parse_tuple({}));
        expect(Type::variable_end);
      } else {
        const bool ended = std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return current().is_name(end); });
        if (ended) return body;
        body.push_back(parse_statement());
        expect(Type::block_end);
      }
    }
    if (ends.size() > 0) fail_here(str("the template ends where {% ", *(ends.end() - 1), " %} is missing"));
    return body;
  }

  // The body of a statement: what follows its %}, up to the tag that ends it.
  Body parse_block(Names ends) {
    skip_op(":");
    expect(Type::block_end);
    return parse_body(ends);
  }

  Body parse_whole_block(std::string_view end) {
    Body body = parse_block({end});
    take();
    return body;
  }

  static std::unique_ptr<Stmt> make(Stmt::Type type, size_t line) { return std::make_unique<Stmt>(Stmt{type, line}); }

  std::unique_ptr<Stmt> parse_statement() {
    using Rule = std::unique_ptr<Stmt> (Parser::*)(std::unique_ptr<Stmt>);
    struct Statement {
      std::string_view name;
      Stmt::Type type;
      Rule rule;
    };
    static constexpr std::array<Statement, 11> kStatements = {{
        {"for", Stmt::Type::loop, &Parser::parse_for},
        {"if", Stmt::Type::condition, &Parser::parse_if},
        {"set", Stmt::Type::set, &Parser::parse_set},
        {"macro", Stmt::Type::macro, &Parser::parse_macro},
        {"call", Stmt::Type::call_block, &Parser::parse_call_block},
        {"filter", Stmt::Type::filter_block, &Parser::parse_filter_block},
        {"generation", Stmt::Type::generation, &Parser::parse_generation},
        {"with", Stmt::Type::with, &Parser::parse_with},
        {"print", Stmt::Type::print, &Parser::parse_print},
        {"break", Stmt::Type::leave, &Parser::parse_leave},
        {"continue", Stmt::Type::next, &Parser::parse_leave},
    }};
    static constexpr std::array<std::string_view, 6> kRefused = {"block", "extends", "include", "import", "from", "autoescape"};
    if (current().type != Type::name) fail_here(str("expected the name of a tag, found ", described(current())));
    const Token& token = take();
    if (std::find(kRefused.begin(), kRefused.end(), token.text) != kRefused.end())
      fail_at(token.line, str("the tag {% ", token.text, " %} is not supported"));
    for (const Statement& statement : kStatements)
      if (token.text == statement.name) return (this->*statement.rule)(make(statement.type, token.line));
    fail_at(token.line, str("unknown tag {% ", token.text, " %}"));
  }

  // Inside a loop the name `loop` is taken.
  void check_no_loop(const Expr& target) const {
    if (target.type == Expr::Type::name && target.name == "loop")
      fail_at(target.line, "can't assign to the special variable loop inside a for");
    for (const ExprPtr& item : target.children) check_no_loop(*item);
  }

  std::unique_ptr<Stmt> parse_for(std::unique_ptr<Stmt> stmt) {
    stmt->target = parse_target(false, "in");
    check_no_loop(*stmt->target);
    if (!skip_name("in")) fail_here(str("expected 'in', found ", described(current())));
    stmt->value = parse_tuple({.with_condition = false, .end_name = "recursive"});
    if (skip_name("if")) stmt->test = parse_expression();
    stmt->recursive = skip_name("recursive");
    ++for_depth_;
    const size_t around = std::exchange(breakable_, breakable_ + 1);
    stmt->body = parse_block({"else", "endfor"});
    breakable_ = stmt->recursive ? 0 : around;
    if (take().text == "else") stmt->otherwise = parse_whole_block("endfor");
    breakable_ = around;
    --for_depth_;
    return stmt;
  }

  std::unique_ptr<Stmt> parse_if(std::unique_ptr<Stmt> stmt) {
    Stmt* branch = stmt.get();
    while (true) {
      branch->value = parse_tuple({.with_condition = false});
      branch->body = parse_block({"elif", "else", "endif"});
      const std::string end = take().text;
      if (end == "else") stmt->otherwise = parse_whole_block("endif");
      if (end != "elif") return stmt;
      stmt->elifs.push_back(make(Stmt::Type::condition, current().line));
      branch = stmt->elifs.back().get();
    }
  }

  std::unique_ptr<Stmt> parse_set(std::unique_ptr<Stmt> stmt) {
    stmt->target = parse_target(true);
    if (for_depth_ > 0) check_no_loop(*stmt->target);
    if (skip_op("=")) {
      stmt->value = parse_tuple({});
      return stmt;
    }
    stmt->type = Stmt::Type::set_block;
    stmt->filter = parse_filters(nullptr, false);
    stmt->body = parse_whole_block("endset");
    return stmt;
  }

  void parse_parameters(Stmt& stmt) {
    expect_op("(");
    while (!current().is_op(")")) {
      if (!stmt.parameters.empty()) expect_op(",");
      const Token& token = expect(Type::name);
      for (const ExprPtr& other : stmt.parameters)
        if (other->name == token.text) fail_at(token.line, str("two parameters are named ", token.text));
      auto parameter = std::make_unique<Expr>(Expr{Expr::Type::name, token.line});
      parameter->name = token.text;
      if (skip_op("=")) {
        stmt.values.push_back(parse_expression());
      } else if (!stmt.values.empty()) {
        fail_here("a parameter without a default follows one with a default");
      }
      stmt.parameters.push_back(std::move(parameter));
    }
    expect_op(")");
  }

  // A body that is a separate function: a break in it reaches no loop around it.
  Body parse_function_body(std::string_view end) {
    const size_t around = std::exchange(breakable_, 0);
    Body body = parse_whole_block(end);
    breakable_ = around;
    return body;
  }

  std::unique_ptr<Stmt> parse_macro(std::unique_ptr<Stmt> stmt) {
    stmt->text = expect(Type::name).text;
    parse_parameters(*stmt);
    stmt->body = parse_function_body("endmacro");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_call_block(std::unique_ptr<Stmt> stmt) {
    if (current().is_op("(")) parse_parameters(*stmt);
    stmt->value = parse_expression();
    if (stmt->value->type != Expr::Type::call) fail_at(stmt->line, "expected a call after {% call %}");
    stmt->body = parse_function_body("endcall");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_generation(std::unique_ptr<Stmt> stmt) {
    has_generation_ = true;
    stmt->body = parse_function_body("endgeneration");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_filter_block(std::unique_ptr<Stmt> stmt) {
    stmt->filter = parse_filters(nullptr, true);
    stmt->body = parse_whole_block("endfilter");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_with(std::unique_ptr<Stmt> stmt) {
    while (current().type != Type::block_end) {
      if (!stmt->parameters.empty()) expect_op(",");
      stmt->parameters.push_back(parse_target(false));
      expect_op("=");
      stmt->values.push_back(parse_expression());
    }
    stmt->body = parse_whole_block("endwith");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_print(std::unique_ptr<Stmt> stmt) {
    while (current().type != Type::block_end) {
      if (!stmt->values.empty()) expect_op(",");
      stmt->values.push_back(parse_expression());
    }
    return stmt;
  }

  std::unique_ptr<Stmt> parse_leave(std::unique_ptr<Stmt> stmt) {
    if (breakable_ == 0) fail_at(stmt->line, "break and continue are only allowed inside a for");
    return stmt;
  }

  size_t for_depth_ = 0;  // enclosing loops, at any distance
  size_t breakable_ = 0;  // loops around within the same function
  bool has_generation_ = false;
};

}  // namespace

Template parse(std::string_view source, std::string_view name) {
  Parser parser(tokenize(source, name), name);
  Template result = parser.parse();
  resolve_names(result, name);
  return result;
}

}  // namespace kedge::jinja
