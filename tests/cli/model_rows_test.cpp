#include "cli/model_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/spec/shapes.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;

// The lengths of the rows in each batch, as "1+2".
std::vector<std::string> batches_of(int64_t max_tokens, const std::vector<size_t>& lengths) {
  std::vector<std::string> found;
  RowBatches batches(max_tokens, [&](const RowBatch& batch) {
    ASSERT_EQ(batch.rows.size(), batch.lines.size());
    std::string text;
    for (const TokenIds& row : batch.rows) text += (text.empty() ? "" : "+") + std::to_string(row.size());
    found.push_back(text);
  });
  for (const size_t length : lengths) batches.add(TokenIds(length), {});
  batches.finish();
  return found;
}

TEST(RowBatches, RowsAreGatheredInOrderUpToTheTokensAllowed) {
  EXPECT_THAT(batches_of(6, {1, 2, 3, 4, 1, 2}), ElementsAre("1+2+3", "4+1", "2"));
  EXPECT_THAT(batches_of(6, {7, 1, 9}), ElementsAre("7", "1", "9"));
  EXPECT_THAT(batches_of(6, {}), ElementsAre());
}

TEST(RowBatches, TheSummaryCounts) {
  RowBatches batches(4, [](const RowBatch&) {});
  EXPECT_EQ(batches.summary(), "0 rows, 0 tokens");
  batches.add({1}, {});
  batches.finish();
  EXPECT_THAT(batches.summary(), ::testing::StartsWith("1 row, 1 token, "));
}

TEST(RowReader, IdsNeedNoTokenizerAndMustBeTheModels) {
  const TempFolder folder;
  const ModelConfig config = shape_config("tiny");
  RowReader reader(folder.path(), config, {});
  EXPECT_THAT(reader.from_ids(Json::parse("[0, 511]"), "f:1"), ElementsAre(0, 511));
  EXPECT_EQ(error_of([&] { return reader.from_ids(Json::parse("[512]"), "f:1"); }), "f:1: id 512 is outside the model's vocabulary of 512");
  EXPECT_EQ(error_of([&] { return reader.from_ids(Json::parse("[4294967296]"), "f:1"); }),
            "f:1: id 4294967296 is outside the model's vocabulary of 512");
  EXPECT_EQ(error_of([&] { return reader.from_ids(Json::parse("[]"), "f:2"); }), "f:2: no tokens");
  EXPECT_THAT(error_of([&] { return reader.from_text("a", "f:3"); }), ::testing::HasSubstr(folder.path().string()));
}

TEST(RowReader, ATokenizerLargerThanTheModelIsFound) {
  const TempFolder folder;
  folder.file("tokenizer.json", R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 600}, "merges": []}})");
  const ModelConfig config = shape_config("tiny");
  RowReader reader(folder.path(), config, {});
  EXPECT_THAT(reader.from_text("a", "f:1"), ElementsAre(0));
  EXPECT_EQ(error_of([&] { return reader.from_text("b", "f:2"); }), "f:2: the tokenizer's id 600 is outside the model's vocabulary of 512");
}

TEST(RowReader, APromptMayBeOfAnyLengthAndOpensTheAnswer) {
  const TempFolder folder;
  folder.file("tokenizer.json", R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  folder.file("chat_template.jinja", "{{ messages[0].content }}{% if add_generation_prompt %}b{% endif %}");
  ModelConfig config = shape_config("tiny");
  config.max_positions = 2;
  config.learned_positions = true;
  RowReader rows(folder.path(), config, {});
  RowReader prompts(folder.path(), config, {.is_prompt = true});
  const Json messages = Json::parse(R"([{"role": "user", "content": "a"}])");
  EXPECT_THAT(rows.from_messages(messages, {}, "f:1"), ElementsAre(0));
  EXPECT_THAT(prompts.from_messages(messages, {}, "f:1"), ElementsAre(0, 1));
  EXPECT_EQ(error_of([&] { return rows.from_text("aaa", "f:2"); }), "f:2: 3 tokens, but the model has only 2 positions");
  EXPECT_THAT(prompts.from_text("aaa", "f:2"), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace kedge::cli
