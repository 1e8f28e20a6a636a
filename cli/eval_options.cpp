#include "cli/eval_options.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <ATen/Parallel.h>

#include "kedge/config/config_overrides.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/run/device_setup.h"

namespace kedge::cli {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kUsualPrompts = 64, kUsualNew = 256;

}  // namespace

Words words_of(const std::vector<std::string>& what) {
  Words words;
  for (const std::string& word : what) (!is_folder(word) && is_override(word) ? words.overrides : words.folders).push_back(word);
  check(!words.folders.empty(), "missing the folder of a run, a checkpoint or a model");
  return words;
}

bool is_of_online_run(const EvalTarget& target) { return target.kind != PolicyKind::model; }

Policies find_policies(const EvalOptions& options, const Words& words) {
  check(!options.greedy || !options.temperature, "--greedy and --temperature: give one of them");
  StepChoice choice{.steps = {}, .every = options.every};
  if (options.steps) choice.steps = parse_whole_numbers(*options.steps, "--steps");
  Policies policies;
  std::vector<std::string> given = words.folders;
  if (options.baseline) {
    check(!is_run(*options.baseline), "--baseline: ", *options.baseline, " is a run; give one of its checkpoints");
    given.insert(given.begin(), *options.baseline);
  }
  policies.targets = find_targets(given, choice);
  if (options.baseline) {
    // A checkpoint includes the start of its run, and is the baseline itself.
    const Path folder = fs::weakly_canonical(*options.baseline);
    const auto found =
        std::find_if(policies.targets.begin(), policies.targets.end(), [&](const EvalTarget& one) { return one.folder == folder; });
    if (found != policies.targets.end()) std::rotate(policies.targets.begin(), found, found + 1);
  }
  for (const EvalTarget& target : policies.targets)
    if (is_of_online_run(target) && !policies.run) policies.run = target.run;
  return policies;
}

PolicySettings settle(const EvalOptions& options, const Words& words, const Policies& policies) {
  const bool own_rewards = options.reward || !policies.run;
  std::vector<std::string> of_rewards, others;
  for (const std::string& word : words.overrides) (own_rewards && is_about_rewards(word) ? of_rewards : others).push_back(word);
  const EvalTarget& first = policies.targets.front();
  PolicySettings settings;
  if (policies.run) {
    check_may_run(policies.run->folder, options.allow_commands);
    settings = settings_of_run(*policies.run, others);
  } else {
    settings = settings_of_model(first.base, others);
    settings.online.rollouts.num_val_samples = kUsualPrompts;
  }
  OnlineSettings& online = settings.online;
  if (own_rewards) {
    check(options.reward || !of_rewards.empty(), words.folders.front(),
          ": no run defines a reward for its answers; give --reward FILE.yaml with a section reward, or reward.sources.NAME.kind=... "
          "(docs/rewards.md)");
    online.reward = load_rewards(options.reward ? std::optional<Path>(*options.reward) : std::nullopt, of_rewards);
    online.widths.clear();
  }
  check_answerable(online.reward);
  limit_waiting(online.reward);
  choose_prompts(settings, options.prompts ? std::optional(fs::absolute(*options.prompts)) : std::nullopt, words.folders.front());
  RolloutConfig& rollouts = online.rollouts;
  RolloutSamplingConfig sampling = rollouts.val_sampling_params.value_or(rollouts.sampling_params);
  if (options.greedy || options.temperature) sampling.use_greedy = options.greedy;
  if (options.temperature) sampling.temperature = *options.temperature;
  if (options.top_k) sampling.top_k = *options.top_k;
  if (options.top_p) sampling.top_p = *options.top_p;
  rollouts.val_sampling_params = sampling;
  if (options.seed) online.model.seed = *options.seed;
  LengthConfig length = rollouts.val_length_params.value_or(rollouts.length_params);
  if (!policies.run && !length.max_length) {
    const int64_t context =
        std::min({online.model.encoder_seq_length, online.model.data.seq_length, load_model_config(settings.start).max_positions});
    rollouts.length_params.max_length = length.max_length = std::min(kUsualNew, context / 2);
  }
  if (options.max_new) length.max_length = *options.max_new;
  rollouts.val_length_params = length;
  if (options.threads) settings.compute.threads = *options.threads;
  return settings;
}

StorageOptions storage_of(const EvalOptions& options, const ComputeConfig& compute) {
  const std::string named = options.device.value_or(compute.accelerator == "gpu" ? "cuda" : compute.accelerator);
  const at::Device device = parse_device(named, options.device ? "--device" : "trainer.accelerator");
  use_device(device);
  if (device.is_cuda()) make_cuda_deterministic();
  if (compute.threads > 0) at::set_num_threads(static_cast<int>(compute.threads));
  return {options.dtype ? dtype_of(*options.dtype) : dtype_of(compute, device), device, false};
}

std::vector<int64_t> pass_ks(const EvalOptions& options) {
  check(options.pass || !options.pass_k, "--pass-k: requires --pass, the lowest reward of an answer that passes");
  if (!options.pass) return {};
  std::set<int64_t> ks = {1, options.samples};
  if (options.pass_k) {
    const std::vector<int64_t> given = parse_whole_numbers(*options.pass_k, "--pass-k");
    ks = {given.begin(), given.end()};
  }
  for (const int64_t k : ks)
    check(k >= 1 && k <= options.samples, "--pass-k: ", k, " is not from 1 to ", options.samples, ", the --samples");
  return {ks.begin(), ks.end()};
}

}  // namespace kedge::cli
