#include "kedge/text/jinja/jinja_value.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

Value dict_of(std::vector<std::pair<Value, Value>> pairs) { return std::make_shared<const Dict>(std::move(pairs)); }

TEST(JinjaValue, JsonBecomesPythonValues) {
  const Value value = Value::from_json(Json::parse(R"({"a": [1, 2.0, true, null, "é"]})"));
  const Values& items = value.dict()->find_text("a")->items();
  EXPECT_EQ(items[0].kind(), Kind::integer);
  EXPECT_EQ(items[1].kind(), Kind::real);
  EXPECT_EQ(items[2].kind(), Kind::boolean);
  EXPECT_TRUE(items[3].is_none());
  EXPECT_EQ(items[4].text().length, 1U);
  EXPECT_EQ(items[4].bytes().size(), 2U);
  EXPECT_EQ(error_of<Fault>([] { return Value::from_json(Json("\xFF")); }), "a template variable holds text that is not UTF-8");
}

TEST(JinjaValue, TruthIsPythons) {
  for (const Value& value : {Value(Value::None{}), Value(0), Value(0.0), Value(false), Value(""), Value::list({}), Value::undefined("x")})
    EXPECT_FALSE(truth(value));
  const Value empty_generator = Value::iterator("generator", 0, [](Value&) { return false; });
  for (const Value& value : {Value(-1), Value(0.5), Value("0"), Value::tuple({Value(0)}), empty_generator}) EXPECT_TRUE(truth(value));
}

TEST(JinjaValue, NumbersAreEqualAcrossTypes) {
  EXPECT_TRUE(equal(1, 1.0) && equal(true, 1) && equal(Value::list({1}), Value::list({1.0})));
  EXPECT_FALSE(equal(1, "1") || equal(Value::list({1}), Value::tuple({1})));
  EXPECT_FALSE(equal(int64_t{9007199254740993}, 9007199254740992.0));  // 2^53 + 1 has no double of its own
  EXPECT_FALSE(equal(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(equal(Value::undefined("a"), Value::undefined("b")));
}

TEST(JinjaValue, ADictHasOneEntryForEqualKeys) {
  const Value dict = dict_of({{1, "a"}, {"x", "b"}, {true, "c"}, {1.0, "d"}});
  ASSERT_EQ(dict.dict()->items.size(), 2U);
  EXPECT_EQ(dict.dict()->items[0].first.kind(), Kind::integer);  // the first key stays
  EXPECT_EQ(dict.dict()->find(Value(1))->bytes(), "d");          // the last value counts
  EXPECT_EQ(error_of<Fault>([&] { return dict.dict()->find(Value::list({})); }), "unhashable type: 'list'");
}

TEST(JinjaValue, ALargeDictFindsEveryKind) {
  std::vector<std::pair<Value, Value>> pairs;
  for (int i = 0; i < 100; ++i) pairs.emplace_back(i, i), pairs.emplace_back(std::to_string(i), -i);
  pairs.emplace_back(Value::tuple({1, "a"}), "tuple");
  pairs.emplace_back(0.5, "half");
  const Value dict = dict_of(pairs);
  EXPECT_EQ(dict.dict()->find(Value(42.0))->integer(), 42);
  EXPECT_EQ(dict.dict()->find_text("42")->integer(), -42);
  EXPECT_EQ(dict.dict()->find(Value::tuple({1, "a"}))->bytes(), "tuple");
  EXPECT_EQ(dict.dict()->find(Value(0.5))->bytes(), "half");
  EXPECT_EQ(dict.dict()->find(Value::tuple({1, "b"})), nullptr);
}

TEST(JinjaValue, DictsAreEqualInAnyOrder) {
  EXPECT_TRUE(equal(dict_of({{"a", 1}, {"b", 2}}), dict_of({{"b", 2}, {"a", 1}})));
  EXPECT_FALSE(equal(dict_of({{"a", 1}}), dict_of({{"a", 2}})));
}

TEST(JinjaValue, ARangeCountsItsItems) {
  EXPECT_EQ((Range{0, 10, 3}.length()), 4);
  EXPECT_EQ((Range{10, 0, -3}.length()), 4);
  EXPECT_EQ((Range{0, 0, 1}.length()), 0);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((Range{kLeast, kMost, kMost}.length()), 3);
  EXPECT_EQ((Range{kMost, kLeast, kLeast}.length()), 2);
}

TEST(JinjaValue, NamesOfTypesArePythons) {
  EXPECT_EQ(type_name(Value::None{}), "NoneType");
  EXPECT_EQ(type_name(Value("x", true)), "Markup");
  EXPECT_EQ(type_name(Value::undefined("")), "Undefined");
}

TEST(JinjaValue, ValuesInsideOneAnotherAreBounded) {
  Value value(1);
  EXPECT_EQ(error_of<Fault>([&] {
              for (int i = 0; i < 1000; ++i) value = Value::list({value});
              return value;
            }),
            "values are nested more than 300 levels deep");
  EXPECT_EQ(value.depth(), 300U);
}

TEST(JinjaValue, AMeterEndsWhatTakesTooMuch) {
  const Meter meter({.steps = 1000, .live_bytes = 4096});
  { const Value freed(std::string(2000, 'x')); }
  const Value kept(std::string(2000, 'x'));
  EXPECT_EQ(error_of<Fault>([] { return Value(std::string(3000, 'x')); }), "the template's values take more than 4096 bytes");
  EXPECT_EQ(error_of<Fault>([] {
              Meter::step(10'000);
              return 0;
            }),
            "the template runs for more than 1000 steps");
}

TEST(JinjaValue, ANamespaceKeepsTheOrderOfItsNames) {
  Namespace space;
  space.set("b", 1);
  space.set("a", 2);
  space.set("b", 3);
  EXPECT_EQ(space.attributes.size(), 2U);
  EXPECT_EQ(space.find("b")->integer(), 3);
  EXPECT_EQ(space.find("c"), nullptr);
}

}  // namespace
}  // namespace kedge::jinja
