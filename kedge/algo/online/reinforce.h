#pragma once
// REINFORCE: every prompt is answered several times, and an answer becomes more likely the better it is than the others to the same
// prompt (RLOO). Other baselines and a clipped ratio are options; group_norm with clip is known as GRPO.
#include <array>
#include <memory>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/online_trainer.h"

namespace kedge {

enum class RatioKind { none, clip };
constexpr auto enum_names(RatioKind) { return std::array<EnumName<RatioKind>, 2>{{{"none", RatioKind::none}, {"clip", RatioKind::clip}}}; }

// Keys of `trainer.reinforce`.
struct ReinforceLoopConfig : OnlineLoopConfig, KlConfig {
  static constexpr const char* kName = "reinforce";
  int64_t num_rollouts_per_prompt = 4;
  KlReduce kl_reduce = KlReduce::mean;
  Baseline baseline = Baseline::rloo;
  RatioKind ratio = RatioKind::none;
  double ratio_eps = 0.2;
  Unfinished unfinished = Unfinished::drop;
  LossNorm loss_norm = LossNorm::reference;
  int64_t reinforce_epochs = 1;

  void fields(auto&& field) {
    OnlineLoopConfig::fields(field);
    field("num_rollouts_per_prompt", num_rollouts_per_prompt, "responses sampled per prompt", at_least(1));
    KlConfig::fields(field);
    field("kl_reduce", kl_reduce, "KL penalty of a response: mean or sum over its tokens");
    field("baseline", baseline,
          "what is subtracted from a reward: mean of the prompt's other responses (rloo), of all its responses (group_mean), the same and "
          "then divided by their standard deviation (group_norm), mean of the step (batch_mean), or nothing (none)");
    field("ratio", ratio, "none: plain REINFORCE. clip: PPO's clipped ratio to the policy before the step's updates");
    field("ratio_eps", ratio_eps, "clip range of the ratio around 1", above(0));
    field("unfinished", unfinished,
          "responses cut off at max_length: excluded from baseline and loss (drop), or treated like others (keep)");
    field("loss_norm", loss_norm, kLossNormHelp);
    field("reinforce_epochs", reinforce_epochs, "passes over the responses of a step", at_least(1));
    field.refused("discount_factor", "a response has a single reward, so there is nothing to discount", {"1", "1.0"});
  }
};

struct ReinforceConfig : OnlineRunConfig<ReinforceLoopConfig, RolloutConfig, RewardedConfig> {
  ReinforceConfig();
  void fields(auto&& field) {
    OnlineRunConfig::fields(field);
    field.alias("model.reinforce.ratio_eps", "trainer.reinforce.ratio_eps");
  }
};

[[nodiscard]] OnlineSettings settings_of(const ReinforceConfig& config);

[[nodiscard]] std::unique_ptr<Algorithm> make_algorithm(const ReinforceConfig& config);

// Not thread-safe.
class ReinforceTrainer final : public OnlineTrainer {
 public:
  ReinforceTrainer(OnlineParts parts, const ReinforceConfig& config)
      : OnlineTrainer(std::move(parts), settings_of(config), make_algorithm(config)) {}

  // KL, baselines and advantages: what is trained on.
  void generate_reinforce_data(OnlineStep& step) { score(step); }
};

}  // namespace kedge
