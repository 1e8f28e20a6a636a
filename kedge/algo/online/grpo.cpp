#include "kedge/algo/online/grpo.h"

namespace kedge {

void set_tuning_defaults(OnlineModelConfig& model) {
  model.global_batch_size = 0;
  model.optim.lr = 1e-6;
  model.optim.betas = {0.9, 0.999};
  model.optim.weight_decay = 0;
  model.optim.sched.name = ScheduleKind::constant;
  model.optim.sched.warmup_steps = 0;
}

GrpoLoopConfig::GrpoLoopConfig() {
  num_rollouts_per_prompt = 8;
  initial_policy_kl_penalty = 0;
  baseline = Baseline::group_norm;
  ratio = RatioKind::clip;
  unfinished = Unfinished::keep;
  loss_norm = LossNorm::tokens;
}

RlooLoopConfig::RlooLoopConfig() {
  num_rollouts_per_prompt = 2;
  initial_policy_kl_penalty = 0.05;
  kl_estimator = KlEstimator::k1;
  kl_reduce = KlReduce::sum;
  baseline = Baseline::rloo;
  ratio = RatioKind::clip;
  sequence_level_importance_ratios = RatioLevel::product;
  unfinished = Unfinished::keep;
  loss_norm = LossNorm::sequences;
}

}  // namespace kedge
