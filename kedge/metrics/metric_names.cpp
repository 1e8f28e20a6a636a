#include "kedge/metrics/metric_names.h"

#include <algorithm>
#include <span>
#include <string>

namespace kedge {
namespace {

// A metric's own name, and what TRL and verl call it; empty: they have none.
struct KnownElsewhere {
  std::string_view own, trl, verl;
  bool is_complement = false;  // theirs is 1 - ours
};

// In train_rollouts/; those in val_rollouts/ have TRL's prefix for evaluations, and no fixed name in verl.
constexpr std::array kOfRollouts = {
    KnownElsewhere{"rewards", "reward", "critic/score/mean"},
    KnownElsewhere{"rewards_std", "reward_std", ""},
    KnownElsewhere{"groups_without_spread", "frac_reward_zero_std", ""},
    KnownElsewhere{"init_policy_kl", "kl", "actor/reward_kl_penalty"},
    KnownElsewhere{"entropy", "entropy", "actor/entropy"},
    KnownElsewhere{"generation_length", "completions/mean_length", "response_length/mean"},
    KnownElsewhere{"generation_length_min", "completions/min_length", "response_length/min"},
    KnownElsewhere{"generation_length_max", "completions/max_length", "response_length/max"},
    KnownElsewhere{"fraction_of_samples_properly_ended", "completions/clipped_ratio", "response_length/clip_ratio", true},
    KnownElsewhere{"prompt_lengths", "", "prompt_length/mean"},
    KnownElsewhere{"logprob_gap_mean", "sampling/sampling_logp_difference/mean", ""},
    KnownElsewhere{"logprob_gap_max", "sampling/sampling_logp_difference/max", ""},
    KnownElsewhere{"critic_loss", "", "critic/vf_loss"},
};

constexpr std::array kOfOthers = {
    KnownElsewhere{"train_optim/loss", "loss", ""},
    KnownElsewhere{"train_optim/lr", "learning_rate", "actor/lr"},
    KnownElsewhere{"train_optim/grad_norm", "grad_norm", "actor/grad_norm"},
    KnownElsewhere{"train_optim/clip_fraction", "clip_ratio/region_mean", "actor/pg_clipfrac"},
    KnownElsewhere{"train_optim/ppo_clip_fraction", "clip_ratio/region_mean", "actor/pg_clipfrac"},
    KnownElsewhere{"train_optim/loss_kl", "kl", "actor/kl_loss"},
    KnownElsewhere{"train/loss", "loss", ""},
    KnownElsewhere{"train/lr", "learning_rate", ""},
    KnownElsewhere{"train/grad_norm", "grad_norm", ""},
    KnownElsewhere{"train/epoch", "epoch", "training/epoch"},
    KnownElsewhere{"train/step_time", "step_time", "timing_s/step"},
    KnownElsewhere{"timers/generate", "", "timing_s/gen"},
    KnownElsewhere{"timers/logprobs", "", "timing_s/old_log_prob"},
    KnownElsewhere{"timers/init_logprobs", "", "timing_s/ref"},
    KnownElsewhere{"timers/train_time", "", "timing_s/update_actor"},
    KnownElsewhere{"timers/validation_time", "", "timing_s/testing"},
};

const KnownElsewhere* find_known(std::span<const KnownElsewhere> table, std::string_view own) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const KnownElsewhere& entry) { return entry.own == own; });
  return found == table.end() ? nullptr : &*found;
}

bool take_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

// DPO and KTO log these under TRL's names, after the name of their split.
bool is_preference_number(std::string_view name) { return name.starts_with("rewards/") || name.starts_with("logps/") || name == "kl"; }

}  // namespace

Metrics as_known_elsewhere(const Metrics& metrics, MetricNames names) {
  Metrics known;
  if (names == MetricNames::kedge) return known;
  const bool is_trl = names == MetricNames::trl;
  for (const auto& [own, value] : metrics) {
    std::string_view name = own;
    const bool is_validation = take_prefix(name, "val_rollouts/");
    if (is_validation && !is_trl) continue;
    const bool is_rollout = is_validation || take_prefix(name, "train_rollouts/");
    const std::string prefix = is_validation ? "eval_" : "";
    if (is_rollout && is_trl && name.starts_with("rewards/")) {
      known.set(prefix + std::string(name) + "/mean", value);
      continue;
    }
    if (std::string_view number = name; is_trl && take_prefix(number, "train/") && is_preference_number(number)) {
      known.set(number, value);
      continue;
    }
    if (std::string_view number = name; is_trl && take_prefix(number, "validation/")) {
      if (number == "loss" || is_preference_number(number)) known.set("eval_" + std::string(number), value);
      continue;
    }
    const KnownElsewhere* entry = is_rollout ? find_known(kOfRollouts, name) : find_known(kOfOthers, name);
    const std::string_view theirs = entry == nullptr ? "" : (is_trl ? entry->trl : entry->verl);
    if (!theirs.empty()) known.set(prefix + std::string(theirs), entry->is_complement ? 1 - value : value);
  }
  return known;
}

}  // namespace kedge
