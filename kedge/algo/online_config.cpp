#include "kedge/algo/online_config.h"

#include "kedge/core/error.h"

namespace kedge {

RewardConfig reward_of(const OnlineConfig& config) {
  RewardConfig reward = config.reward;
  check(!config.remote_rm || reward.sources.empty(),
        "remote_rm: is the one source of rewards; beside reward.sources give it a place there: reward.sources.NAME.kind=server "
        "reward.sources.NAME.url=http://HOST:PORT");
  if (reward.sources.empty()) {
    const RemoteRewardConfig remote = config.remote_rm.value_or(RemoteRewardConfig());
    RewardSourceConfig source;
    source.kind = RewardKind::server;
    source.url = str("http://", remote.reward_model.ip, ":", remote.reward_model.port);
    source.model_name = remote.reward_model.name;
    source.pad_to_length = remote.pad_to_length;
    reward.sources.emplace("remote_rm", std::move(source));
  }
  check_rewards(reward);
  return reward;
}

std::string rollout_identity(RewardConfig reward, RolloutConfig rollouts) {
  return to_json(section_node(describe(reward))).dump() + to_json(section_node(describe(rollouts.sampling_params))).dump() +
         to_json(section_node(describe(rollouts.length_params))).dump();
}

}  // namespace kedge
