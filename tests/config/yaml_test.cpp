#include "kedge/config/yaml.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

std::string json_of(const std::string& yaml) { return to_json(parse_yaml(yaml, "x.yaml")).dump(); }
std::string yaml_error(const std::string& yaml) {
  return error_of([&] { return parse_yaml(yaml, "x.yaml"); });
}

TEST(Yaml, ReadsTheUsualForms) {
  EXPECT_EQ(json_of("a: 1\nb:\n  - x\n  - 'y z'\nc: {d: [1, 2], e: null}\n"),
            R"({"a": 1, "b": ["x", "y z"], "c": {"d": [1, 2], "e": null}})");
  EXPECT_EQ(json_of(""), "{}");
  EXPECT_EQ(json_of("# only a comment\n"), "{}");
  EXPECT_EQ(json_of("a: \"12\"\nb: |\n  two\n  lines\n"), R"({"a": "12", "b": "two\nlines\n"})");
  EXPECT_EQ(json_of("\xEF\xBB\xBF"
                    "a: 1\r\nb: 2\r\n"),
            R"({"a": 1, "b": 2})");
}

TEST(Yaml, AnchorsAliasesAndMergeKeysWork) {
  EXPECT_EQ(json_of("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\nother: *b\n"),
            R"({"base": {"x": 1, "y": 2}, "mine": {"x": 1, "y": 3}, "other": {"x": 1, "y": 2}})");
}

TEST(Yaml, EveryValueKnowsItsLine) {
  const ConfigNode root = parse_yaml("a: 1\nb:\n  c:\n    - x\n    - y\n", "x.yaml");
  EXPECT_EQ(root.find("b.c")->items.at(1).where.prefix(), "x.yaml:5: ");
}

TEST(Yaml, BrokenTextIsNamedByLineAndColumn) {
  EXPECT_EQ(yaml_error("a: 1\n\tb: 2\n").find("x.yaml:2:"), 0U);
  EXPECT_EQ(yaml_error("a: 1\na: 2\n"), "x.yaml:2:1: not valid YAML: key \"a\" occurs twice in one map");
  EXPECT_EQ(yaml_error("[a]: 1\n"), "x.yaml:1:1: not valid YAML: a key must be a string");
  EXPECT_EQ(yaml_error("a: 1\n---\nb: 2\n"), "x.yaml: not valid YAML: more than one document");
  EXPECT_EQ(yaml_error("a: \xFF\n"), "x.yaml:1: not valid YAML: not UTF-8");
  EXPECT_EQ(yaml_error("a: *b\n").find("x.yaml:1:4: not valid YAML: "), 0U);
  EXPECT_EQ(yaml_error("<<: 3\n"), "x.yaml:1:1: not valid YAML: a merge key (<<) requires a map");
}

TEST(Yaml, TextThatWouldGrowOrNestWithoutEndIsRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_NE(yaml_error(bomb).find("not valid YAML: more than 100000 values"), std::string::npos);
  EXPECT_NE(yaml_error("a: " + std::string(100, '[') + std::string(100, ']')).find("nested deeper than 64 levels"), std::string::npos);
}

TEST(Yaml, WhatIsWrittenReadsBack) {
  const char* text =
      R"({"a": [1, "1", "x y", "", "null", null, "true", true], "b c": {"d": {}, "e": [], "f": [[1, 2], {"g": 1}]}, "h": "#é\n"})";
  const ConfigNode node = to_node(Json::parse(text));
  EXPECT_EQ(to_json(parse_yaml(to_yaml(node), "x.yaml")).dump(), text);
}

TEST(Yaml, CommentsStandAboveTheirKeys) {
  const ConfigNode node = to_node(Json::parse(R"({"a": {"b": 1}})"));
  EXPECT_EQ(to_yaml(node, [](const std::string& path) { return path == "a.b" ? "first\nsecond" : ""; }),
            "a:\n  # first\n  # second\n  b: 1\n");
}

}  // namespace
}  // namespace kedge
