#include "kedge/text/jinja/jinja.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/jinja.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rendered;

TEST(Jinja, RendersVariablesFromJson) {
  EXPECT_EQ(rendered("{{ a.b[0] }} {{ c }} {{ d }}\n", R"({"a": {"b": ["é"]}, "c": 1.0, "d": null})"), "é 1.0 None");
}

TEST(Jinja, ATemplateIsRenderedManyTimesAndByManyThreads) {
  const auto parsed = JinjaTemplate::parse("{% macro m(x) %}{{ x * 2 }}{% endmacro %}{% for i in range(n) %}{{ m(i) }},{% endfor %}", "t");
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = parsed.render(Json(Json::Object{{"n", static_cast<int64_t>(i)}})); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (std::vector<std::string>{"", "0,", "0,2,", "0,2,4,"}));
}

TEST(Jinja, GenerationBlocksAreFoundInTheText) {
  const auto parsed = JinjaTemplate::parse("é{% for m in [1, 2] %}<{% generation %}a{{ m }}{% endgeneration %}>{% endfor %}", "t");
  EXPECT_TRUE(parsed.has_generation());
  const auto result = parsed.render_generated(Json(Json::Object{}));
  EXPECT_EQ(result.text, "é<a1><a2>");
  EXPECT_EQ(result.generated, (std::vector<ByteSpan>{{3, 5}, {7, 9}}));
}

TEST(Jinja, AGenerationBlockThatCannotBeFoundIsRefused) {
  const auto parsed = JinjaTemplate::parse("{% macro m() %}\n<{% generation %}a{% endgeneration %}>{% endmacro %}{{ m() }}", "t");
  EXPECT_EQ(parsed.render(Json(Json::Object{})), "<a>");
  EXPECT_EQ(
      error_of([&] { return parsed.render_generated(Json(Json::Object{})); }),
      "t:2: the text of this {% generation %} block does not appear unchanged in the output; it must not be inside a macro, a set or a "
      "filter");
}

TEST(Jinja, LimitsAreTheCallers) {
  const auto parsed = JinjaTemplate::parse("{% for i in range(1000) %}x{% endfor %}", "t");
  JinjaOptions options;
  options.max_steps = 100;
  EXPECT_EQ(error_of([&] { return parsed.render(Json(Json::Object{}), options); }), "t:1: the template runs for more than 100 steps");
  options = {};
  options.max_bytes = 500;
  EXPECT_EQ(error_of([&] {
              return parsed.render(Json(Json::Object{{"s", std::string(600, 'x')}}), options);
            }),
            "t:1: the template's values take more than 500 bytes");
}

TEST(Jinja, VariablesAreAnObject) {
  EXPECT_EQ(error_of([] { return JinjaTemplate::parse("x", "t").render(Json(1)); }), "t: variables: expected an object, found 1");
}

}  // namespace
}  // namespace kedge
