#include "kedge/data/check/hh.h"

#include <gtest/gtest.h>

#include "kedge/data/files/jsonl_file.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::asset;
using testing::error_of;
using testing::render_toy_chat;
using testing::TempFolder;
using Lines = std::vector<int64_t>;

const char* const kRaw = R"({"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: q\n\nAssistant: r"}
{"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: x\n\nAssistant: r"}
{"chosen": "no turns", "rejected": "\n\nHuman: x\n\nAssistant: r"}
{"chosen": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant:", "rejected": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: e"}
)";

class HhTest : public ::testing::Test {
 protected:
  HhReport prepare(const Path& input, const ChatRenderer& chat = {}) {
    config_.input = input;
    config_.comparisons = folder_ / "comparisons.jsonl";
    config_.prompts = folder_ / "prompts.jsonl";
    return prepare_hh(config_, chat);
  }

  TempFolder folder_;
  HhConfig config_;
};

TEST_F(HhTest, WritesComparisonsAndPromptsAndReportsTheRest) {
  config_.kto = folder_ / "kto.jsonl";
  const HhReport report = prepare(folder_.file("raw.jsonl", kRaw));
  EXPECT_EQ(report.num_read, 4);
  EXPECT_EQ(report.num_written, 2);
  EXPECT_EQ(report.different_prompts, Lines{2});
  EXPECT_EQ(report.no_dialogue, Lines{3});
  EXPECT_EQ(report.empty_answers, Lines{4});
  EXPECT_EQ(read_text(folder_ / "comparisons.jsonl"), R"({"text": "\n\nHuman: q\n\nAssistant: c"}
{"text": "\n\nHuman: q\n\nAssistant: r"}
{"text": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant:"}
{"text": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: e"}
)");
  EXPECT_EQ(read_text(folder_ / "prompts.jsonl"), R"({"text": "\n\nHuman: q\n\nAssistant:"}
{"text": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant:"}
)");
  EXPECT_EQ(JsonlFile(folder_ / "kto.jsonl").row(1).json().dump(),
            R"({"prompt": "\n\nHuman: q\n\nAssistant:", "response": " r", "preference": "rejected"})");
  EXPECT_EQ(to_text(report),
            "read 4 pairs, wrote 2\nleft out 1 pairs whose sides have different prompts: lines 2\n"
            "left out 1 rows that are not dialogues: lines 3\nkept 1 pairs with an empty response: lines 4\n");
}

TEST_F(HhTest, TurnsMayOpenOtherwiseOrByAChatTemplate) {
  const auto raw = folder_.file("raw.jsonl", R"({"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: q\n\nAssistant: r"})");
  config_.human = "User:", config_.assistant = "\n\nBot:";
  static_cast<void>(prepare(raw));
  EXPECT_EQ(JsonlFile(folder_ / "comparisons.jsonl").row(0).text("text"), "User: q\n\nBot: c");
  static_cast<void>(prepare(raw, render_toy_chat));
  EXPECT_EQ(JsonlFile(folder_ / "comparisons.jsonl").row(0).text("text"), "<user:q><assistant:c>");
  EXPECT_EQ(JsonlFile(folder_ / "prompts.jsonl").row(0).text("text"), "<user:q><assistant:");
}

TEST_F(HhTest, ABrokenRowLeavesNoFiles) {
  EXPECT_EQ(error_of([&] { return prepare(folder_.file("raw.jsonl", "{\"chosen\": 1}")).num_read; }),
            (folder_ / "raw.jsonl").string() + ":1: \"chosen\": expected a string, found an integer");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "comparisons.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "prompts.jsonl"));
}

TEST_F(HhTest, TheRealFileHasFiveDirtyPairs) {
  const char* file = "preference/hh-rlhf-harmless-test/harmless-base-test.jsonl.gz";
  KEDGE_NEEDS_ASSET(file);
  const HhReport report = prepare(asset(file));
  EXPECT_EQ(report.num_read, 2312);
  EXPECT_EQ(report.num_written, 2307);
  EXPECT_EQ(report.different_prompts, (Lines{1255, 1689, 1951, 1953, 2037}));
  EXPECT_TRUE(report.no_dialogue.empty());
  EXPECT_EQ(report.empty_answers, (Lines{87, 517, 926, 1104}));
  EXPECT_EQ(JsonlFile(folder_ / "comparisons.jsonl").size(), 4614);
  EXPECT_EQ(JsonlFile(folder_ / "prompts.jsonl").size(), 2307);
}

}  // namespace
}  // namespace kedge
