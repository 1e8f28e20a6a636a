#include "kedge/data/check/data_report.h"

#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::asset;
using testing::TempFolder;

class DataReportTest : public ::testing::Test {
 protected:
  DataReportTest() {
    options_.encoder = testing::byte_encoder();
    options_.chat = testing::render_toy_chat;
  }

  TempFolder folder_;
  DataCheckOptions options_;
};

TEST_F(DataReportTest, CountsEveryKindOfFaultAndGoesOn) {
  const auto path = folder_.file(
      "f.jsonl", std::string("{\"text\": \"good\"}\n\n{\"text\": 1}\n{\"txt\": 1}\n{\"text\": \"\"}\n{\"text\": 2}\n[1]\n{\"text\": \"x\n"
                             "{\"text\": \"\xC3\"}\n{\"text\": \"longer\"}\n{\"text\": \"good\"}"));
  options_.max_tokens = 5;
  const DataReport report = check_data(path, options_);
  EXPECT_EQ(report.num_examples, 11);
  EXPECT_EQ(report.num_good, 3);
  std::string faults;
  for (const auto& fault : report.faults)
    faults += std::to_string(fault.count) + " " + std::string(name_of(fault.kind)) + fault.first.substr(path.string().size(), 3) + "\n";
  EXPECT_EQ(
      faults,
      "1 empty line:2:\n2 wrong type:3:\n1 missing field:4:\n1 empty prompt:5:\n1 not an object:7:\n1 not valid JSON:8:\n1 not UTF-8:9:\n");
  EXPECT_EQ(report.num_over_long, 1);
  EXPECT_EQ(report.first_over_long, path.string() + ":10");
  EXPECT_EQ(report.equal_rows.count, 1);
  EXPECT_EQ(report.equal_rows.first, path.string() + ":11");
  EXPECT_EQ(report.equal_rows.first_earlier, path.string() + ":1");
}

TEST_F(DataReportTest, CountsPairsWhosePromptsTokensChange) {
  options_.encoder = testing::merging_encoder();
  options_.kind = DataKind::preference;
  const auto path = folder_.file("f.jsonl", R"({"prompt": "x", "chosen": "b", "rejected": "c"}
{"prompt": "xa", "chosen": "c", "rejected": "b"}
)");
  const DataReport report = check_data(path, options_);
  EXPECT_EQ(report.num_good, 2);  // for a reward model
  EXPECT_EQ(report.num_crossing, 1);
  EXPECT_NE(to_text(report).find("into an answer: 1, first " + path.string() + ":2; kedge dpo refuses"), std::string::npos);
  options_.data.prompt_boundary = PromptBoundary::common;
  EXPECT_EQ(check_data(path, options_).num_crossing, 0);
}

TEST_F(DataReportTest, MeasuresLengths) {
  std::string content;
  for (const size_t length : {1, 2, 3, 15, 16, 40}) content += "{\"text\": \"" + std::string(length, 'x') + "\"}\n";
  const DataReport report = check_data(folder_.file("f.jsonl", content), options_);
  EXPECT_EQ(report.min_tokens, 1);
  EXPECT_EQ(report.median_tokens, 15);
  EXPECT_EQ(report.p95_tokens, 40);
  EXPECT_EQ(report.max_tokens, 40);
  EXPECT_EQ(report.total_tokens, 77);
  std::string buckets;
  for (const auto& bucket : report.histogram)
    buckets += std::to_string(bucket.from) + "-" + std::to_string(bucket.to) + ":" + std::to_string(bucket.count) + " ";
  EXPECT_EQ(buckets, "0-15:4 16-31:1 32-63:1 ");
}

TEST_F(DataReportTest, ShowsAnExampleAsTheModelSeesIt) {
  options_.kind = DataKind::sft;
  const auto path = folder_.file("f.jsonl", "{\"input\": \"a\\n\", \"output\": \"b\"}");
  const DataReport report = check_data(path, options_);
  EXPECT_EQ(to_text(report),
            path.string() +
                ": 1 examples, 1 good\ntokens: 5 in total; shortest 5, median 5, 95 % up to 5, longest 5\n"
                "  0-15: 1 ########################################\nlonger than 4096 tokens: 0\nequal rows: 0\nequal prompts: 0\n"
                "as the model sees " +
                path.string() + ":1 ([[trained on]]):\n  text: |a|\\n[[| |b|</s>|]]\n");
  const Json json = to_json(report);
  EXPECT_EQ(json.at("good", ""), Json(1));
  EXPECT_EQ(json.at("example", "").at("sides", "").at("text", "").as_array("")[3].dump(), R"({"id": 98, "text": "b", "trained": true})");
}

TEST_F(DataReportTest, AFileWithoutAGoodRowIsReportedToo) {
  const auto path = folder_.file("f.jsonl", "x\n");
  options_.kind = DataKind::preference;
  const DataReport report = check_data(path, options_);
  EXPECT_EQ(report.num_good, 0);
  EXPECT_FALSE(report.example);
  EXPECT_TRUE(to_text(report).starts_with(path.string() + ": 1 examples, 0 good\n  1 x not valid JSON, first: ")) << to_text(report);
}

TEST_F(DataReportTest, FindsPromptsOfOneFileInAnother) {
  const auto train = folder_.file("train.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": 3}\n");
  const auto validation = folder_.file("validation.jsonl", "{\"text\": \"c\"}\n{\"text\": \"b\"}\n{\"text\": \"b\"}\nx\n");
  const PromptOverlap overlap = prompt_overlap(train, validation, options_);
  EXPECT_EQ(overlap.num_prompts, 3);
  EXPECT_EQ(overlap.num_shared, 2);
  EXPECT_EQ(overlap.first, validation.string() + ":2");
}

TEST_F(DataReportTest, RealFilesAreReported) {
  KEDGE_NEEDS_ASSET("preference");
  options_.kind = DataKind::preference;
  const DataReport hh = check_data(asset("preference/hh-rlhf-harmless-test/harmless-base-test.jsonl.gz"), options_);
  EXPECT_EQ(hh.num_examples, 2312);
  ASSERT_EQ(hh.faults.size(), 1U);
  EXPECT_EQ(hh.faults[0].kind, RowFault::different_prompts);
  EXPECT_EQ(hh.faults[0].count, 5);
  EXPECT_NE(hh.faults[0].first.find(":1255:"), std::string::npos) << hh.faults[0].first;
  EXPECT_EQ(check_data(asset("preference/llamafactory/dpo_en_demo.json"), options_).num_good, 300);
  options_.kind = DataKind::kto;
  EXPECT_EQ(check_data(asset("preference/llamafactory/kto_en_demo.json"), options_).num_good, 300);
  options_.kind = DataKind::prompts;
  options_.data.names.prompt = "question";
  EXPECT_EQ(check_data(asset("prompts/gsm8k/train.jsonl"), options_).num_good, 7473);
  EXPECT_EQ(prompt_overlap(asset("prompts/gsm8k/train.jsonl"), asset("prompts/gsm8k/test.jsonl"), options_).num_shared, 0);
}

}  // namespace
}  // namespace kedge
