#include "kedge/algo/online_config.h"

#include "kedge/core/error.h"

namespace kedge {

RunConfig online_run(const std::string& name, const std::string& rewards) {
  RunConfig run;
  run.name = name;
  run.metrics.console_keys = {"train_rollouts/" + rewards, "val_rollouts/" + rewards};
  CheckpointConfig& checkpoints = run.checkpoint_callback_params;
  checkpoints.monitor = "val_" + rewards;
  checkpoints.mode = MonitorMode::max;
  checkpoints.save_top_k = 1;
  checkpoints.filename = str("megatron_gpt-{step}-{consumed_samples}-{", name, "_optimization_step}-{epoch}-{val_", rewards, ":.3f}");
  return run;
}

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

void check_widths(const OnlineConfig& config, int64_t context) {
  const auto check_width = [&](const std::string& key, std::optional<int64_t> width) {
    check(!width || *width >= context, key, ".pad_to_length: ", width.value_or(0), " is less than prompts and answers may have together, ",
          context, " (model.encoder_seq_length)");
  };
  if (config.remote_rm) check_width("remote_rm", config.remote_rm->pad_to_length);
  for (const auto& [name, source] : config.reward.sources) check_width("reward.sources." + name, source.pad_to_length);
  for (const auto& [name, source] : config.reward.watch) check_width("reward.watch." + name, source.pad_to_length);
}

std::string rollout_identity(const OnlineConfig& config, DataConfig data, RolloutConfig rollouts) {
  RewardConfig reward = reward_of(config);
  std::string identity;
  const auto add = [&](const Section& section) { identity += to_json(section_node(section)).dump(); };
  add(describe(reward));
  add(describe(data));
  add(describe(rollouts.sampling_params));
  add(describe(rollouts.length_params));
  return identity;
}

}  // namespace kedge
