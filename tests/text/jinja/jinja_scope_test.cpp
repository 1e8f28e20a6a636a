#include "kedge/text/jinja/jinja_scope.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/jinja.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rendered;

TEST(JinjaScope, WhatALoopSetsStaysInItsRound) {
  EXPECT_EQ(rendered("{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}"), "01020");
  EXPECT_EQ(rendered("{% for i in [1, 2] %}{% if loop.first %}{% set seen = i %}{% endif %}[{{ seen }}]{% endfor %}"), "[1][]");
  EXPECT_EQ(rendered("{% for x in [1] %}{% for x in [2] %}{{ x }}{% endfor %}{{ x }}{% endfor %}{{ x }}"), "21");
}

TEST(JinjaScope, AnIfSetsOutside) {
  EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% if false %}{% set x = 1 %}{% endif %}{{ x }}", R"({"x": "given"})"), "given");
  EXPECT_EQ(rendered("{% if false %}{% set q = 1 %}{% elif true %}{% set q = 2 %}{% else %}{% set q = 3 %}{% endif %}{{ q }}"), "2");
}

TEST(JinjaScope, ANameSetAnywhereInAScopeBelongsToIt) {
  // The loop reads the variable that is set behind it, which is still unset; not the one of the same name from outside.
  EXPECT_EQ(rendered("{% for i in [1] %}[{{ x }}]{% endfor %}{% set x = 5 %}", R"({"x": "given"})"), "[]");
  EXPECT_EQ(rendered("{{ x }}{% set x = 5 %}{{ x }}", R"({"x": "given"})"), "given5");
  EXPECT_EQ(rendered("{% set x = x ~ '!' %}{{ x }}", R"({"x": "given"})"), "given!");
}

TEST(JinjaScope, MacrosSeeWhatIsAroundThemWhenCalled) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}"), "2");
  EXPECT_EQ(rendered("{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}[{{ x }}]"), "5[]");
  EXPECT_EQ(rendered("{% macro outer() %}{% set v = 2 %}{% macro inner() %}{{ v }}{% endmacro %}{{ inner() }}{% endmacro %}{% set v = 1 "
                     "%}{{ outer() }}{{ v }}"),
            "21");
  EXPECT_EQ(rendered("{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}"), "12");
}

TEST(JinjaScope, BlocksKeepTheirVariables) {
  EXPECT_EQ(rendered("{% set x = 5 %}{% set y %}{% set x = 6 %}{{ x }}{% endset %}{{ y }}{{ x }}"), "65");
  EXPECT_EQ(rendered("{% set x = 5 %}{% filter upper %}{% set x = 6 %}a{{ x }}{% endfilter %}{{ x }}"), "A65");
  EXPECT_EQ(rendered("{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}[{{ q }}]"), "1[]");
  EXPECT_EQ(rendered("{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}"), "211");
}

TEST(JinjaScope, AnUnknownFilterIsFoundBeforeRendering) {
  EXPECT_EQ(error_of([] { JinjaTemplate::parse("\n{{ x|nope }}", "t"); }), "t:2: No filter named 'nope'.");
  EXPECT_EQ(error_of([] { JinjaTemplate::parse("{% for i in x %}{{ i is nope }}{% endfor %}", "t"); }), "t:1: No test named 'nope'.");
}

TEST(JinjaScope, DirectlyInsideAnIfItIsFoundWhenReached) {
  EXPECT_EQ(rendered("{% if false %}{{ x|nope }}{% endif %}ok"), "ok");
  EXPECT_EQ(rendered("{{ x|nope if false else 'ok' }}"), "ok");
  EXPECT_EQ(error_of([] { return rendered("{% if true %}{{ 1|nope }}{% endif %}"); }), "t:1: No filter named 'nope'.");
}

TEST(JinjaScope, ManyBranchesTakeLittleTime) {
  std::string source;
  for (int i = 0; i < 20'000; ++i) source += str("{% if a", i, " %}{% set b", i, " = 1 %}{% endif %}");
  EXPECT_EQ(rendered(source), "");
}

}  // namespace
}  // namespace kedge
