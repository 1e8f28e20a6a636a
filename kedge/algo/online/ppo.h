#pragma once
// PPO: a critic predicts the reward before every token of an answer, and tokens that raise the prediction are
// made more likely, as long as the policy stays near the one that sampled them. The critic learns from the same answers.
//
// How a token is processed: its KL penalty and the answer's reward (token_rewards), its value (ValueCollector), its advantage and return
// (gae, whiten in Ppo::score), its loss (policy_objective.h).
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/online_trainer.h"
#include "kedge/algo/online/policy_loss_config.h"
#include "kedge/critic/serve_config.h"

namespace kedge {

// Keys of `trainer.ppo`.
struct PpoLoopConfig : OnlineLoopConfig, KlConfig, LossKlConfig, RolloutCorrectionConfig {
  static constexpr const char* kName = "ppo";
  int64_t critic_warmup_steps = 0;
  double discount_factor = 1, gae_lambda = 0.95;
  bool normalize_advantages = true;
  Unfinished unfinished = Unfinished::drop;
  LossNorm loss_norm = LossNorm::reference;
  int64_t ppo_epochs = 1, critic_epochs = 1;

  void fields(auto&& field) {
    OnlineLoopConfig::fields(field);
    KlConfig::fields(field);
    LossKlConfig::fields(field);
    field("critic_warmup_steps", critic_warmup_steps, "rounds of rollouts that train only the critic, before the first step", at_least(0));
    field("discount_factor", discount_factor, "gamma: discount per token", at_least(0), at_most(1));
    field("gae_lambda", gae_lambda, "GAE lambda: 1 uses observed rewards only, 0 relies on the critic's next value", at_least(0),
          at_most(1));
    field("normalize_advantages", normalize_advantages,
          "normalize advantages to mean 0 and standard deviation 1 over all tokens of a step");
    field("unfinished", unfinished, "responses cut off at max_length: train only the critic on them (drop), or the policy too (keep)");
    field("loss_norm", loss_norm, kLossNormHelp);
    RolloutCorrectionConfig::fields(field);
    field("ppo_epochs", ppo_epochs, "passes over the responses of a step", at_least(1));
    field("critic_epochs", critic_epochs, "the critic's passes over the responses of a step", follows("${.ppo_epochs}"), at_least(1));
  }
};

// Keys of `model.ppo`.
struct PpoRolloutConfig : RolloutConfig, ClipConfig {
  void fields(auto&& field) {
    RolloutConfig::fields(field);
    ClipConfig::fields(field);
  }
};

// Keys of `remote_critic_rm`.
struct CriticServersConfig {
  struct Names {
    std::string train = "critic_train", infer = "critic_infer", save = "critic_save", restore = "critic_restore";

    void fields(auto&& field) {
      field("train", train, "model name of the training call");
      field("infer", infer, "model name of the call that returns values");
      field("save", save, "model name of the call that saves the critic");
      field("restore", restore, "model name of the call that restores the critic");
    }
  };
  struct Critic {
    Names name;
    std::string ip = "localhost";
    int64_t port = 5556;
    bool take_over = false;

    void fields(auto&& field) {
      field("name", name, "the models' names on the server");
      field("ip", ip, "the server's host");
      field("port", port, "the server's port", at_least(1), at_most(65535));
      field("take_over", take_over, "use the server's critic even if it belongs to another run, which then cannot resume with it");
    }
  };
  bool combine_rm_and_critic_server = true;
  Critic critic;
  RewardEndpoint reward_model;
  std::optional<int64_t> pad_to_length;
  std::optional<std::string> token_file;
  std::optional<double> wait_limit;

  void fields(auto&& field) {
    field("combine_rm_and_critic_server", combine_rm_and_critic_server,
          "the critic's server also returns rewards; must equal the server's key of this name. false: rewards come from reward.sources, or "
          "if that is empty from the server of reward_model");
    field("critic", critic, "the critic's server");
    field("reward_model", reward_model, "the reward model's server, if it is a separate one");
    field("pad_to_length", pad_to_length, "width to which rows of ids are padded when sent; null: the longest row", at_least(1),
          unit("tokens"));
    field("token_file", token_file, "file with the critic server's bearer token");
    field("wait_limit", wait_limit, "how long the critic's server may be unreachable; null: 6000", above(0), unit("s"));
    field.alias("send", "reward_model.send");
  }
};

// Keys of `local_critic`.
struct LocalCriticConfig : UpdateConfig {
  std::string restore_from_path;
  int64_t max_steps = 10000;
  CriticServerConfig::Model model;

  void fields(auto&& field) {
    field("restore_from_path", restore_from_path, "the initial critic: a reward model, or a language model that gets a new head",
          required());
    field("max_steps", max_steps, "updates over which the critic's learning rate decays", at_least(1));
    UpdateConfig::fields(field);
    field("model", model, "the network and its optimizer");
  }
};

// What a configuration with a critic has in addition.
struct ActorCriticConfig : OnlineConfig {
  CriticServersConfig remote_critic_rm;
  std::optional<LocalCriticConfig> local_critic;

  void fields(auto&& field) {
    OnlineConfig::fields(field);
    field("remote_critic_rm", remote_critic_rm, "servers of the critic and optionally of the reward model");
    field("local_critic", local_critic,
          "a critic in this process instead of a server; several ranks hold and train it together. Rewards come from reward.sources. null: "
          "use "
          "the server");
  }
};

struct PpoConfig : OnlineRunConfig<PpoLoopConfig, PpoRolloutConfig, ActorCriticConfig> {
  PpoConfig();
  void fields(auto&& field) {
    OnlineRunConfig::fields(field);
    for (const char* key : {"ratio_eps", "ratio_clip_min", "ratio_clip_max", "ratio_clip_c"}) field.alias(in_trainer(key), in_model(key));
  }
};

// The critic of `local_critic` as a server's configuration.
[[nodiscard]] CriticServerConfig critic_of(const LocalCriticConfig& config, const ComputeConfig& compute);

// The sources of `reward`, including those that `remote_critic_rm` configures. UsageError for invalid values.
[[nodiscard]] RewardConfig reward_of(const PpoConfig& config);
[[nodiscard]] OnlineSettings settings_of(const PpoConfig& config);

[[nodiscard]] std::unique_ptr<Algorithm> make_algorithm(const PpoConfig& config);

// Not thread-safe. `parts.values` collects the critic's values.
class PPOTrainer final : public OnlineTrainer {
 public:
  PPOTrainer(OnlineParts parts, const PpoConfig& config) : OnlineTrainer(std::move(parts), settings_of(config), make_algorithm(config)) {}

  // KL, advantages and returns: what is trained on.
  void generate_ppo_data(OnlineStep& step) { score(step); }
};

}  // namespace kedge
