#include "kedge/algo/supervised/dpo.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "kedge/algo/supervised/preference_task.h"
#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/text/chat/model_chat.h"

namespace kedge {
namespace {

// Sums over pairs, for the metrics. Rewards are log-ratios as the loss scores them; of those with beta, sums over responses' tokens.
struct DpoSum {
  enum Index : size_t {
    pairs,
    skipped,
    preference,
    sft,
    correct,
    chosen,
    rejected,
    squares,
    chosen_reward,
    rejected_reward,
    correct_rewards,
    chosen_logps,
    rejected_logps,
    count
  };
};

// A batch in progress.
struct DpoBatch {
  std::map<int64_t, PreferenceExample> examples;  // of this rank
  int64_t num_pairs = 0;                          // of all ranks, without those that are too long
};

class DpoSplit {
 public:
  static constexpr size_t kNumSums = DpoSum::count;

  DpoSplit(const DpoModelConfig& config, std::shared_ptr<const PreferenceDataset> set, std::shared_ptr<TaskReference> reference,
           const std::unique_ptr<Model>& model)
      : config_(config),
        means_(score_means(config.loss, config.loss.preference_loss == DpoLoss::ipo)),
        set_(std::move(set)),
        reference_(std::move(reference)),
        model_(model) {}

  [[nodiscard]] int64_t size() const { return set_->size(); }

  [[nodiscard]] std::vector<ReferencePasses> passes(const BatchList& batches, int64_t step, int64_t micro_size) const {
    return {reference_passes(first_passes(batches, step, micro_size),
                             [this](std::span<const int64_t> rows) { return responses(examples_of(*set_, rows)); })};
  }

  void begin_batch(const BatchRows& batch) {
    batch_ = {};
    std::vector<std::vector<ResponseRow>> own;
    for (const std::vector<int64_t>& rows : batch.own) {
      std::vector<PreferenceExample> examples = examples_of(*set_, rows);
      own.push_back(responses(examples));
      batch_.num_pairs += std::ssize(own.back()) / 2;
      for (size_t i = 0; i < rows.size(); ++i) batch_.examples.emplace(rows[i], std::move(examples[i]));
    }
    std::array<double, 1> pairs = {static_cast<double>(batch_.num_pairs)};
    batch.group.all_reduce(std::span<double>(pairs), Reduce::sum);
    batch_.num_pairs = static_cast<int64_t>(pairs[0]);
    reference_->begin_batch(own);
  }

  [[nodiscard]] RowsResult compute(std::span<const int64_t> rows, const PassOptions& pass) const {
    std::vector<PreferenceExample> examples;
    for (const int64_t row : rows) examples.push_back(batch_.examples.at(row));
    const std::vector<ResponseRow> sides = responses(examples);
    RowsResult result;
    const auto numbers = at::TensorOptions().dtype(at::kDouble).device(model_->device());
    const int64_t pairs = std::ssize(sides) / 2;
    if (pairs == 0) {
      result.sums = at::zeros({kNumSums}, numbers);
      result.sums[static_cast<int64_t>(DpoSum::skipped)] = static_cast<double>(rows.size());
      return result;
    }
    const ResponseScores scores = score_responses(*model_, reference_->get(), sides, pass);
    const Tensor ratios = scores.scored(scores.ratios, means_.preference);
    const Tensor chosen = ratios.narrow(0, 0, pairs), rejected = ratios.narrow(0, pairs, pairs);
    const Tensor preference = dpo_losses(loss_options(), chosen - rejected, gaps(examples)).sum();
    const Tensor sft = -scores.scored(scores.logps, means_.sft).narrow(0, 0, pairs).sum();
    const DpoTuningConfig& tuning = config_.loss;
    const Tensor total = tuning.sft_loss_weight > 0 ? preference * tuning.preference_loss_weight + sft * tuning.sft_loss_weight
                                                    : preference * tuning.preference_loss_weight;
    result.loss = total / static_cast<double>(batch_.num_pairs);
    if (!result.loss.requires_grad()) result.loss = Tensor();  // no response has a token to learn from
    result.num_tokens = num_fed(sides);
    const NoGrad no_grad;
    const auto number = [&](double value) { return at::full({}, value, numbers); };
    const Tensor rewards = scores.ratios.detach() * tuning.ref_policy_kl_penalty;
    const Tensor better = rewards.narrow(0, 0, pairs), worse = rewards.narrow(0, pairs, pairs);
    result.sums = sums_of({number(static_cast<double>(pairs)), number(static_cast<double>(std::ssize(rows) - pairs)), preference, sft,
                           chosen.gt(rejected).sum(), chosen.sum(), rejected.sum(), ratios.square().sum(), better.sum(), worse.sum(),
                           better.gt(worse).sum(), scores.logps.narrow(0, 0, pairs).sum(), scores.logps.narrow(0, pairs, pairs).sum()});
    return result;
  }

  // As large a pass as an update's, without the reference.
  [[nodiscard]] Tensor rehearse(std::span<const int64_t> rows, const PassOptions& pass) const {
    const std::vector<ResponseRow> sides = responses(examples_of(*set_, rows));
    return sides.empty() ? Tensor() : response_logprobs(*model_, sides, pass).sum();
  }

  [[nodiscard]] RowSize size_of(int64_t row) const {
    const PreferenceExample pair = set_->get(row);
    const auto chosen = std::ssize(pair.chosen), rejected = std::ssize(pair.rejected);
    return {chosen + rejected - 2, 2, std::max(chosen, rejected) - 1, !pair.masked};
  }

 private:
  // All the better ones, then all the worse ones; pairs that are too long are left out.
  [[nodiscard]] static std::vector<ResponseRow> responses(const std::vector<PreferenceExample>& examples) {
    std::vector<ResponseRow> rows;
    for (const PreferenceExample& example : examples)
      if (!example.masked) rows.push_back({example.chosen, example.num_prompt_tokens});
    for (const PreferenceExample& example : examples)
      if (!example.masked) rows.push_back({example.rejected, example.num_prompt_tokens});
    return rows;
  }

  [[nodiscard]] DpoLossOptions loss_options() const {
    return {config_.loss.preference_loss, config_.loss.ref_policy_kl_penalty, config_.loss.label_smoothing};
  }

  // Of the given rewards.
  [[nodiscard]] Tensor gaps(const std::vector<PreferenceExample>& examples) const {
    std::vector<double> gaps;
    for (const PreferenceExample& example : examples)
      if (!example.masked) gaps.push_back(config_.loss.gt_reward_scale * (example.chosen_reward - example.rejected_reward));
    return at::tensor(gaps).to(model_->device());
  }

  DpoModelConfig config_;
  ScoreMeans means_;
  std::shared_ptr<const PreferenceDataset> set_;
  std::shared_ptr<TaskReference> reference_;
  const std::unique_ptr<Model>& model_;
  DpoBatch batch_;
};

Metrics dpo_metrics(const DpoTuningConfig& config, std::span<const double> sums) {
  Metrics metrics;
  const double pairs = sums[DpoSum::pairs];
  if (sums[DpoSum::skipped] > 0) metrics.set("skipped", sums[DpoSum::skipped]);
  if (pairs == 0) return metrics;
  const auto mean = [&](DpoSum::Index sum) { return sums[sum] / pairs; };
  metrics.set("loss", config.preference_loss_weight * mean(DpoSum::preference) + config.sft_loss_weight * mean(DpoSum::sft));
  metrics.set("preference_loss", mean(DpoSum::preference));
  metrics.set("sft_loss", mean(DpoSum::sft));
  metrics.set("acc", mean(DpoSum::correct));
  metrics.set("rewards_chosen_mean", mean(DpoSum::chosen));
  metrics.set("rewards_rejected_mean", mean(DpoSum::rejected));
  const Spread all = spread_of(sums[DpoSum::chosen] + sums[DpoSum::rejected], sums[DpoSum::squares], 2 * pairs);
  metrics.set("rewards_all_mean", all.mean);
  metrics.set("rewards_all_std", all.std);
  metrics.set("rewards/chosen", mean(DpoSum::chosen_reward));
  metrics.set("rewards/rejected", mean(DpoSum::rejected_reward));
  metrics.set("rewards/margins", mean(DpoSum::chosen_reward) - mean(DpoSum::rejected_reward));
  metrics.set("rewards/accuracies", mean(DpoSum::correct_rewards));
  metrics.set("logps/chosen", mean(DpoSum::chosen_logps));
  metrics.set("logps/rejected", mean(DpoSum::rejected_logps));
  return metrics;
}

}  // namespace

void check_dpo_config(const DpoModelConfig& config) {
  const DpoTuningConfig& tuning = config.loss;
  check_preference_weights(tuning, "model.dpo");
  check(tuning.label_smoothing == 0 || tuning.preference_loss == DpoLoss::dpo,
        "model.dpo.label_smoothing: is for preference_loss=dpo, the only one with a probability to smooth");
  check(tuning.preference_loss != DpoLoss::ipo || tuning.ref_policy_kl_penalty > 0,
        "model.dpo.ref_policy_kl_penalty: ipo needs a value above 0, because it aims at a margin of 1 / (2 x this)");
}

SupervisedTask make_dpo_task(const DpoModelConfig& config, const TaskModel& model) {
  check_bos(config.data.add_bos, model.tokenizer, model.folder, "model.data");
  const ChatRenderer chat = chat_of_model(model.folder);
  const auto reference = std::make_shared<TaskReference>(config.loss);
  SupervisedTask task =
      make_preference_task<DpoSplit>(open_preference_data(config.data, "model.data"), config, reference, [&](const Rows& rows) {
        auto set = std::make_shared<const PreferenceDataset>(rows, encoder_of(model.tokenizer, model.vocab_size), config.data,
                                                             PreferenceUse::labelled, chat);
        return std::make_shared<DpoSplit>(config, std::move(set), reference, model.weights);
      });
  task.metrics_of = [tuning = config.loss](std::span<const double> sums) { return dpo_metrics(tuning, sums); };
  return task;
}

}  // namespace kedge
