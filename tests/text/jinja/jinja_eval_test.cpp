#include "kedge/text/jinja/jinja_eval.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/jinja.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rendered;

std::string error_in(std::string_view text) {
  return error_of([&] { return rendered(text); });
}

TEST(JinjaEval, LoopsFilterAndFallThrough) {
  EXPECT_EQ(rendered("{% for i in [3, 1, 2] if i > 1 %}{{ i }}{{ loop.length }} {% endfor %}"), "32 22 ");
  EXPECT_EQ(rendered("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(rendered("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}"), "a=1");
  EXPECT_EQ(rendered("{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}"), "123");
}

TEST(JinjaEval, BreakAndContinue) {
  EXPECT_EQ(rendered("{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}"), "13");
  EXPECT_EQ(rendered("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"), "1");
  EXPECT_EQ(rendered("{% for i in [1] %}{% break %}{% else %}E{% endfor %}"), "E");  // no round came to its end
  EXPECT_EQ(rendered("{% for i in [1, 2] %}{% set x %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endset %}[{{ x }}]{% endfor %}"),
            "[2]");
}

TEST(JinjaEval, RecursiveLoopsCallThemselves) {
  EXPECT_EQ(rendered("{% for i in [[1, [2]], 3] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}@{{ loop.depth }}{% "
                     "endif %}{% endfor %}"),
            "(1@2(2@3))3@1");
}

TEST(JinjaEval, SetTakesTuplesNamespacesAndBlocks) {
  EXPECT_EQ(rendered("{% set a, b = 1, 2 %}{% set ns = namespace(x=0) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ a "
                     "}}{{ b }}{{ ns.x }}"),
            "123");
  EXPECT_EQ(rendered("{% set x | upper | trim %} a{{ 1 }} {% endset %}[{{ x }}]"), "[A1]");
  EXPECT_EQ(error_in("{% set x = {} %}{% set x.y = 1 %}"), "t:1: cannot assign attribute on non-namespace object");
  EXPECT_EQ(error_in("{% set a, b = [1] %}"), "t:1: not enough values to unpack (expected 2, got 1)");
}

TEST(JinjaEval, MacrosTakeDefaultsNamesAndTheRest) {
  constexpr std::string_view kMacro = "{% macro m(a, b=a) %}<{{ a }}{{ b }}>{% endmacro %}";
  EXPECT_EQ(rendered(std::string(kMacro) + "{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}"), "<11><12><43><>");
  EXPECT_EQ(rendered("{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, x=2) }}{{ m(*[3], **{'y': 4}) }}"),
            "(1,){'x': 2}(3,){'y': 4}");
  EXPECT_EQ(rendered("{% macro m(x) %}{{ x }}{% if x > 0 %}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(2) }}{{ m }}"), "210<Macro 'm'>");
  EXPECT_EQ(error_in("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"), "t:1: macro 'm' takes not more than 1 argument(s)");
  EXPECT_EQ(error_in("{% macro m(a) %}{% endmacro %}{{ m(b=2) }}"), "t:1: macro 'm' takes no keyword argument 'b'");
}

TEST(JinjaEval, CallBlocksHandTheirBodyOver) {
  EXPECT_EQ(rendered("{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}"), "[12]");
  EXPECT_EQ(error_in("{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}"), "t:1: No caller defined");
}

TEST(JinjaEval, TheUndefinedPrintsNothingAndRefusesTheRest) {
  EXPECT_EQ(rendered("[{{ x }}{{ x|default('d') }}{{ x is defined }}{{ [x] }}{% for i in x %}{% endfor %}{{ 'no' if not x }}]"),
            "[dFalse[Undefined]no]");
  EXPECT_EQ(error_in("{{ x.y }}"), "t:1: 'x' is undefined");
  EXPECT_EQ(error_in("{{ {}.y.z }}"), "t:1: 'dict object' has no attribute 'y'");
  EXPECT_EQ(error_in("{{ (1 if false).x }}"),
            "t:1: the inline if-expression on line 1 evaluated to false and no else section was defined.");
}

TEST(JinjaEval, ErrorsNameTheLineTheyHappenOn) {
  EXPECT_EQ(error_in("a\n{% if true %}\n{{ 1 +\n 'x' }}{% endif %}"), "t:3: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_EQ(error_in("{% macro m() %}\n{{ raise_exception('no') }}\n{% endmacro %}\n\n{{ m() }}"), "t:2: no");
}

TEST(JinjaEval, RecursionAndWorkAreBounded) {
  EXPECT_EQ(error_in("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "t:1: maximum recursion depth exceeded");
  EXPECT_EQ(error_in("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"), "t:1: maximum recursion depth exceeded");
  JinjaOptions options;
  options.max_steps = 100'000, options.max_bytes = 1'000'000;
  const auto error_within = [&](std::string_view text) {
    return error_of([&] { return JinjaTemplate::parse(text, "t").render(Json(Json::Object{}), options); });
  };
  EXPECT_EQ(error_within("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"),
            "t:1: the template runs for more than 100000 steps");
  EXPECT_EQ(error_within("{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
            "t:1: the template's values take more than 1000000 bytes");
}

TEST(JinjaEval, LeftoverLoopsAndMacrosStaySafe) {
  EXPECT_EQ(
      rendered("{% set ns = namespace() %}{% for i in [1, 2] if i %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}{{ ns.l.last }}"),
      "2True");
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% macro m(x) %}{% macro k() %}{{ x }}{% endmacro %}{% set ns.k = k %}{% endmacro %}{{ "
                     "m(5) }}{{ ns.k() }}"),
            "5");
}

}  // namespace
}  // namespace kedge
