#pragma once
// REINFORCE with NeMo-Aligner's defaults: an answer is compared with the others to the same prompt (RLOO), without a ratio.
#include "kedge/algo/online/policy_gradient.h"

namespace kedge {

// Keys of `trainer.reinforce`.
struct ReinforceLoopConfig : PolicyGradientLoop {
  static constexpr const char* kName = "reinforce";

  static void set_defaults(OnlineModelConfig& /*model*/) {}
  void fields(auto&& field) { fields_of(field, "reinforce_epochs", "reference_policy_kl_penalty"); }
};

using ReinforceConfig = PolicyGradientConfig<ReinforceLoopConfig>;

// Not thread-safe.
class ReinforceTrainer final : public OnlineTrainer {
 public:
  ReinforceTrainer(OnlineParts parts, const ReinforceConfig& config)
      : OnlineTrainer(std::move(parts), settings_of(config), make_algorithm(config)) {}

  // KL, baselines and advantages: what is trained on.
  void generate_reinforce_data(OnlineStep& step) { score(step); }
};

}  // namespace kedge
