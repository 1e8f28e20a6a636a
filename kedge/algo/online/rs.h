#pragma once
// Rejection sampling: every prompt is answered several times, and the policy is trained on the best of the answers.
#include <memory>

#include "kedge/algo/online/online_trainer.h"

namespace kedge {

// Keys of `trainer.rs`.
struct RsLoopConfig : OnlineLoopConfig {
  static constexpr const char* kName = "rs";
};

// Keys of `model.rs`.
struct RsRolloutConfig : RolloutConfig {
  int64_t num_rollouts_per_prompt = 4, top_n_rollouts = 1;

  void fields(auto&& field) {
    field("num_rollouts_per_prompt", num_rollouts_per_prompt, "responses sampled per prompt", at_least(1));
    field("top_n_rollouts", top_n_rollouts, "how many of them, the best ones, are trained on", at_least(1));
    RolloutConfig::fields(field);
  }
};

struct RsConfig : OnlineRunConfig<RsLoopConfig, RsRolloutConfig, RewardedConfig> {
  RsConfig();
};

// UsageError if more answers are chosen than there are.
[[nodiscard]] OnlineSettings settings_of(const RsConfig& config);

[[nodiscard]] std::unique_ptr<Algorithm> make_algorithm(const RsConfig& config);

// Not thread-safe.
class RSTrainer final : public OnlineTrainer {
 public:
  RSTrainer(OnlineParts parts, const RsConfig& config) : OnlineTrainer(std::move(parts), settings_of(config), make_algorithm(config)) {}

  // Which responses are trained on. One whose reward failed is worse than any other; if too few are left, their places stay empty.
  void generate_rs_data(OnlineStep& step) { score(step); }
};

}  // namespace kedge
