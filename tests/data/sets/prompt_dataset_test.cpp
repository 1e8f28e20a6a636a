#include "kedge/data/sets/prompt_dataset.h"

#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::asset;
using testing::byte_encoder;
using testing::error_of;
using testing::shown;
using testing::TempFolder;

class PromptDatasetTest : public ::testing::Test {
 protected:
  PromptDataset data(const std::string& content, int64_t max_tokens = 100) {
    return PromptDataset(Rows::of_file(folder_.file("f.jsonl", content)), byte_encoder(), config_, max_tokens, testing::render_toy_chat);
  }
  std::string error(const std::string& content) {
    return error_of([&] { return data(content).size(); }).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
  DataConfig config_;
};

TEST_F(PromptDatasetTest, GivesIdsAndTheWholeRow) {
  config_.add_bos = true;
  const PromptDataset prompts = data("{\"text\": \"hi\", \"answer\": 42}\n{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}]}\n");
  ASSERT_EQ(prompts.size(), 2);
  const PromptExample first = prompts.get(0);
  EXPECT_EQ(shown(first.ids), "^hi");
  EXPECT_EQ(first.row.dump(), "{\"text\": \"hi\", \"answer\": 42}");
  EXPECT_EQ(shown(prompts.get(1).ids), "^<user:q><assistant:");
}

TEST_F(PromptDatasetTest, RowsOfVerlAndTrlAreReadAsTheyAre) {
  const std::string verl =
      R"({"data_source": "openai/gsm8k", "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "ability": "math", )"
      R"("reward_model": {"style": "rule", "ground_truth": "72"}, "extra_info": {"index": 0, "split": "train"}})";
  const std::string trl_text = R"({"prompt": "Q:", "solution": "72"})";
  const std::string trl_chat = R"({"prompt": [{"role": "user", "content": "r"}], "solution": "73", "level": 2})";
  const PromptDataset prompts = data(verl + "\n" + trl_text + "\n" + trl_chat + "\n");
  ASSERT_EQ(prompts.size(), 3);
  EXPECT_EQ(shown(prompts.get(0).ids), "<system:s><user:q><assistant:");
  EXPECT_EQ(prompts.get(0).row.dump(), verl);  // so that rewards find the ground truth
  EXPECT_EQ(shown(prompts.get(1).ids), "Q:");
  EXPECT_EQ(prompts.get(1).row.dump(), trl_text);
  EXPECT_EQ(shown(prompts.get(2).ids), "<user:r><assistant:");
  EXPECT_EQ(prompts.get(2).row.dump(), trl_chat);
}

TEST_F(PromptDatasetTest, BrokenRowsAreRefusedAtLoadByLine) {
  const std::string good = "{\"text\": \"a\"}\n";
  EXPECT_EQ(error(good + "{\"text\": 3}\n"), ":2: \"text\": expected a string or a list of messages, found an integer");
  EXPECT_EQ(error(good + "\n" + good), ":2: an empty line");
  EXPECT_EQ(error(good + "{\"text\": \"\"}\n"), ":2: an empty prompt");
  EXPECT_EQ(error(good + "{\"txt\": \"\"}\n"),
            ":2: no \"text\", \"prompt\" or \"messages\" field; the row has \"txt\"; set model.data.fields.prompt to the field with the "
            "prompt, or model.data.prompt_template to combine several");
}

TEST_F(PromptDatasetTest, TheNextThatFitsStandsInForOneThatIsTooLong) {
  const PromptDataset prompts = data("{\"text\": \"aa\"}\n{\"text\": \"bbbb\"}\n{\"text\": \"cc\"}\n{\"text\": \"dddd\"}\n", 3);
  EXPECT_EQ(prompts.size(), 4);
  EXPECT_EQ(shown(prompts.get(1).ids), "cc");
  EXPECT_EQ(prompts.get(1).id, 1);
  EXPECT_EQ(prompts.get(1).source, 2);
  EXPECT_EQ(shown(prompts.get(3).ids), "aa");  // round the end
  EXPECT_EQ(prompts.num_replaced(), 4);
  EXPECT_EQ(prompts.num_dropped(), 0);
}

TEST_F(PromptDatasetTest, OrTooLongOnesAreLeftOutAtLoad) {
  config_.drop_over_long = true;
  const PromptDataset prompts = data("{\"text\": \"aa\"}\n{\"text\": \"bbbb\"}\n{\"text\": \"cc\"}\n", 3);
  EXPECT_EQ(prompts.size(), 2);
  EXPECT_EQ(shown(prompts.get(1).ids), "cc");
  EXPECT_EQ(prompts.num_dropped(), 1);
  EXPECT_EQ(prompts.num_replaced(), 0);
  EXPECT_EQ(error_of([&] { return data("{\"text\": \"aaaa\"}", 3).size(); }),
            (folder_ / "f.jsonl").string() + ": no prompt has at most 3 tokens");
}

TEST_F(PromptDatasetTest, WhereNoneFitsTheFileIsRefused) {
  const PromptDataset prompts = data("{\"text\": \"aaaa\"}\n", 3);
  EXPECT_EQ(error_of([&] { return prompts.get(0).id; }),
            (folder_ / "f.jsonl").string() + ":1: no row fits; expected prompts of at most 3 tokens");
}

TEST_F(PromptDatasetTest, ARowThatIsNotThereIsABug) {
  const PromptDataset prompts = data("{\"text\": \"a\"}\n");
  EXPECT_THROW(static_cast<void>(prompts.get(-1)), Bug);
  EXPECT_THROW(static_cast<void>(prompts.get(1)), Bug);
}

TEST_F(PromptDatasetTest, GradeSchoolMathsLoadsByAFieldName) {
  KEDGE_NEEDS_ASSET("prompts/gsm8k/test.jsonl");
  config_.prompt_template = "Question: {question}\\nAnswer:";
  const PromptDataset prompts(Rows::of_file(asset("prompts/gsm8k/test.jsonl")), byte_encoder(), config_, 2000);
  EXPECT_EQ(prompts.size(), 1319);
  const PromptExample first = prompts.get(0);
  EXPECT_TRUE(first.text.starts_with("Question: Janet")) << first.text;
  EXPECT_TRUE(first.text.ends_with("farmers' market?\nAnswer:"));
  EXPECT_TRUE(first.row.at("answer", "").as_text("").ends_with("#### 18"));
}

TEST_F(PromptDatasetTest, IdsOutsideTheModelsVocabularyAreRefusedAtLoad) {
  const Path file = folder_.file("f.jsonl", "{\"text\": \"a\"}\n{\"text\": \"z\"}\n");
  EXPECT_EQ(error_of([&] { return PromptDataset(Rows::of_file(file), testing::encoder_without_z(), config_, 10).size(); }),
            file.string() + ":2: the tokenizer's id 122 is outside the model's vocabulary of 122");
}

}  // namespace
}  // namespace kedge
