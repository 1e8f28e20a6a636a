#include "kedge/data/sets/collate.h"

#include <gtest/gtest.h>

#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::digits;
using testing::kToyEos;
using testing::shown;
using Lengths = std::vector<int64_t>;

TokenIds ids(std::string_view text) { return testing::byte_encoder().encode(text); }

std::string row(const TokenMatrix& matrix, int64_t index) { return shown(matrix.row(index)); }

// Labels as text, - for -100.
std::string labels(const TokenMatrix& matrix, int64_t index) {
  std::string text;
  for (const TokenId id : matrix.row(index)) text += id == kNoLabel ? '-' : static_cast<char>(id);
  return text;
}

TEST(Collate, PromptsLeaveRoomForTheAnswerBehindTheLongest) {
  const std::vector<PromptExample> prompts = {{.ids = ids("abc")}, {.ids = ids("d")}};
  const PromptBatch batch = collate_prompts(prompts, 2, kToyEos);
  EXPECT_EQ(batch.text.rows, 2);
  EXPECT_EQ(batch.text.width, 5);
  EXPECT_EQ(row(batch.text, 0), "abc$$");
  EXPECT_EQ(row(batch.text, 1), "d$$$$");
  EXPECT_EQ(batch.lengths, (Lengths{3, 1}));
}

TEST(Collate, SftShiftsLabelsAndRoundsTheWidthUp) {
  const std::vector<MaskedTokens> rows = {{ids("asksay$"), {0, 0, 0, 1, 1, 1, 1}}, {ids("ab"), {0, 1}}};
  const SftBatch batch = collate_sft(rows, {.max_seq_length = 100, .eos = '$'});
  EXPECT_EQ(batch.tokens.width, 16);
  EXPECT_EQ(row(batch.tokens, 0), "asksay" + std::string(10, '$'));
  EXPECT_EQ(row(batch.labels, 0), "sksay$" + std::string(10, '$'));
  EXPECT_EQ(row(batch.labels, 1), "b" + std::string(15, '$'));
  EXPECT_EQ(digits(batch.loss_mask),
            "0011110000000000"
            "1000000000000000");
  EXPECT_EQ(batch.lengths, (Lengths{6, 1}));
}

TEST(Collate, SftIsNeverWiderThanAllowedAndAsWideWhenAsked) {
  const std::vector<MaskedTokens> rows = {{TokenIds(20, 'x'), std::vector<uint8_t>(20, 1)}};
  EXPECT_EQ(collate_sft(rows, {.max_seq_length = 20}).tokens.width, 20);  // 19 would round up to 32
  EXPECT_EQ(collate_sft(rows, {.max_seq_length = 64}).tokens.width, 32);
  EXPECT_EQ(collate_sft(rows, {.max_seq_length = 64, .pad_to_max_length = true}).tokens.width, 64);
}

TEST(Collate, PairsAreAsWideAsTheLongerSide) {
  const PreferenceExample pair = {
      .chosen = ids("askgood"), .rejected = ids("askno"), .num_prompt_tokens = 3, .chosen_reward = 1, .rejected_reward = 0.5};
  const std::vector<const PreferenceExample*> pairs = {&pair, nullptr};
  const PreferenceBatch batch = collate_preferences(pairs, {.eos = kToyEos});
  EXPECT_EQ(row(batch.chosen.tokens, 0), "askgood");
  EXPECT_EQ(labels(batch.chosen.labels, 0), "---good");
  EXPECT_EQ(row(batch.rejected.tokens, 0), "askno$$");
  EXPECT_EQ(labels(batch.rejected.labels, 0), "---no--");
  EXPECT_EQ(batch.rejected.lengths, (Lengths{5, 1}));
  EXPECT_EQ(labels(batch.chosen.labels, 1), "-------");  // a pair that is not there
  EXPECT_EQ(digits(batch.valid), "10");
  EXPECT_EQ(batch.rejected_rewards, (std::vector<double>{0.5, 0}));
  EXPECT_EQ(collate_preferences(pairs, {.eos = kToyEos, .width_multiple = 4}).chosen.tokens.width, 8);
}

TEST(Collate, AMaskedPairHasNoLabels) {
  const PreferenceExample pair = {.chosen = ids("askg"), .rejected = ids("askn"), .num_prompt_tokens = 3, .masked = true};
  const std::vector<const PreferenceExample*> pairs = {&pair};
  const PreferenceBatch batch = collate_preferences(pairs, {.eos = kToyEos});
  EXPECT_EQ(labels(batch.chosen.labels, 0), "----");
  EXPECT_EQ(digits(batch.valid), "0");
}

TEST(Collate, KtoPairsEachPromptWithTheNextAnswer) {
  const std::vector<KtoExample> rows = {{.ids = ids("pAa"), .num_prompt_tokens = 1, .chosen = true},
                                        {.ids = ids("qqB"), .num_prompt_tokens = 2}};
  const KtoBatch batch = collate_kto(rows, {.eos = kToyEos});
  EXPECT_EQ(labels(batch.rows.labels, 0), "-Aa");
  EXPECT_EQ(row(batch.kl.tokens, 0), "pB$$");
  EXPECT_EQ(labels(batch.kl.labels, 0), "-B--");
  EXPECT_EQ(row(batch.kl.tokens, 1), "qqAa");  // round to the first
  EXPECT_EQ(labels(batch.kl.labels, 1), "--Aa");
  EXPECT_EQ(digits(batch.chosen), "10");
}

TEST(Collate, RegressionMasksTheLabelsOfStandIns) {
  const RegressionExample good = {.ids = ids("ab"), .labels = {1, 2}}, stand_in = {.ids = ids("c"), .labels = {3, 4}, .masked = true};
  const std::vector<const RegressionExample*> rows = {&good, &stand_in, nullptr};
  const RegressionBatch batch = collate_regression(rows, 2, -100, kToyEos);
  EXPECT_EQ(batch.labels, (std::vector<double>{1, 2, -100, -100, -100, -100}));
  EXPECT_EQ(row(batch.tokens, 1), "c$");
  EXPECT_EQ(row(batch.tokens, 2), "$$");
  EXPECT_EQ(batch.lengths, (Lengths{2, 1, 1}));
}

// The padding vector of the specification: rows of 5 and 7 tokens on one rank, 6 on another.
TEST(Collate, RolloutsAreAsWideAsTheWidestOrAsAsked) {
  const auto widths = [](std::optional<int64_t> wanted) {
    const RolloutWidths found = rollout_widths(7, wanted);
    return std::pair(found.tokens, found.predictions);
  };
  EXPECT_EQ(widths(std::nullopt), std::pair(int64_t{7}, int64_t{6}));
  EXPECT_EQ(widths(10), std::pair(int64_t{10}, int64_t{9}));
  EXPECT_EQ(widths(6), std::pair(int64_t{7}, int64_t{6}));
}

}  // namespace
}  // namespace kedge
