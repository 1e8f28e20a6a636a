#include "kedge/config/config_node.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

TEST(ConfigNode, PathsAreMadeFoundAndErased) {
  ConfigNode root = ConfigNode::map();
  root.make("a.b.c") = ConfigNode::scalar("1");
  ASSERT_NE(root.find("a.b.c"), nullptr);
  EXPECT_EQ(root.find("a.b.x"), nullptr);
  EXPECT_EQ(root.shown(), "{a: {b: {c: 1}}}");
  EXPECT_TRUE(root.erase("a.b"));
  EXPECT_FALSE(root.erase("a.b"));
  EXPECT_EQ(root.shown(), "{a: {}}");
}

TEST(ConfigNode, AnOverlayMergesMapsAndReplacesTheRest) {
  ConfigNode base = to_node(Json::parse(R"({"a": {"x": 1, "y": 2}, "l": [1, 2]})"));
  overlay(base, to_node(Json::parse(R"({"a": {"y": 3, "z": 4}, "l": [5]})")));
  EXPECT_EQ(base.shown(), "{a: {x: 1, y: 3, z: 4}, l: [5]}");
}

TEST(ConfigNode, AMapThatWasWrittenNowhereKeepsThePlaceItIsLaidOn) {
  ConfigNode base = ConfigNode::map();
  base.where = {"x.yaml", 3};
  ConfigNode over = ConfigNode::map({{"y", ConfigNode::scalar("1")}});
  overlay(base, over);
  EXPECT_EQ(base.where.prefix(), "x.yaml:3: ");
  over.where = {"command line", 0};
  overlay(base, over);
  EXPECT_EQ(base.where.prefix(), "command line: ");
}

TEST(ConfigNode, PlainScalarsAreTypedAndQuotedOnesAreText) {
  EXPECT_EQ(to_json(ConfigNode::scalar("12")).dump(), "12");
  EXPECT_EQ(to_json(ConfigNode::scalar("1e-6")).dump(), "1e-06");
  EXPECT_EQ(to_json(ConfigNode::scalar("True")).dump(), "true");
  EXPECT_EQ(to_json(ConfigNode::scalar("12", true)).dump(), "\"12\"");
  EXPECT_EQ(to_json(ConfigNode::null()).dump(), "null");
}

TEST(ConfigNode, APlaceOpensAMessage) {
  EXPECT_EQ((Where{"x.yaml", 3}).prefix(), "x.yaml:3: ");
  EXPECT_EQ((Where{"command line", 0}).prefix(), "command line: ");
  EXPECT_EQ(Where{}.prefix(), "");
}

}  // namespace
}  // namespace kedge
