#include "kedge/config/config_resolve.h"

#include <gtest/gtest.h>

#include "kedge/config/yaml.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

std::string resolved(const std::string& yaml, const PathAliases& aliases = {}) {
  ConfigNode root = parse_yaml(yaml, "x.yaml");
  resolve_references(root, aliases);
  return to_json(root).dump();
}
std::string error_in(const std::string& yaml) {
  return testing::error_of([&] { return resolved(yaml); });
}

TEST(ConfigResolve, AReferenceTakesTheTargetsKind) {
  EXPECT_EQ(resolved("a: 3\nb: ${a}\nc: ${d}\nd: [1, '2']\n"), R"({"a": 3, "b": 3, "c": [1, "2"], "d": [1, "2"]})");
  EXPECT_EQ(resolved("a: {b: {c: 1}}\nd: ${a.b}\n"), R"({"a": {"b": {"c": 1}}, "d": {"c": 1}})");
  EXPECT_EQ(resolved("a: 1\nb: \"x${a}y${a}\"\n"), R"({"a": 1, "b": "x1y1"})");
  EXPECT_EQ(resolved("l: [{x: 7}]\nb: ${l.0.x}\n"), R"({"l": [{"x": 7}], "b": 7})");
}

TEST(ConfigResolve, RelativeReferencesStartBesideTheValue) {
  EXPECT_EQ(resolved("a: {b: 1, c: '${.b}', d: {e: '${..b}'}}\n"), R"({"a": {"b": 1, "c": 1, "d": {"e": 1}}})");
}

TEST(ConfigResolve, ReferencesGoThroughReferences) {
  EXPECT_EQ(resolved("a: ${b.z}\nb: ${c}\nc: {z: 5}\n"), R"({"a": 5, "b": {"z": 5}, "c": {"z": 5}})");
  EXPECT_EQ(resolved("a: ${old.name}\nnew: {name: 4}\n", {{"old.name", "new.name"}}), R"({"a": 4, "new": {"name": 4}})");
}

TEST(ConfigResolve, ExpressionsKeepIntegersAndRoundDown) {
  EXPECT_EQ(resolved("a: 10\nb: ${multiply:${a},3}\n"), R"({"a": 10, "b": 30})");
  EXPECT_EQ(resolved("a: ${int_div:7,2}\nb: ${int_div:-7,2}\nc: ${int_div:7,-1}\n"), R"({"a": 3, "b": -4, "c": -7})");
  EXPECT_EQ(resolved("a: ${subtract:1, 3}\nb: ${sum:1,0.5}\n"), R"({"a": -2, "b": 1.5})");
  EXPECT_EQ(resolved("a: ${multiply:1e-6,1.001}\n"), R"({"a": 1.0009999999999998e-06})");  // as IEEE doubles multiply
  EXPECT_EQ(resolved("a: ${subtract:${int_div:9,2},${sum:1,1}}\n"), R"({"a": 2})");
}

TEST(ConfigResolve, AnEscapedReferenceIsText) {
  EXPECT_EQ(resolved("a: '\\${b}'\nc: ${a}\n"), R"({"a": "${b}", "c": "${b}"})");
  EXPECT_EQ(escape_references("x ${a} \\${b}"), "x \\${a} \\\\${b}");
}

TEST(ConfigResolve, ErrorsNameKeyAndPlace) {
  EXPECT_EQ(error_in("step: 1\nb: ${stp}\n"), "x.yaml:2: b: no key \"stp\" to refer to; nearest: step");
  EXPECT_EQ(error_in("a: {b: {c: {step: 1, d: 2}}}\nx: ${a.b.c.stp}\n"),
            "x.yaml:2: x: no key \"a.b.c.stp\" to refer to; nearest: a.b.c.step");
  EXPECT_EQ(error_in("a: ${a}\n"), "x.yaml:1: a: circular reference: a -> a");
  EXPECT_EQ(error_in("a: {b: '${a}'}\n"), "x.yaml:1: a.b: circular reference: a.b -> a.b");
  EXPECT_EQ(error_in("a: ${power:1,2}\n"), "x.yaml:1: a: unknown function \"power\"; known: multiply, int_div, subtract, sum");
  EXPECT_EQ(error_in("a: ${oc.env:HOME}\n"), "x.yaml:1: a: unknown function \"oc.env\"; known: multiply, int_div, subtract, sum");
  EXPECT_EQ(error_in("a: ${sum:1}\n"), "x.yaml:1: a: sum expects two arguments, found 1");
  EXPECT_EQ(error_in("a: ${sum:1,x}\n"), "x.yaml:1: a: expected a number in the expression, found \"x\"");
  EXPECT_EQ(error_in("a: ${int_div:1,0}\n"), "x.yaml:1: a: int_div by zero");
  EXPECT_EQ(error_in("a: ${multiply:9223372036854775807,2}\n"), "x.yaml:1: a: multiply overflows 64 bits");
  EXPECT_EQ(error_in("a: '${b'\n"), "x.yaml:1: a: no closing } in \"${b\"");
  EXPECT_EQ(error_in("a: {x: 1}\nb: \"t${a}\"\n"), "x.yaml:2: b: a list or section cannot be part of a text");
}

TEST(ConfigResolve, GrowthIsBounded) {
  std::string chain, text, sections;
  for (int i = 0; i < 100; ++i) chain += "a" + std::to_string(i) + ": ${a" + std::to_string(i + 1) + "}\n";
  EXPECT_NE(error_in(chain + "a100: 1\n").find("more than 64 references in a row"), std::string::npos);
  for (int i = 0; i < 30; ++i)
    text += "a" + std::to_string(i) + ": \"${a" + std::to_string(i + 1) + "}${a" + std::to_string(i + 1) + "}\"\n";
  EXPECT_NE(error_in(text + "a30: xy\n").find("longer than 1048576 characters"), std::string::npos);
  for (int i = 0; i < 30; ++i)
    sections += "a" + std::to_string(i) + ": {x: '${a" + std::to_string(i + 1) + "}', y: '${a" + std::to_string(i + 1) + "}'}\n";
  EXPECT_NE(error_in(sections + "a30: 1\n").find("references copy too many values"), std::string::npos);
}

}  // namespace
}  // namespace kedge
