#pragma once
// GRPO and RLOO: the policy-gradient family with the defaults that people expect under these names. TRL's where it has them.
#include "kedge/algo/online/policy_gradient.h"

namespace kedge {

// Both are tuned with AdamW at a constant, small rate, and learn once from each step's responses.
void set_tuning_defaults(OnlineModelConfig& model);

// Keys of `trainer.grpo`.
struct GrpoLoopConfig : PolicyGradientLoop {
  static constexpr const char* kName = "grpo";

  GrpoLoopConfig();
  static void set_defaults(OnlineModelConfig& model) { set_tuning_defaults(model); }
  void fields(auto&& field) { fields_of(field, "grpo_epochs", "reference_policy_kl_penalty"); }
};
using GrpoConfig = PolicyGradientConfig<GrpoLoopConfig>;

// Keys of `trainer.rloo`.
struct RlooLoopConfig : PolicyGradientLoop {
  static constexpr const char* kName = "rloo";

  RlooLoopConfig();
  static void set_defaults(OnlineModelConfig& model) { set_tuning_defaults(model); }
  void fields(auto&& field) { fields_of(field, "rloo_epochs", "initial_policy_kl_penalty"); }
};
using RlooConfig = PolicyGradientConfig<RlooLoopConfig>;

}  // namespace kedge
