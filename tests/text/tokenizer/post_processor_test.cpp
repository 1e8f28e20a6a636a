#include "kedge/text/tokenizer/post_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::parse;

TokenIds apply(std::string_view json, const TokenIds& ids) {
  const Json parsed = parse(json);
  return PostProcessor(&parsed, "here").apply(ids);
}

constexpr const char* kTwoTexts = R"({"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "end", "type_id": 0}}],
  "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "end": {"id": "end", "ids": [2, 3], "tokens": ["e", "d"]}}})";

TEST(PostProcessor, FollowsATemplate) { EXPECT_THAT(apply(kTwoTexts, {7, 8}), ElementsAre(1, 7, 8, 2, 3)); }

TEST(PostProcessor, PutsBertsAndRobertasTokensAround) {
  EXPECT_THAT(apply(R"({"type": "BertProcessing", "sep": ["[SEP]", 9], "cls": ["[CLS]", 8]})", {1}), ElementsAre(8, 1, 9));
  EXPECT_THAT(
      apply(R"({"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": true})", {1}),
      ElementsAre(0, 1, 2));
}

TEST(PostProcessor, AppliesASequenceOneAfterAnother) {
  EXPECT_THAT(apply(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, )" + std::string(kTwoTexts) +
                        R"(, {"type": "BertProcessing", "sep": ["s", 9], "cls": ["c", 8]}]})",
                    {7}),
              ElementsAre(8, 1, 7, 2, 3, 9));
}

TEST(PostProcessor, AddsNothingWithoutOne) {
  EXPECT_THAT(apply("null", {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(PostProcessor().apply({1}), ElementsAre(1));
  EXPECT_THAT(PostProcessor({5}, {6, 7}).apply({1}), ElementsAre(5, 1, 6, 7));
}

TEST(PostProcessor, NamesWhatIsWrong) {
  const auto error = [](std::string_view json) { return testing::error_of([&] { return apply(json, {}); }); };
  EXPECT_EQ(error(R"({"type": "Sequence", "processors": [{"type": "Other"}]})"),
            "here.processors[0]: the post-processor type \"Other\" is not supported");
  EXPECT_EQ(error(R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B"}}], "special_tokens": {}})"),
            "here.single[0].Sequence.id: a template for one text cannot hold \"B\"");
  EXPECT_EQ(error(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}], "special_tokens": {}})"),
            "here.special_tokens: no \"x\" field");
  EXPECT_EQ(
      error(R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}], "special_tokens": {}})"),
      "here.single: expected the text once, found it 2 times");
  EXPECT_EQ(error(R"({"type": "BertProcessing", "sep": ["s", -1], "cls": ["c", 8]})"), "here.sep[1]: -1 is not a token id");
}

}  // namespace
}  // namespace kedge
