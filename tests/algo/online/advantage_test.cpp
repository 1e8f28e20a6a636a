#include "kedge/algo/online/advantage.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

// The numbers are those of the reference's specification (its vectors of masks, KL, GAE, whitening, baselines and choices), worked in
// double precision there; values and log-probs are single here, hence 1e-6.
constexpr double kClose = 1e-6;

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], kClose) << i;
}

// The response tokens of two answers.
const std::vector<float> kPolicy0 = {-0.50F, -1.10F, -0.30F, -0.90F}, kPolicy1 = {-0.60F, -1.40F, -0.20F};
const std::vector<float> kReference0 = {-0.80F, -0.90F, -0.45F, -0.60F}, kReference1 = {-0.50F, -1.10F, -0.65F};

std::vector<double> kl_of(const std::vector<float>& policy, const std::vector<float>& reference) {
  std::vector<double> kl;
  for (size_t i = 0; i < policy.size(); ++i) kl.push_back(token_kl(KlEstimator::abs, policy[i], reference[i]));
  return kl;
}

TEST(Advantage, KlIsTheMeanOverAnAnswersTokens) {
  expect_near(kl_of(kPolicy0, kReference0), {0.30, 0.20, 0.15, 0.30});
  EXPECT_NEAR(answer_kl(KlEstimator::abs, KlReduce::mean, kPolicy0, kReference0), 0.2375, kClose);
  EXPECT_NEAR(answer_kl(KlEstimator::abs, KlReduce::mean, kPolicy1, kReference1), 0.283333333, kClose);
  EXPECT_NEAR(answer_kl(KlEstimator::k1, KlReduce::mean, kPolicy0, kReference0), -0.0125, kClose);
  EXPECT_NEAR(answer_kl(KlEstimator::k1, KlReduce::mean, kPolicy1, kReference1), 0.016666667, kClose);
  EXPECT_NEAR(answer_kl(KlEstimator::k1, KlReduce::sum, kPolicy1, kReference1), 0.05, kClose);
  EXPECT_EQ(answer_kl(KlEstimator::abs, KlReduce::mean, {}, {}), 0);
  // As REINFORCE takes it off the reward.
  EXPECT_NEAR(2.0 - 0.05 * answer_kl(KlEstimator::abs, KlReduce::mean, kPolicy0, kReference0), 1.988125, kClose);
  EXPECT_NEAR(1.0 - 0.05 * answer_kl(KlEstimator::abs, KlReduce::mean, kPolicy1, kReference1), 0.985833333, kClose);
}

TEST(Advantage, OtherEstimatorsOfKl) {
  EXPECT_NEAR(token_kl(KlEstimator::k2, -1.0, -1.5), 0.125, kClose);
  EXPECT_NEAR(token_kl(KlEstimator::k3, -1.0, -1.5), std::exp(-0.5) - 1 + 0.5, kClose);
  EXPECT_GE(token_kl(KlEstimator::k3, -1.5, -1.0), 0);
  EXPECT_EQ(token_kl(KlEstimator::k3, -1.0, -1.0), 0);
}

const std::vector<float> kValues0 = {0.30F, 0.42F, 0.37F, 0.55F}, kValues1 = {0.05F, -0.20F, 0.12F};

TEST(Advantage, RewardsComeAtTheLastTokenAndKlAtEvery) {
  expect_near(token_rewards(kl_of(kPolicy0, kReference0), 0.05, 1.75), {-0.0150, -0.0100, -0.0075, 1.7350});
  expect_near(token_rewards(kl_of(kPolicy1, kReference1), 0.05, -0.40), {-0.0050, -0.0150, -0.4225});
}

TEST(Advantage, GaeLooksAhead) {
  const auto rewards0 = token_rewards(kl_of(kPolicy0, kReference0), 0.05, 1.75),
             rewards1 = token_rewards(kl_of(kPolicy1, kReference1), 0.05, -0.40);
  const TokenAdvantages first = gae(rewards0, kValues0, {1.0, 0.95}), second = gae(rewards1, kValues1, {1.0, 0.95});
  expect_near(first.advantages, {1.219670625, 1.1733375, 1.29825, 1.185});
  expect_near(first.returns, {1.519670625, 1.5933375, 1.66825, 1.735});
  expect_near(second.advantages, {-0.45485625, -0.210375, -0.5425});
  expect_near(second.returns, {-0.40485625, -0.410375, -0.4225});
  const TokenAdvantages discounted = gae(rewards0, kValues0, {0.9, 0.8});
  expect_near(discounted.advantages, {0.49637088, 0.601904, 0.9707, 1.185});
  expect_near(discounted.returns, {0.79637088, 1.021904, 1.3407, 1.735});
  expect_near(gae(rewards1, kValues1, {0.9, 0.8}).returns, {-0.255272, -0.2976, -0.4225});
  const std::vector<double> rewards = {0, 0, 1, 0};
  const std::vector<float> values = {0, 1, 2, 3};
  expect_near(gae(rewards, values, {0.5, 0}).advantages, {0.5, 0, 0.5, -3});
  expect_near(gae(rewards, values, {0.5, 0}).returns, {0.5, 1, 2.5, 0});
}

TEST(Advantage, WhiteningIsOverAllTokensOfTheBatch) {
  std::vector<double> all = {1.219670625, 1.1733375, 1.29825, 1.185, -0.45485625, -0.210375, -0.5425};
  const Moments moments = moments_of(all);
  EXPECT_NEAR(moments.mean, 0.524075268, kClose);
  EXPECT_NEAR(moments.variance, 0.653838468, kClose);
  whiten(all, moments);
  expect_near(all, {0.860243574, 0.802943345, 0.957422777, 0.817366372, -1.210645728, -0.908295486, -1.319034853});
  EXPECT_EQ(moments_of({}).variance, 0);
}

TEST(Advantage, LeaveOneOutMeasuresAnAnswerByTheOthersThatEnded) {
  const int64_t a = 0, b = 1, c = 2, d = 3;
  const std::vector<ScoredAnswer> answers = {{a, 1.5}, {b, -0.25},      {a, 0.75}, {c, 2},           {b, 1.25},
                                             {a, -1},  {b, 0.5, false}, {d, 3},    {a, 2.25, false}, {d, -2, false}};
  const auto found = answer_advantages(answers, Baseline::rloo);
  const std::vector<double> baselines = {-0.125, 1.25, 0.25, 2, -0.25, 1.125, 1, 3, 0.625, -2};
  const std::vector<double> advantages = {1.625, -1.5, 0.5, 0, 1.5, -2.125, -0.5, 0, 1.625, 0};
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_NEAR(found[i].baseline, baselines[i], kClose) << i;
    EXPECT_NEAR(found[i].advantage, advantages[i], kClose) << i;
  }
  const std::vector<ScoredAnswer> more = {{1, 1}, {1, 0}, {0, 2}, {1, -3}, {1, 5}, {0, 7}, {0, -1}, {0, 0, false}};
  const std::vector<double> wanted = {2.0 / 3, 1, 3, 2, -2.0 / 3, 0.5, 4.5, 4};
  const auto again = answer_advantages(more, Baseline::rloo);
  for (size_t i = 0; i < more.size(); ++i) EXPECT_NEAR(again[i].baseline, wanted[i], kClose) << i;
}

TEST(Advantage, OtherBaselines) {
  const std::vector<ScoredAnswer> answers = {{0, 1}, {0, 3}, {0, 100, false}, {1, 8}};
  const auto mean = answer_advantages(answers, Baseline::group_mean);
  EXPECT_EQ(mean[0].baseline, 2);
  EXPECT_EQ(mean[1].advantage, 1);
  EXPECT_EQ(mean[3].advantage, 0);
  const auto norm = answer_advantages(answers, Baseline::group_norm);
  EXPECT_NEAR(norm[1].advantage, 1 / (std::sqrt(2.0) + 1e-4), kClose);
  EXPECT_EQ(norm[3].advantage, 0);
  const auto batch = answer_advantages(answers, Baseline::batch_mean);
  EXPECT_EQ(batch[0].baseline, 4);
  EXPECT_EQ(batch[3].advantage, 4);
  EXPECT_EQ(answer_advantages(answers, Baseline::none)[1].advantage, 3);
}

TEST(Advantage, TheBestAnswersOfEveryPromptAreChosen) {
  // X is slot 1, Y slot 0: the vector's order of prompts.
  std::vector<ScoredAnswer> answers;
  const std::vector<double> rewards = {0.3, 1.0, 0.9, 1.0, -0.2, 0.5, 0.9, 2.0};
  for (size_t i = 0; i < rewards.size(); ++i) answers.push_back({i % 2 == 0 ? 1 : 0, rewards[i]});
  using Places = std::vector<size_t>;
  EXPECT_EQ(select_topk(answers, 1), (Places{7, 6}));
  EXPECT_EQ(select_topk(answers, 2), (Places{3, 7, 2, 6}));
  EXPECT_EQ(select_topk(answers, 3), (Places{1, 3, 7, 0, 2, 6}));
  EXPECT_EQ(select_topk(answers, 4), (Places{5, 1, 3, 7, 4, 0, 2, 6}));
  EXPECT_EQ(select_topk(answers, 9), (Places{5, 1, 3, 7, 4, 0, 2, 6}));
}

// Two prompts with rewards 1, 2, 3 and 4, 4, 7: deviations of samples 1 and sqrt(3), of all six sqrt(4.3).
TEST(Advantage, IsDividedByTheDeviationOfTheGroupOrOfTheBatch) {
  const std::vector<ScoredAnswer> answers = {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {1, 4}, {1, 7}, {1, 100, false}};
  const auto by_group = answer_advantages(answers, Baseline::group_norm),
             by_batch = answer_advantages(answers, Baseline::group_mean_batch_std);
  EXPECT_NEAR(by_group[0].advantage, -1 / 1.0001, 1e-12);
  EXPECT_NEAR(by_group[5].advantage, 2 / (std::sqrt(3.0) + 1e-4), 1e-12);
  EXPECT_NEAR(by_batch[0].advantage, -1 / (std::sqrt(4.3) + 1e-4), 1e-12);
  EXPECT_NEAR(by_batch[5].advantage, 2 / (std::sqrt(4.3) + 1e-4), 1e-12);
  EXPECT_NEAR(by_batch[5].baseline, 5, 1e-12);
}

// To come at the tokens: 0.7, 0.8, 1 and 2: mean 1.125, variance 0.266875.
TEST(Advantage, OverTheBatchsTokensIsOfWhatIsStillToCome) {
  const std::vector<std::vector<double>> rewards = {{-0.1, -0.2, 1}, {}, {2}};
  const auto normed = batch_normed(rewards);
  ASSERT_EQ(normed.size(), 3U);
  const double scale = std::sqrt(0.266875 + 1e-8);
  expect_near(normed[0], {(0.7 - 1.125) / scale, (0.8 - 1.125) / scale, (1 - 1.125) / scale});
  EXPECT_TRUE(normed[1].empty());
  expect_near(normed[2], {(2 - 1.125) / scale});
}

}  // namespace
}  // namespace kedge
