#include "kedge/critic/serve_config.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

RewardScorerOptions options_of(const AttributesConfig& attributes, RewardModelType type, const RewardStandardization& standardization) {
  RewardScorerOptions options;
  options.merge_attributes = attributes.merge_attributes;
  if (attributes.merge_attributes) options.attribute_weights = attributes.attribute_weights.value_or(std::vector<double>());
  options.standardization = standardization_of(standardization);
  options.is_regression = type == RewardModelType::regression;
  return options;
}

// What a pass may take is said in rows of full length; without padding, more of the shorter ones fit into it.
int64_t pass_tokens(const auto& model) { return model.forward_micro_batch_size * model.encoder_seq_length; }

}  // namespace

CriticServerConfig::CriticServerConfig() {
  exp_manager.name = "critic";
  exp_manager.metrics.console_keys = {"train/loss", "train/lr", "train/grad_norm"};
}

std::vector<int64_t> preferred_batch_sizes(const Json& micro_batch_size, const std::string& key) {
  std::vector<int64_t> sizes;
  const auto add = [&](const Json& size) {
    check(size.is_integer() && size.as_integer(key) > 0, key, ": expected a number of rows, or a list of them, found ",
          micro_batch_size.dump());
    sizes.push_back(size.as_integer(key));
  };
  if (micro_batch_size.is_array()) {
    for (const Json& size : micro_batch_size.as_array(key)) add(size);
  } else {
    add(micro_batch_size);
  }
  check(!sizes.empty(), key, ": an empty list");
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Standardization standardization_of(const RewardStandardization& config) {
  if (!config.enable) return {};
  check(config.mean && config.std, "model.reward_standardization: mean and std are required if it is enabled");
  return {true, *config.mean, *config.std};
}

RewardScorerOptions scorer_options(const RewardServerConfig::Model& model) {
  RewardScorerOptions options = options_of(model.regression, model.reward_model_type, model.reward_standardization);
  options.max_tokens = pass_tokens(model);
  return options;
}

RewardScorerOptions scorer_options(const CriticServerConfig::Model& model) {
  RewardScorerOptions options = options_of(model.regression, model.reward_model_type, model.reward_standardization);
  options.is_regression = false;  // its attributes are one reward, on the scale of its values
  options.max_tokens = pass_tokens(model);
  return options;
}

CriticOptions critic_options(const CriticServerConfig& config) {
  const CriticServerConfig::Model& model = config.model;
  check(model.regression.merge_attributes, "model.regression.merge_attributes: must be true, a critic returns one value per token");
  CriticOptions options;
  options.micro_batch_size = model.micro_batch_size;
  options.global_batch_size = model.global_batch_size;
  options.forward_tokens = pass_tokens(model);
  options.loss_clip_val = model.loss_clip_val;
  options.standardization = standardization_of(model.reward_standardization);
  options.attribute_weights = model.regression.attribute_weights.value_or(std::vector<double>());
  options.optim = model.optim;
  options.update = config.trainer.ppo;
  options.max_steps = config.trainer.ppo.max_steps;
  options.checkpoint_activations = model.activations_checkpoint_granularity == Recompute::full;
  options.seed = static_cast<uint64_t>(model.seed);
  if (config.trainer.ppo.combine_rm_and_critic_server) options.rewards = scorer_options(model);
  return options;
}

}  // namespace kedge
