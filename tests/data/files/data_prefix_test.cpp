#include "kedge/data/files/data_prefix.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using Files = std::vector<WeightedFile>;
using Borders = std::array<int64_t, 4>;

DataPrefix parse(const char* json, const std::optional<std::string>& splits = std::nullopt) {
  return parse_data_prefix(Json::parse(json), splits, "data_prefix");
}
Borders borders(const char* splits, int64_t size) { return split_borders(parse_splits(splits, "k"), size); }

TEST(DataPrefix, NamesAFileForEachSplit) {
  const DataPrefix prefix = parse(R"({"train": ["a"], "validation": "b", "validation_hard": ["c"], "test": [0.3, "d", "0.7", "e"]})");
  EXPECT_EQ(prefix.files.at("train"), (Files{{1, "a"}}));
  EXPECT_EQ(prefix.files.at("validation"), (Files{{1, "b"}}));
  EXPECT_EQ(prefix.files.at("validation_hard"), (Files{{1, "c"}}));
  EXPECT_EQ(prefix.files.at("test"), (Files{{0.3, "d"}, {0.7, "e"}}));
  EXPECT_TRUE(prefix.cut_files.empty());
}

TEST(DataPrefix, OrCutsAListOfFiles) {
  const DataPrefix prefix = parse(R"([2, "a", 1, "b"])", "98,1,1");
  EXPECT_EQ(prefix.cut_files, (Files{{2, "a"}, {1, "b"}}));
  EXPECT_DOUBLE_EQ(prefix.shares[0], 0.98);
}

TEST(DataPrefix, WhatIsWrongIsNamed) {
  EXPECT_EQ(error_of([] { parse(R"({"train": ["a"], "test": ["a"]})"); }),
            "data_prefix: no \"validation\"; expected train, validation and test");
  EXPECT_EQ(error_of([] { parse(R"({"train": null, "validation": ["a"], "test": ["a"]})"); }), "data_prefix.train: null; expected [FILE]");
  EXPECT_EQ(error_of([] { parse(R"({"trian": ["a"]})"); }),
            "data_prefix: no split \"trian\"; expected train, validation, test, or a name that begins with validation; nearest: train");
  EXPECT_EQ(error_of([] { parse("null"); }),
            "data_prefix: not set; expected {train: [FILE], validation: [FILE], test: [FILE]}, or a list with splits_string");
  EXPECT_EQ(error_of([] { parse(R"(["a"])"); }), "data_prefix: a list of files needs splits_string, such as \"98,1,1\"");
  EXPECT_EQ(error_of([] { parse(R"(["a", "b"])", "1,1,1"); }),
            "data_prefix: several files alternate weights and paths, [0.3, a.jsonl, 0.7, b.jsonl]; found \"a\" where a weight is expected");
  EXPECT_EQ(error_of([] { parse(R"([1, "a", 2])", "1,1,1"); }), "data_prefix: no path after the weight 2");
  EXPECT_EQ(error_of([] { parse(R"([-1, "a"])", "1,1,1"); }), "data_prefix: a weight of -1; expected a number above 0");
  EXPECT_EQ(error_of([] { parse(R"([])", "1,1,1"); }), "data_prefix: an empty list; expected a path");
  EXPECT_EQ(error_of([] { parse(R"(3)", "1,1,1"); }), "data_prefix: expected a path or a list of weights and paths, found an integer");
}

TEST(DataPrefix, SplitsFollowTheReferencesArithmetic) {
  EXPECT_EQ(borders("98,1,1", 1000), (Borders{0, 980, 990, 1000}));
  EXPECT_EQ(borders("90,5,5", 103), (Borders{0, 93, 98, 103}));
  EXPECT_EQ(borders("80/10/10", 7), (Borders{0, 5, 6, 7}));
  EXPECT_EQ(borders("1,1,1", 10), (Borders{0, 4, 7, 10}));
}

// 0.5 and 1.5 and 2.5 go to 0, 2 and 2: halves go to the even neighbour.
TEST(DataPrefix, HalvesAreRoundedToEven) {
  EXPECT_EQ(borders("1,1,0", 1), (Borders{0, 1, 1, 1}));  // 0, 0, 0 is one short: all borders move up by one
  EXPECT_EQ(borders("1,1,0", 3), (Borders{0, 1, 3, 3}));  // 2, 4, 4 is one too many
  EXPECT_EQ(borders("1,1,0", 5), (Borders{0, 3, 5, 5}));  // 2, 4, 4 is one short
}

TEST(DataPrefix, BordersStayInsideTheFile) {
  EXPECT_EQ(borders("0,1,1", 3), (Borders{0, 0, 1, 3}));  // 0, 2, 4 minus one would begin at -1
  EXPECT_EQ(borders("1,0,0", 5), (Borders{0, 5, 5, 5}));
}

TEST(DataPrefix, BadSplitsAreRefused) {
  const std::string wanted = "; expected three numbers of at least 0 separated by , or /, such as \"98,1,1\"";
  EXPECT_EQ(error_of([] { return parse_splits("a,b,c", "k"); }), "k: splits_string \"a,b,c\"" + wanted);
  EXPECT_EQ(error_of([] { return parse_splits("1,1,1,1", "k"); }), "k: splits_string \"1,1,1,1\"" + wanted);
  EXPECT_EQ(error_of([] { return parse_splits("1,-1,1", "k"); }), "k: splits_string \"1,-1,1\"" + wanted);
  EXPECT_EQ(error_of([] { return parse_splits("nan,1,1", "k"); }), "k: splits_string \"nan,1,1\"" + wanted);
  EXPECT_EQ(error_of([] { return parse_splits("1,1", "k"); }), "k: splits_string \"1,1\" has 2 numbers; expected three");
  EXPECT_EQ(error_of([] { return parse_splits("0,0,0", "k"); }), "k: splits_string \"0,0,0\" leaves no rows to any split");
}

}  // namespace
}  // namespace kedge
