#pragma once
// Runs a parsed template over variables. Knows how statements and expressions behave; what the operators, filters and methods
// do is in their own files.
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kedge/text/jinja/jinja_ast.h"
#include "kedge/text/jinja/jinja_globals.h"
#include "kedge/text/jinja/jinja_loop.h"
#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// A passage of the output from a {% generation %} block, in bytes. As in transformers, `begin` is the length of the
// output before the outermost print statement; inside a macro or a set block it may miss the passage.
struct Generated {
  size_t begin;
  std::string text;
  size_t line;
};

class Evaluator {
 public:
  // All must outlive the evaluator, and `variables` hold every name that templates know from outside.
  Evaluator(const Template& parsed, const Variables& variables) : template_(parsed), variables_(variables) {}

  // Once. Errors are Faults; `line` then says where.
  void run();

  [[nodiscard]] const std::string& output() const { return root_output_.text(); }
  [[nodiscard]] const std::vector<Generated>& generated() const { return generated_; }
  [[nodiscard]] size_t line() const { return line_; }

 private:
  struct Frame {
    std::vector<Value> slots;
    Frame* outer;
  };
  enum class Flow { on, leave, next };
  // Expressions, statements and calls inside one another while they run; a macro that calls itself without end stops here.
  class Depth {
   public:
    explicit Depth(Evaluator& evaluator) : evaluator_(evaluator) {
      if (++evaluator_.depth_ > kMaxDepth) fail("maximum recursion depth exceeded");
      Meter::step();
    }
    ~Depth() { --evaluator_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    static constexpr size_t kMaxDepth = 1500;
    Evaluator& evaluator_;
  };

  Flow run_body(const Body& body);
  Flow run(const Stmt& stmt);
  Flow run_condition(const Stmt& stmt);
  Flow run_with(const Stmt& stmt);
  Flow run_captured(const Stmt& stmt);
  Flow run_loop(const Stmt& stmt);
  Flow run_loop_over(const Stmt& stmt, const Value& iterable, size_t depth);
  bool run_rounds(const Stmt& stmt, const std::shared_ptr<LoopState>& loop);
  std::string run_recursive_loop(const Stmt& stmt, Frame* around, const Value& iterable, size_t depth);
  Value tested(const Stmt& stmt, const Value& iterable, Frame* around);

  Value make_macro(const Stmt& stmt);
  std::string call_macro(const Stmt& stmt, Frame* around, const Arguments& arguments);
  void bind_parameters(const Stmt& stmt, const Arguments& arguments);

  Value eval(const Expr& expr);
  Value eval_name(const Expr& expr);
  Values eval_all(const std::vector<ExprPtr>& exprs);
  Value eval_dict(const Expr& expr);
  Value eval_slice(const Expr& expr);
  Value eval_call(const Expr& expr, const Value* caller);
  Value eval_filter(const Expr& expr);
  Value eval_test(const Expr& expr);
  Value eval_calculate(const Expr& expr);
  Value eval_compare(const Expr& expr);
  Value eval_conditional(const Expr& expr);
  Value eval_concat(const Expr& expr);
  Arguments arguments_of(const Expr& expr);
  void assign(const Expr& target, const Value& value);
  void check_spaces(const Expr& target);

  Value& at(const Slot& slot);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  Frame& new_frame(const Function& function, Frame* outer);
  void give_back(const Function& function, Frame& frame);

  const Template& template_;
  const Variables& variables_;
  std::deque<Frame> frames_;  // all of them, to the end: closures may reach back
  std::unordered_map<const Function*, std::vector<Frame*>> free_frames_;
  Frame* frame_ = nullptr;
  Buffer root_output_;
  Buffer* output_ = &root_output_;
  const Value* block_text_ = nullptr;  // what the filter of a block works on
  std::vector<Generated> generated_;
  size_t line_ = 1;
  size_t depth_ = 0;
};

}  // namespace kedge::jinja
