#include "kedge/train/checkpoint/resume_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

const std::vector<ChangeRule> kRules = {{"model.peft", ChangeKind::refused, "the adapters have another shape"},
                                        {"model.peft.lora_tuning.adapter_dropout", ChangeKind::free, ""},
                                        {"model.global_batch_size", ChangeKind::converted, "goes on at the same row"}};

std::vector<ConfigChange> changes(const char* before, const char* after) {
  return config_changes(Json::parse(before), Json::parse(after), kRules);
}

TEST(ResumeRules, EqualConfigurationsHaveNoChanges) { EXPECT_TRUE(changes(R"({"a": {"b": [1, 2]}})", R"({"a": {"b": [1, 2]}})").empty()); }

TEST(ResumeRules, AKeyWithoutARuleIsFree) {
  const auto found = changes(R"({"model": {"lr": 1.0, "seed": 1}})", R"({"model": {"lr": 2.0, "seed": 1}})");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "model.lr");
  EXPECT_EQ(found[0].before, "1.0");
  EXPECT_EQ(found[0].after, "2.0");
  EXPECT_EQ(found[0].kind, ChangeKind::free);
  EXPECT_NO_THROW(accept_changes(found, "run"));
}

TEST(ResumeRules, TheLongestRuleDecides) {
  const auto found = changes(R"({"model": {"global_batch_size": 4, "peft": {"lora_tuning": {"adapter_dim": 4, "adapter_dropout": 0}}}})",
                             R"({"model": {"global_batch_size": 8, "peft": {"lora_tuning": {"adapter_dim": 8, "adapter_dropout": 1}}}})");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].kind, ChangeKind::converted);
  EXPECT_EQ(found[1].key, "model.peft.lora_tuning.adapter_dim");
  EXPECT_EQ(found[1].kind, ChangeKind::refused);
  EXPECT_EQ(found[2].kind, ChangeKind::free);
}

TEST(ResumeRules, AKeyThatMerelyBeginsLikeARuleIsNotCovered) {
  const auto found = changes(R"({"model": {"peft_more": 1}})", R"({"model": {"peft_more": 2}})");
  EXPECT_EQ(found[0].kind, ChangeKind::free);
}

TEST(ResumeRules, KeysThatComeAndGoAreChanges) {
  const auto found = changes(R"({"old": 1})", R"({"new": 2})");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].after, "");
  EXPECT_EQ(found[1].before, "");
}

TEST(ResumeRules, RefusedOnesAreNamedAllAtOnce) {
  const auto found = changes(R"({"model": {"peft": {"a": 1, "b": 1}}})", R"({"model": {"peft": {"a": 2, "b": 2}}})");
  EXPECT_THAT(error_of([&] { accept_changes(found, "runs/x/checkpoints/y-last"); }),
              HasSubstr("runs/x/checkpoints/y-last: cannot resume with other settings:\n"
                        "  model.peft.a: 1 -> 2 (the adapters have another shape)\n  model.peft.b: 1 -> 2"));
}

}  // namespace
}  // namespace kedge
