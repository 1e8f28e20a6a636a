#include "kedge/core/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

TEST(Json, KeepsKindsAndTheOrderOfMembers) {
  const Json json = Json::parse(R"({"b": [1, 2.5, true, null, "x"], "a": {}})");
  EXPECT_EQ(json.dump(), R"({"b": [1, 2.5, true, null, "x"], "a": {}})");
  EXPECT_EQ(json.at("b", "test").as_array("test")[0].as_integer("test"), 1);
  EXPECT_DOUBLE_EQ(json.at("b", "test").as_array("test")[0].as_number("test"), 1.0);
  EXPECT_EQ(json.find("c"), nullptr);
}

TEST(Json, NumbersReadBackToTheSameBits) {
  for (const double value : {0.1, 1.0, 1e300, 5e-324, -0.0, 9007199254740993.0, 1.0 / 3.0}) {
    const double again = Json::parse(Json(value).dump()).as_number("test");
    EXPECT_EQ(std::signbit(again), std::signbit(value));
    EXPECT_EQ(again, value);
  }
  EXPECT_EQ(Json(std::numeric_limits<int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json::parse("9223372036854775808").kind(), Json::Kind::number);  // one above int64
  EXPECT_EQ(Json(2.0).dump(), "2.0");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
}

TEST(Json, TextIsEscapedAndBrokenBytesAreReplaced) {
  const std::string text("q\" b\\ n\n \x01 \x7F \xC3\xA9\0z", 16);
  EXPECT_EQ(Json::parse(Json(text).dump()).as_text("test"), text);
  EXPECT_EQ(Json("a\xFF").dump(), "\"a\xEF\xBF\xBD\"");
}

TEST(Json, IndentsForPeople) { EXPECT_EQ(Json::parse(R"({"a":[1],"b":{}})").dump(2), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}"); }

TEST(Json, IsWrittenWithoutSpacesWhereBytesCount) {
  EXPECT_EQ(Json::parse(R"({"a" : [1, "b, c"], "d": {"e": {}}})").dump_compact(), R"({"a":[1,"b, c"],"d":{"e":{}}})");
}

TEST(Json, ErrorsNameThePlace) {
  // What follows is the JSON library's own wording.
  EXPECT_EQ(error_of([] { Json::parse("{\"a\": 1,\n \"b\": tru}", "x.json"); }).find("x.json:2:10: not valid JSON: "), 0U);
  EXPECT_EQ(error_of([] { Json::parse(R"({"a": 1, "a": 2})", "x.json"); }),
            R"(x.json:1: not valid JSON: key "a" occurs twice in one object)");
  EXPECT_EQ(error_of([] { Json::parse(std::string(300, '['), "x.json"); }), "x.json:1: not valid JSON: nested deeper than 256 levels");
  EXPECT_NE(error_of([] { Json::parse(R"("\ud800")", "x.json"); }).find("surrogate"), std::string::npos);
  EXPECT_NE(error_of([] { Json::parse("\"\xFF\"", "x.json"); }).find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of([] { Json::parse("", "x.json"); }).find("x.json:1:1: not valid JSON"), std::string::npos);
  EXPECT_EQ(error_of([] { Json::parse("{\"a\": tru}", "x.jsonl", 12); }).find("x.jsonl:12:10: not valid JSON: "), 0U);
  EXPECT_EQ(error_of([] { Json::parse(std::string_view("1\0 2", 4), "x.json"); }), "x.json:1:2: not valid JSON: a NUL byte");
  EXPECT_NE(error_of([] { Json::parse("1 2", "x.json"); }).find("not valid JSON"), std::string::npos);
}

TEST(Json, AWrongKindSaysWhatWasFoundAndWanted) {
  EXPECT_EQ(error_of([] { return Json(3).as_text("x.json: name"); }), "x.json: name: expected a string, found 3");
  EXPECT_EQ(error_of([] { return Json::parse("{}").at("name", "x.json"); }), "x.json: no \"name\" field");
}

TEST(Json, SetReplacesAndAdds) {
  Json json;
  json.set("a", 1);
  json.set("b", "x");
  json.set("a", 2);
  EXPECT_EQ(json.dump(), R"({"a": 2, "b": "x"})");
}

TEST(Json, ANulByteIsNoEndOfTheText) {
  EXPECT_EQ(error_of([] { return Json::parse(std::string_view("{}\n\0garbage", 11), "f").dump(); }), "f:2:1: not valid JSON: a NUL byte");
  EXPECT_EQ(error_of([] { return Json::parse(std::string_view("1\0", 2), "f").dump(); }), "f:1:2: not valid JSON: a NUL byte");
}

}  // namespace
}  // namespace kedge
