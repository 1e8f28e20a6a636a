#pragma once
// What an answer, or each of its tokens, is worth compared with others: KL penalties, baselines, the best answers, advantages over time.
// Plain numbers on the host, so that every rank gets the same ones. Independent of tensors and models.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/config/config_schema.h"

namespace kedge {

// How far one token's log-probability p is from the reference's q: |p - q|; p - q; (p - q)^2 / 2; exp(q - p) - 1 - (q - p).
enum class KlEstimator { abs, k1, k2, k3 };
constexpr auto enum_names(KlEstimator) {
  return std::array<EnumName<KlEstimator>, 4>{
      {{"abs", KlEstimator::abs}, {"k1", KlEstimator::k1}, {"k2", KlEstimator::k2}, {"k3", KlEstimator::k3}}};
}
enum class KlReduce { mean, sum };
constexpr auto enum_names(KlReduce) { return std::array<EnumName<KlReduce>, 2>{{{"mean", KlReduce::mean}, {"sum", KlReduce::sum}}}; }

[[nodiscard]] double token_kl(KlEstimator estimator, double logprob, double reference);
// Over an answer's tokens; 0 for none.
[[nodiscard]] double answer_kl(KlEstimator estimator, KlReduce reduce, std::span<const float> logprobs, std::span<const float> reference);

// One answer among those of a batch.
struct ScoredAnswer {
  int64_t slot = 0;    // which prompt of the batch it answers: equal prompts in one batch are kept separate
  double reward = 0;   // with its KL penalty
  bool counts = true;  // it ended properly and has a reward: it is part of others' baselines
};

enum class Baseline { rloo, group_mean, group_norm, group_mean_batch_std, batch_mean, batch_norm, none };
constexpr auto enum_names(Baseline) {
  return std::array<EnumName<Baseline>, 7>{{{"rloo", Baseline::rloo},
                                            {"group_mean", Baseline::group_mean},
                                            {"group_norm", Baseline::group_norm},
                                            {"group_mean_batch_std", Baseline::group_mean_batch_std},
                                            {"batch_mean", Baseline::batch_mean},
                                            {"batch_norm", Baseline::batch_norm},
                                            {"none", Baseline::none}}};
}

// A response's advantage depends on responses to other prompts.
[[nodiscard]] constexpr bool compares_prompts(Baseline baseline) {
  return baseline == Baseline::group_mean_batch_std || baseline == Baseline::batch_mean || baseline == Baseline::batch_norm;
}

struct AnswerAdvantage {
  double baseline = 0, advantage = 0;
};
// rloo: the mean of the others if at least two of a prompt's answers count; else the answer's own reward, so that its advantage is 0. An
// answer that does not count gets the sum of all that do, divided by one less than their number. group_mean: the mean of the prompt's
// answers that count; group_norm: the same, and the advantage divided by their standard deviation (of a sample) plus 1e-4;
// group_mean_batch_std: divided by that of all answers instead; batch_mean: the mean of all. batch_norm is of tokens: batch_normed().
[[nodiscard]] std::vector<AnswerAdvantage> answer_advantages(std::span<const ScoredAnswer> answers, Baseline baseline);

// The places of the `top_n` best answers to every prompt, prompts in the order of their slots, answers from worse to better; of equal
// rewards the later is better. All answers of a prompt that has fewer.
[[nodiscard]] std::vector<size_t> select_topk(std::span<const ScoredAnswer> answers, int64_t top_n);

// Of an answer's tokens.
struct GaeOptions {
  double discount = 1, gae_lambda = 0.95;
};
struct TokenAdvantages {
  std::vector<double> advantages, returns;
};
// `rewards` and `values` have one number for each token of the answer; the value after the last token is 0.
[[nodiscard]] TokenAdvantages gae(std::span<const double> rewards, std::span<const float> values, const GaeOptions& options);
// -beta * kl at every token, and the answer's reward at its last.
[[nodiscard]] std::vector<double> token_rewards(std::span<const double> kl, double beta, double reward);

// What is still to come at each token of each answer, minus the mean and divided by the standard deviation of that over all tokens of the
// batch (REINFORCE++). Of every answer the rewards of its tokens.
[[nodiscard]] std::vector<std::vector<double>> batch_normed(std::span<const std::vector<double>> rewards);

// Of all tokens of a batch, over however many rows and ranks they were gathered from.
struct Moments {
  double mean = 0, variance = 0;  // of the population
};
[[nodiscard]] Moments moments_of(std::span<const double> values);
void whiten(std::span<double> values, const Moments& moments);  // (x - mean) / sqrt(variance + 1e-8)

}  // namespace kedge
