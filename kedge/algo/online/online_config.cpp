#include "kedge/algo/online/online_config.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {

RunConfig online_run(const std::string& name, const std::string& rewards, const std::vector<std::string>& console_keys) {
  RunConfig run;
  run.name = name;
  run.metrics.console_keys = {"train_rollouts/" + rewards, "val_rollouts/" + rewards};
  run.metrics.console_keys.insert(run.metrics.console_keys.end(), console_keys.begin(), console_keys.end());
  CheckpointConfig& checkpoints = run.checkpoint_callback_params;
  checkpoints.monitor = "val_" + rewards;
  checkpoints.mode = MonitorMode::max;
  checkpoints.save_top_k = 1;
  checkpoints.filename = str("megatron_gpt-{step}-{consumed_samples}-{", name, "_optimization_step}-{epoch}-{val_", rewards, ":.3f}");
  return run;
}

namespace {

// A value, or those of a list.
Json::Array all_of(const Json& value, const std::string& key) {
  if (!value.is_array()) return {value};
  check(!value.as_array(key).empty(), key, ": an empty list");
  return value.as_array(key);
}

// A host and a port for each server; one of either goes with all of the other.
Json urls_at(const RewardEndpoint& server, const std::string& key) {
  const std::string ip = key + ".ip", port = key + ".port";
  const Json::Array hosts = all_of(server.ip, ip), ports = all_of(server.port, port);
  for (const Json& one : hosts)
    check(one.is_text() && !one.as_text(ip).empty(), ip, ": expected a host, or a list of hosts, found ", server.ip.dump());
  for (const Json& one : ports)
    check(one.is_integer() && one.as_integer(port) >= 1 && one.as_integer(port) <= 65535, port,
          ": expected a port from 1 to 65535, or a list of them, found ", server.port.dump());
  check(hosts.size() == ports.size() || hosts.size() == 1 || ports.size() == 1, port, ": ", ports.size(), " ports for ", hosts.size(),
        " hosts (", ip, "); expected one for each, or one for all");
  Json::Array urls;
  for (size_t i = 0; i < std::max(hosts.size(), ports.size()); ++i)
    urls.emplace_back(str("http://", hosts[hosts.size() == 1 ? 0 : i].as_text(ip), ":", ports[ports.size() == 1 ? 0 : i].as_integer(port)));
  return urls.size() == 1 ? urls.front() : Json(std::move(urls));
}

}  // namespace

RewardSourceConfig source_at(const RewardEndpoint& server, std::optional<int64_t> pad_to_length, const std::string& key) {
  RewardSourceConfig source;
  source.kind = RewardKind::server;
  source.url = urls_at(server, key);
  source.model_name = server.name;
  source.send = server.send;
  source.token_file = server.token_file;
  source.wait_limit = server.wait_limit;
  source.pad_to_length = pad_to_length;
  return source;
}

RewardConfig reward_of(const RewardedConfig& config) {
  RewardConfig reward = config.reward;
  check(!config.remote_rm || reward.sources.empty(),
        "remote_rm: cannot be combined with reward.sources; add the server there instead: reward.sources.NAME.kind=server "
        "reward.sources.NAME.url=http://HOST:PORT");
  if (reward.sources.empty()) {
    const RemoteRewardConfig remote = config.remote_rm.value_or(RemoteRewardConfig());
    reward.sources.emplace("remote_rm", source_at(remote.reward_model, remote.pad_to_length, "remote_rm.reward_model"));
  }
  check_rewards(reward);
  return reward;
}

SentWidths widths_of(const OnlineConfig& config) {
  SentWidths widths;
  const auto add = [&](const std::string& section, const std::map<std::string, RewardSourceConfig>& sources) {
    for (const auto& [name, source] : sources)
      if (source.pad_to_length) widths[str(section, ".", name, ".pad_to_length")] = *source.pad_to_length;
  };
  add("reward.sources", config.reward.sources);
  add("reward.watch", config.reward.watch);
  return widths;
}

SentWidths widths_of(const RewardedConfig& config) {
  SentWidths widths = widths_of(static_cast<const OnlineConfig&>(config));
  if (config.remote_rm && config.remote_rm->pad_to_length) widths["remote_rm.pad_to_length"] = *config.remote_rm->pad_to_length;
  return widths;
}

void check_widths(const SentWidths& widths, int64_t context) {
  for (const auto& [key, width] : widths)
    check(width >= context, key, ": ", width, " is less than the maximum length of a prompt and its answer, ", context,
          " (model.encoder_seq_length)");
}

std::string rollout_identity(RewardConfig reward, DataConfig data, RolloutConfig rollouts) {
  std::string identity;
  const auto add = [&](const Section& section) { identity += to_json(section_node(section)).dump(); };
  add(describe(reward));
  add(describe(data));
  add(describe(rollouts.sampling_params));
  add(describe(rollouts.length_params));
  // Recorded log-probabilities have it. Records of older programs have 1.
  if (rollouts.temperature() != 1) identity += str("log-probabilities at ", rollouts.temperature());
  return identity;
}

}  // namespace kedge
