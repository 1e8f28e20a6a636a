#include "cli/named_configs.h"

#include <algorithm>
#include <array>

#include "kedge/algo/config_sections.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/reward/reward_config.h"

namespace kedge::cli {
namespace {

template <typename T>
Section default_section() {
  static T defaults;
  return describe(defaults);
}

constexpr std::array kConfigs = {
    NamedConfig{"sft", "kedge sft: supervised fine-tuning", default_section<SftConfig>},
    NamedConfig{"rm", "kedge rm: reward models", default_section<RmConfig>},
    NamedConfig{"dpo", "kedge dpo: training on pairs of a better and a worse response", default_section<DpoConfig>},
    NamedConfig{"kto", "kedge kto: training on responses marked good or bad", default_section<KtoConfig>},
    NamedConfig{"ppo", "kedge ppo: online training by PPO with a critic", default_section<PpoConfig>},
    NamedConfig{"reinforce", "kedge reinforce: online training by REINFORCE", default_section<ReinforceConfig>},
    NamedConfig{"grpo", "kedge grpo: online training by GRPO", default_section<GrpoConfig>},
    NamedConfig{"rloo", "kedge rloo: online training by RLOO", default_section<RlooConfig>},
    NamedConfig{"rs", "kedge rs: online training by rejection sampling", default_section<RsConfig>},
    NamedConfig{"serve_reward", "kedge serve reward: a reward model's server", default_section<RewardServerConfig>},
    NamedConfig{"serve_critic", "kedge serve critic: a critic's server", default_section<CriticServerConfig>},
    NamedConfig{"reward_source", "one entry of reward.sources or reward.watch, under any name", default_section<RewardSourceConfig>},
    NamedConfig{"metrics", "where a run's metrics and samples are written", default_section<MetricsConfig>},
};

}  // namespace

std::span<const NamedConfig> named_configs() { return kConfigs; }

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const NamedConfig& config : kConfigs) names.emplace_back(config.name);
  return names;
}

const NamedConfig* find_config(std::string_view name) {
  const auto found = std::find_if(kConfigs.begin(), kConfigs.end(), [&](const NamedConfig& config) { return config.name == name; });
  return found == kConfigs.end() ? nullptr : &*found;
}

}  // namespace kedge::cli
