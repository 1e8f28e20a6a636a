#include "cli/dashboard/request_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"

namespace kedge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename Call>
std::string fault(const std::string& query, const Call& call) {
  const RequestQuery read("/api/x?" + query);
  return kedge::testing::error_of<RequestError>([&] { return call(read); });
}

TEST(RequestQuery, ValuesByNameAndKind) {
  const RequestQuery query("/api/x?text=a+b%26c&on=1&off=0&n=7&share=0.25&list=3,1&empty=");
  EXPECT_EQ(query.text("text"), "a b&c");
  EXPECT_EQ(query.text("none"), "");
  EXPECT_TRUE(query.flag("on"));
  EXPECT_FALSE(query.flag("off"));
  EXPECT_FALSE(query.flag("none"));
  EXPECT_EQ(query.integer("n", {0, 9, 5}), 7);
  EXPECT_EQ(query.integer("none", {0, 9, 5}), 5);
  EXPECT_EQ(query.count("n"), 7);
  EXPECT_EQ(query.count("empty"), std::nullopt);
  EXPECT_EQ(query.share("share"), 0.25);
  EXPECT_THAT(query.counts("list"), ElementsAre(3, 1));
  EXPECT_THAT(query.counts("none"), IsEmpty());
}

TEST(RequestQuery, WhatIsWrongIsNamed) {
  EXPECT_EQ(fault("n=x", [](const auto& query) { return query.integer("n", {0, 9, 5}); }), "n: expected a number from 0 to 9, found \"x\"");
  for (const char* text : {"n=10", "n=-1", "n=1.5", "n=", "n=99999999999999999999"})
    EXPECT_EQ(fault(text, [](const auto& query) { return query.integer("n", {0, 9, 5}); }).substr(0, 2), "n:") << text;
  EXPECT_EQ(fault("n=-3", [](const auto& query) { return query.count("n"); }), "n: expected a number of at least 0, found \"-3\"");
  for (const char* text : {"s=1", "s=-0.1", "s=nan", "s=inf", "s=", "s=0.5x"})
    EXPECT_EQ(fault(text, [](const auto& query) { return query.share("s"); }).substr(0, 2), "s:") << text;
  EXPECT_EQ(fault("f=yes", [](const auto& query) { return query.flag("f"); }), "f: expected 0 or 1, found \"yes\"");
  EXPECT_EQ(fault("l=1,,2", [](const auto& query) { return query.counts("l"); }), "l: expected a number of at least 0, found \"\"");
}

}  // namespace
}  // namespace kedge::cli
