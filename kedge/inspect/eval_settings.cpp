#include "kedge/inspect/eval_settings.h"

#include <filesystem>

#include "kedge/config/config.h"
#include "kedge/config/config_overrides.h"
#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/run/reinforce_job.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

// The keys that rewards can come from, in a file that may be a complete configuration of a trainer.
struct RewardFile {
  RewardConfig reward;
  std::optional<RemoteRewardConfig> remote_rm;

  void fields(auto&& field) {
    field("reward", reward, "where rewards come from");
    field("remote_rm", remote_rm, "a reward server");
    field.ignored({"name", "defaults", "trainer", "model", "exp_manager", "pretrained_checkpoint", "rollouts", "remote_critic_rm",
                   "local_critic", "inference"},
                  "only the rewards in this file are used");
  }
};

PolicySettings load_settings(OnlineJob& job, const std::optional<Path>& file, const std::vector<std::string>& overrides) {
  PolicySettings settings;
  load_config(job.section(), file, overrides);
  if (file) take_older_values(job.section(), to_json(parse_yaml(read_text(*file), file->string())));
  settings.online = job.settings();
  settings.compute = job.compute();
  const std::string& start = job.config().pretrained_checkpoint.restore_from_path;
  settings.start = fs::weakly_canonical(fs::absolute(find_model_folder(start, "pretrained_checkpoint.restore_from_path")));
  std::optional<std::string>& adapter = settings.online.model.peft.restore_from_path;
  if (adapter) adapter = fs::absolute(*adapter).string();
  return settings;
}

}  // namespace

InFolder::InFolder(const Path& folder) : before_(fs::current_path()) { fs::current_path(folder); }
InFolder::~InFolder() {
  std::error_code gone;  // a folder that was removed meanwhile is not an error
  fs::current_path(before_, gone);
}

PolicySettings settings_of_run(const RunOnDisk& run, const std::vector<std::string>& overrides) {
  const std::unique_ptr<OnlineJob> job = make_online_job(run.algorithm);
  ensure(job != nullptr, "settings of a run of ", run.algorithm);
  const bool there = is_folder(run.started_in);
  if (!there)
    log_warn(run.folder.string(), ": was started in ", run.started_in.string(),
             ", which does not exist; its relative paths are resolved from the current folder");
  const Path home = there ? run.started_in : fs::current_path();
  const InFolder in_folder(home);
  PolicySettings settings = load_settings(*job, run.config, overrides);
  settings.home = home;
  return settings;
}

PolicySettings settings_of_model(const Path& folder, const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"pretrained_checkpoint.restore_from_path=" + Json(folder.string()).dump()};
  all.insert(all.end(), overrides.begin(), overrides.end());
  ReinforceJob job;
  PolicySettings settings = load_settings(job, std::nullopt, all);
  settings.home = fs::current_path();
  return settings;
}

bool is_about_rewards(const std::string& override) {
  const std::string key = parse_override(override).key;
  const auto [first, rest] = split_path(key);
  return first == "reward" || first == "remote_rm";
}

RewardConfig load_rewards(const std::optional<Path>& file, const std::vector<std::string>& overrides) {
  RewardFile found;
  load_config(describe(found), file, overrides);
  check(!found.reward.sources.empty() || found.remote_rm, file ? file->string() : "the command line",
        ": no reward is configured; expected reward.sources.NAME.kind and what that kind needs, or remote_rm (docs/rewards.md)");
  RewardedConfig whole;
  whole.reward = found.reward;
  whole.remote_rm = found.remote_rm;
  return reward_of(whole);
}

void check_answerable(const RewardConfig& reward) {
  for (const auto* sources : {&reward.sources, &reward.watch})
    for (const auto& [name, source] : *sources)
      check(source.kind != RewardKind::critic, "the run's reward \"", name,
            "\" came from its critic's server, which only serves the run that trains it; configure another reward: --reward FILE.yaml, or "
            "serve the reward model alone (kedge serve reward) and give remote_rm.host and remote_rm.port in such a file");
}

void limit_waiting(RewardConfig& reward) {
  constexpr double kSeconds = 60;
  for (auto* sources : {&reward.sources, &reward.watch})
    for (auto& [name, source] : *sources)
      if (source.kind == RewardKind::server && !source.wait_limit) source.wait_limit = kSeconds;
}

void choose_prompts(PolicySettings& settings, const std::optional<Path>& file, const std::string& of) {
  DataConfig& data = settings.online.model.data;
  Json files;
  if (file) {
    files = Json(Json::Array{Json(file->string())});
  } else {
    check(!data.data_prefix.is_null(), of,
          ": no prompts are configured; give --prompts FILE, lines with \"text\" or \"prompt\" (docs/data.md)");
    // Training files may no longer exist.
    if (const Json* validation = data.data_prefix.find("validation")) files = *validation;
    if (files.is_null()) return;
  }
  data.data_prefix = Json(Json::Object{{"train", files}, {"validation", files}, {"test", files}});
  data.splits_string.reset();
}

}  // namespace kedge
