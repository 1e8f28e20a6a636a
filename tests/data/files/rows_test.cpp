#include "kedge/data/files/rows.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

std::string numbered(char name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "{\"id\": \"" + std::string(1, name) + std::to_string(i) + "\"}\n";
  return text;
}

std::string ids(const Rows& rows) {
  std::string text;
  for (int64_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "" : " ") + rows.row(i).text("id");
  return text;
}

TEST(Rows, OfAFileAreItsRowsInOrder) {
  const TempFolder folder;
  const Rows rows = Rows::of_file(folder.file("a.jsonl", numbered('a', 3)));
  EXPECT_EQ(ids(rows), "a0 a1 a2");
  EXPECT_EQ(rows.where(2), (folder / "a.jsonl").string() + ":3");
  EXPECT_EQ(rows.name(), (folder / "a.jsonl").string());
}

TEST(Rows, MayBelongTogetherInGroups) {
  const TempFolder folder;
  const Rows rows = Rows::of_file(folder.file("a.jsonl", numbered('a', 4)), 2);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows.row(1, 0).text("id"), "a2");
  EXPECT_EQ(rows.row(1, 1).text("id"), "a3");
  EXPECT_EQ(rows.line(1), 3);
  const auto odd = folder.file("odd.jsonl", numbered('a', 3));
  EXPECT_EQ(error_of([&] { Rows::of_file(odd, 2); }),
            odd.string() + ": 3 rows; expected a multiple of 2, because every 2 make one example");
}

TEST(Rows, SplitsCutEveryFileAndBlendTheParts) {
  const TempFolder folder;
  DataPrefix prefix;
  prefix.cut_files = {{1, folder.file("a.jsonl", numbered('a', 4))}, {1, folder.file("b.jsonl", numbered('b', 4))}};
  prefix.shares = {0.5, 0.5, 0};
  const auto splits = open_splits(prefix);
  ASSERT_EQ(splits.size(), 2U);  // test gets no rows
  EXPECT_EQ(ids(splits.at("train")), "a0 b0 a1 b1");
  EXPECT_EQ(ids(splits.at("validation")), "a2 b2 a3 b3");
}

TEST(Rows, NamedSplitsOpenTheirOwnFiles) {
  const TempFolder folder;
  DataPrefix prefix;
  prefix.files["train"] = {{3, folder.file("a.jsonl", numbered('a', 2))}, {1, folder.file("b.jsonl", numbered('b', 2))}};
  prefix.files["validation"] = {{1, folder.file("c.jsonl", numbered('c', 1))}};
  const auto splits = open_splits(prefix);
  EXPECT_EQ(ids(splits.at("train")), "a0 a1 b0 a0");  // as many as both files have, three of four from the first
  EXPECT_EQ(ids(splits.at("validation")), "c0");
}

TEST(Rows, EveryExampleIsVisitedOnce) {
  std::mutex mutex;
  std::set<int64_t> visited;
  for_each_example(10000, [&](int64_t i) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(visited.insert(i).second);
  });
  EXPECT_EQ(visited.size(), 10000U);
  for_each_example(0, [&](int64_t) { FAIL(); });
}

TEST(Rows, OfManyErrorsTheFirstIsThrown) {
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(error_of([&] { for_each_example(10000, [&](int64_t i) { check(i % 1000 != 777, "row ", i); }); }), "row 777");
}

}  // namespace
}  // namespace kedge
