#include "kedge/data/sets/regression_dataset.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::byte_encoder;
using testing::error_of;
using testing::shown;
using testing::TempFolder;

class RegressionTest : public ::testing::Test {
 protected:
  RegressionDataset data(const std::string& content) {
    return RegressionDataset(Rows::of_file(folder_.file("f.jsonl", content)), byte_encoder(), config_, 2);
  }
  std::string error(const std::string& content) {
    return error_of([&] { return data(content).size(); }).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
  DataConfig config_;
};

TEST_F(RegressionTest, GivesTextsAndLabels) {
  const RegressionDataset rows = data("{\"text\": \"ab\", \"label\": [4, -100]}\n");
  const RegressionExample row = rows.get(0);
  EXPECT_EQ(shown(row.ids), "ab");
  EXPECT_EQ(row.labels, (std::vector<double>{4, -100}));
  EXPECT_FALSE(row.masked);
}

TEST_F(RegressionTest, AStandInTeachesNothing) {
  config_.seq_length = 3;
  const RegressionDataset rows = data("{\"text\": \"aaaa\", \"label\": [1, 1]}\n{\"text\": \"b\", \"label\": [2, 2]}\n");
  const RegressionExample row = rows.get(0);
  EXPECT_EQ(shown(row.ids), "b");
  EXPECT_TRUE(row.masked);
  EXPECT_FALSE(rows.get(1).masked);
  EXPECT_EQ(rows.num_replaced(), 1);
}

TEST_F(RegressionTest, PairsStayNeighboursInABlend) {
  const auto row = [](const std::string& text) { return "{\"text\": \"" + text + "\", \"label\": [1, 2]}\n"; };
  const Path one = folder_.file("one.jsonl", row("A0") + row("B0") + row("A1") + row("B1"));
  const Path two = folder_.file("two.jsonl", row("a0") + row("b0") + row("a1") + row("b1"));
  const RegressionDataset rows(Rows({{0.5, one}, {0.5, two}}, 2), byte_encoder(), config_, 2);
  ASSERT_EQ(rows.size(), 8);
  std::string all;
  for (int64_t i = 0; i < rows.size(); ++i) all += shown(rows.get(i).ids) + " ";
  EXPECT_EQ(all, "A0 B0 a0 b0 A1 B1 a1 b1 ");
  EXPECT_EQ(error_of([&] {
              return RegressionDataset(Rows({{1, folder_.file("odd.jsonl", row("A") + "{\"text\": 1}\n")}}, 2), byte_encoder(), config_, 2)
                  .size();
            }),
            (folder_ / "odd.jsonl").string() + ":2: \"text\": expected a string or a list of messages, found an integer");
}

TEST_F(RegressionTest, OrTooLongOnesAreLeftOut) {
  config_.seq_length = 3;
  config_.drop_over_long = true;
  const RegressionDataset rows = data("{\"text\": \"aaaa\", \"label\": [1, 1]}\n{\"text\": \"b\", \"label\": [2, 2]}\n");
  EXPECT_EQ(rows.size(), 1);
  EXPECT_FALSE(rows.get(0).masked);
}

TEST_F(RegressionTest, BadLabelsAreRefusedAtLoad) {
  EXPECT_EQ(error("{\"text\": \"a\"}\n"), ":1: no \"label\" field; the row has \"text\"");
  EXPECT_EQ(error("{\"text\": \"a\", \"label\": 3}\n"), ":1: \"label\": expected a list of numbers, found an integer");
  EXPECT_EQ(error("{\"text\": \"a\", \"label\": [1, null]}\n"), ":1: \"label\"[1]: expected a number, found null");
  EXPECT_EQ(error("{\"text\": \"a\", \"label\": [1]}\n"), ":1: \"label\": 1 numbers; expected 2 (regression.num_attributes)");
  EXPECT_EQ(error("{\"text\": \"a\", \"label\": [1, 2]}\n{\"text\": \"\", \"label\": [1, 2]}\n"), ":2: an empty prompt");
}

TEST_F(RegressionTest, IdsOutsideTheModelsVocabularyAreRefusedAtLoad) {
  const Path file = folder_.file("f.jsonl", "{\"text\": \"a\", \"label\": [1]}\n{\"text\": \"z\", \"label\": [1]}\n");
  EXPECT_EQ(error_of([&] { return RegressionDataset(Rows::of_file(file), testing::encoder_without_z(), config_, 1).size(); }),
            file.string() + ":2: the tokenizer's id 122 is outside the model's vocabulary of 122");
}

}  // namespace
}  // namespace kedge
