#include "kedge/algo/supervised/rm.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/data/sets/regression_dataset.h"
#include "kedge/text/chat/model_chat.h"

namespace kedge {
namespace {

constexpr size_t kRankingSums = 6, kRegressionSums = 2;
constexpr int64_t kScoredAttribute = 4;  // of the losses with a strength: helpfulness, in NeMo-Aligner's order of nine

Pooling pooling_of(const RmModelConfig& config) { return config.use_avg_pool ? Pooling::mean : Pooling::last; }

Tensor double_sums(std::vector<Tensor> parts) {
  const NoGrad no_grad;
  for (Tensor& part : parts) part = part.detach().to(at::kDouble).reshape({1});
  return at::cat(parts);
}

// Rewards of both sides in one pass: all the better ones, then all the worse ones.
struct PairRewards {
  Tensor chosen, rejected;
  int64_t num_tokens = 0;
};

PairRewards score_pairs(const Model& model, Pooling pooling, const std::vector<PreferenceExample>& pairs, const PassOptions& pass) {
  std::vector<TokenIds> rows;
  for (const PreferenceExample& pair : pairs) rows.push_back(pair.chosen);
  for (const PreferenceExample& pair : pairs) rows.push_back(pair.rejected);
  const PackedBatch batch = pack_rows(rows, model.device());
  const Tensor scores = row_scores(model, batch, pooling, pass).select(1, 0).to(at::kDouble);
  const auto count = static_cast<int64_t>(pairs.size());
  return {scores.narrow(0, 0, count), scores.narrow(0, count, count), batch.num_tokens()};
}

std::vector<PreferenceExample> pairs_of(const PreferenceDataset& set, std::span<const int64_t> rows) {
  std::vector<PreferenceExample> pairs;
  for (const int64_t row : rows) pairs.push_back(set.get(row));
  return pairs;
}

RowsResult rank(const Model& model, Pooling pooling, const std::vector<PreferenceExample>& pairs, const PassOptions& pass) {
  const PairRewards rewards = score_pairs(model, pooling, pairs, pass);
  RowsResult result;
  result.loss = ranking_losses(rewards.chosen, rewards.rejected).mean();
  result.num_tokens = rewards.num_tokens;
  const auto count = static_cast<double>(pairs.size());
  const Tensor chosen = rewards.chosen.detach(), rejected = rewards.rejected.detach();
  result.sums = double_sums({result.loss * count, chosen.gt(rejected).sum(), at::full({1}, count, chosen.options()), chosen.sum(),
                             rejected.sum(), chosen.square().sum() + rejected.square().sum()});
  return result;
}

SupervisedData ranking_data(const std::string& name, const std::shared_ptr<const PreferenceDataset>& set, const RmModelConfig& config,
                            const std::unique_ptr<Model>& model) {
  return {name,
          set->size(),
          config.data.validation_drop_last,
          0,
          0,
          [set, &model, pooling = pooling_of(config)](std::span<const int64_t> rows, const PassOptions& pass) {
            return rank(*model, pooling, pairs_of(*set, rows), pass);
          },
          [set](int64_t row) {
            const PreferenceExample pair = set->get(row);
            const auto chosen = static_cast<int64_t>(pair.chosen.size()), rejected = static_cast<int64_t>(pair.rejected.size());
            return RowSize{chosen + rejected, 2, std::max(chosen, rejected)};
          }};
}

// Texts with numbers.
struct LabelledRows {
  std::vector<TokenIds> rows;
  Tensor labels;  // [rows, attributes]
  bool teaches = false;
};

// Does it have a label that is not masked?
bool is_labelled(const RegressionExample& example, const RegressionConfig& config) {
  return !example.masked &&
         std::any_of(example.labels.begin(), example.labels.end(), [&](double label) { return label != config.loss_mask_val; });
}

LabelledRows labelled_rows(const RegressionDataset& set, std::span<const int64_t> indices, const RegressionConfig& config,
                           at::Device device) {
  LabelledRows all;
  std::vector<double> labels;
  // A pair needs both its texts.
  const bool is_pair = config.loss_func != PreferenceLoss::regression;
  all.teaches = is_pair;
  for (const int64_t index : indices) {
    const RegressionExample example = set.get(index);
    all.rows.push_back(example.ids);
    all.teaches = is_pair ? all.teaches && !example.masked : all.teaches || is_labelled(example, config);
    for (const double label : example.labels) labels.push_back(example.masked ? config.loss_mask_val : label);
  }
  all.labels = at::tensor(labels).view({static_cast<int64_t>(indices.size()), config.num_attributes}).to(device);
  return all;
}

// The loss of answers A and B.
Tensor pair_loss(const RegressionConfig& config, const Tensor& scores, const Tensor& labels) {
  const double label = labels[0][0].item<double>();
  check(std::abs(label) <= 3 && label == std::round(label), "regression.loss_func: expected a first label from -3 to 3, found ", label);
  return strength_loss(config.loss_func, scores[0][kScoredAttribute], scores[1][kScoredAttribute], label);
}

SupervisedData regression_data(const std::string& name, const std::shared_ptr<const RegressionDataset>& set, const RmModelConfig& config,
                               const std::unique_ptr<Model>& model) {
  const auto run = [set, &model, regression = config.regression, pooling = pooling_of(config)](std::span<const int64_t> indices,
                                                                                               const PassOptions& pass) {
    const LabelledRows rows = labelled_rows(*set, indices, regression, model->device());
    RowsResult result;
    if (!rows.teaches) {
      result.sums = at::zeros({static_cast<int64_t>(kRegressionSums)}, rows.labels.options().dtype(at::kDouble));
      return result;
    }
    const PackedBatch batch = pack_rows(rows.rows, model->device());
    const Tensor scores = row_scores(*model, batch, pooling, pass).to(at::kDouble);
    result.loss = regression.loss_func == PreferenceLoss::regression ? regression_loss(scores, rows.labels, regression.loss_mask_val)
                                                                     : pair_loss(regression, scores, rows.labels);
    result.sums = double_sums({result.loss, at::ones({1}, scores.options())});
    result.num_tokens = batch.num_tokens();
    return result;
  };
  const auto size_of = [set, regression = config.regression](int64_t row) {
    const RegressionExample example = set->get(row);
    return RowSize{std::ssize(example.ids), 1, std::ssize(example.ids), is_labelled(example, regression)};
  };
  return {name, set->size(), config.data.validation_drop_last, 0, 0, run, size_of};
}

// The rewards of the first validation pairs.
std::vector<SampleTable> pair_samples(const Model& model, Pooling pooling, const PreferenceDataset& set, const Tokenizer& tokenizer,
                                      int64_t count) {
  std::vector<PreferenceExample> pairs;
  for (int64_t i = 0; i < std::min(count, set.size()); ++i) pairs.push_back(set.get(i));
  const PairRewards rewards = score_pairs(model, pooling, pairs, {});
  SampleTable table{"validation", {}};
  for (size_t i = 0; i < pairs.size(); ++i) {
    // What both sides begin with is the prompt.
    const TokenIds &chosen = pairs[i].chosen, &rejected = pairs[i].rejected;
    const auto common = std::mismatch(chosen.begin(), chosen.end(), rejected.begin(), rejected.end());
    const auto row = static_cast<int64_t>(i);
    table.rows.push_back({.prompt = tokenizer.decode_text(TokenIds(chosen.begin(), common.first)),
                          .response = tokenizer.decode_text(TokenIds(common.first, chosen.end())),
                          .reward = rewards.chosen[row].item<double>(),
                          .extra = {{"rejected", tokenizer.decode_text(TokenIds(common.second, rejected.end()))},
                                    {"rejected_reward", rewards.rejected[row].item<double>()}}});
  }
  return {std::move(table)};
}

SupervisedTask ranking_task(const RmModelConfig& config, const TaskModel& model, const ChatRenderer& chat) {
  SupervisedTask task;
  task.num_sums = kRankingSums;
  task.metrics_of = ranking_metrics;
  for (auto& [split, rows] : open_preference_data(config.data, "model.data")) {
    if (split == "test") continue;
    const auto set = std::make_shared<const PreferenceDataset>(rows, encoder_of(model.tokenizer, model.vocab_size), config.data,
                                                               PreferenceUse::ranking, chat);
    SupervisedData data = ranking_data(split, set, config, model.weights);
    if (split == "validation" && config.num_samples > 0)
      task.samples = [set, &weights = model.weights, &tokenizer = model.tokenizer, pooling = pooling_of(config),
                      count = config.num_samples] { return pair_samples(*weights, pooling, *set, tokenizer, count); };
    split == "train" ? void(task.train = std::move(data)) : task.validation.push_back(std::move(data));
  }
  return task;
}

SupervisedTask regression_task(const RmModelConfig& config, const TaskModel& model, const ChatRenderer& chat) {
  SupervisedTask task;
  task.num_sums = kRegressionSums;
  task.metrics_of = [](std::span<const double> sums) { return sums[1] == 0 ? Metrics() : Metrics{{"loss", sums[0] / sums[1]}}; };
  const int64_t rows_per_example = config.regression.loss_func == PreferenceLoss::regression ? 1 : 2;  // answers A and B of one prompt
  for (auto& [split, rows] : open_data(config.data, "model.data", rows_per_example)) {
    if (split == "test") continue;
    const auto set = std::make_shared<const RegressionDataset>(rows, encoder_of(model.tokenizer, model.vocab_size), config.data,
                                                               config.regression.num_attributes, chat);
    SupervisedData data = regression_data(split, set, config, model.weights);
    split == "train" ? void(task.train = std::move(data)) : task.validation.push_back(std::move(data));
  }
  return task;
}

}  // namespace

Metrics ranking_metrics(std::span<const double> sums) {
  const double pairs = sums[2], rewards = 2 * pairs, mean = (sums[3] + sums[4]) / rewards;
  return {{"loss", sums[0] / pairs},
          {"acc", sums[1] / pairs},
          {"weights", pairs},
          {"rewards_chosen_mean", sums[3] / pairs},
          {"rewards_rejected_mean", sums[4] / pairs},
          {"rewards_margin", (sums[3] - sums[4]) / pairs},
          {"rewards_all_mean", mean},
          {"rewards_all_std", std::sqrt(std::max(0.0, (sums[5] - rewards * mean * mean) / (rewards - 1)))}};
}

void check_rm_config(const RmConfig& config) {
  const RegressionConfig& regression = config.model.regression;
  if (config.model.reward_model_type == RewardModelType::binary_ranking) {
    check(regression.num_attributes == 1, "model.regression.num_attributes: ", regression.num_attributes,
          " attributes; a ranking model has one. model.reward_model_type=regression has several");
    check(regression.loss_func == PreferenceLoss::regression, "model.regression.loss_func: is for model.reward_model_type=regression");
    return;
  }
  if (regression.loss_func == PreferenceLoss::regression) return;
  check(config.model.micro_batch_size == 2, "model.micro_batch_size: this loss_func needs 2, answers A and B of one prompt; found ",
        config.model.micro_batch_size);
  check(regression.num_attributes > kScoredAttribute, "model.regression.num_attributes: this loss_func uses attribute ", kScoredAttribute,
        " (from 0), found ", regression.num_attributes, " attributes");
  check(!config.trainer.loop.train_random_sampler,
        "trainer.rm.train_random_sampler: must be false for this loss_func, or A and B would be separated");
  check(!config.model.data.drop_over_long,
        "model.data.drop_over_long: must be false for this loss_func, or a row that is left out would separate the pairs after it");
}

SupervisedTask make_rm_task(const RmModelConfig& config, const TaskModel& model) {
  check_bos(config.data.add_bos, model.tokenizer, model.folder, "model.data");
  const ChatRenderer chat = chat_of_model(model.folder);
  return config.reward_model_type == RewardModelType::binary_ranking ? ranking_task(config, model, chat)
                                                                     : regression_task(config, model, chat);
}

}  // namespace kedge
