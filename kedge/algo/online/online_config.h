#pragma once
// The sections that the configurations of the online trainers share: rollouts, the loop, servers, the model with its batches.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/health.h"
#include "kedge/config/config_schema.h"
#include "kedge/data/sets/data_config.h"
#include "kedge/engine/engine.h"
#include "kedge/engine/sampling.h"
#include "kedge/reward/reward_config.h"
#include "kedge/rollout/rollout_records.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/optim/updater.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Keys of `sampling_params`.
struct RolloutSamplingConfig : SamplingConfig {
  std::vector<std::string> end_strings = {"<|endoftext|>"};

  void fields(auto&& field) {
    SamplingConfig::fields(field);
    field("end_strings", end_strings,
          "strings that end a response (<|endoftext|> stands for EOS); EOS and the folder's other end tokens always do");
    field.refused("add_BOS", "model.data.add_bos puts BOS before a prompt", {"false", "False"});
    field.ignored("all_probs", "not needed");
    field.ignored("compute_logprob", "log-probabilities are always computed");
    field.converted("temperature",
                    "log-probabilities in ratios, KL and loss also have this temperature; logprob_temperature=one, beside sampling_params, "
                    "takes 1, as NeMo-Aligner does",
                    {"1", "1.0"});
  }
};

// Keys of `length_params`.
struct LengthConfig {
  std::optional<int64_t> max_length;
  int64_t min_length = 1;

  void fields(auto&& field) {
    field("max_length", max_length, "maximum response length; null: half of the context", at_least(1), unit("tokens"));
    field("min_length", min_length, "minimum response length; EOS is masked until then; 0 allows empty responses", at_least(0),
          unit("tokens"));
  }
};

enum class ReferencePlace { automatic, resident, swapped };
constexpr auto enum_names(ReferencePlace) {
  return std::array<EnumName<ReferencePlace>, 3>{
      {{"auto", ReferencePlace::automatic}, {"resident", ReferencePlace::resident}, {"swapped", ReferencePlace::swapped}}};
}

enum class LogprobSource { automatic, trainer, engine };
constexpr auto enum_names(LogprobSource) {
  return std::array<EnumName<LogprobSource>, 3>{
      {{"auto", LogprobSource::automatic}, {"trainer", LogprobSource::trainer}, {"engine", LogprobSource::engine}}};
}

// The temperature of the log-probabilities that enter a ratio, a KL, an entropy or a loss.
enum class LogprobTemperature { sampling, one };
constexpr auto enum_names(LogprobTemperature) {
  return std::array<EnumName<LogprobTemperature>, 2>{{{"sampling", LogprobTemperature::sampling}, {"one", LogprobTemperature::one}}};
}

// Keys of `model.A`.
struct RolloutConfig {
  int64_t num_rollout_samples = 32, num_val_samples = 32;
  int64_t rollout_micro_batch_size = 8;
  int64_t tokens_per_pass = 4096;
  bool share_prompts = true;
  LogprobSource logprobs = LogprobSource::automatic;
  LogprobTemperature logprob_temperature = LogprobTemperature::sampling;
  ReferencePlace reference = ReferencePlace::automatic;
  RolloutSamplingConfig sampling_params;
  std::optional<RolloutSamplingConfig> val_sampling_params;
  LengthConfig length_params;
  std::optional<LengthConfig> val_length_params;
  double entropy_bonus = 0;

  // Of log-probabilities. The most likely token has no temperature.
  [[nodiscard]] double temperature() const {
    return logprob_temperature == LogprobTemperature::one || sampling_params.use_greedy ? 1 : sampling_params.temperature;
  }
  void fields(auto&& field) {
    field("num_rollout_samples", num_rollout_samples, "prompts per step, over all ranks", at_least(1), unit("prompts"));
    field("num_val_samples", num_val_samples, "prompts per validation, from the start of the file; one response each",
          follows("${.num_rollout_samples}"), at_least(1), unit("prompts"));
    field("rollout_micro_batch_size", rollout_micro_batch_size, "prompts a rank takes from the work queue at a time", at_least(1),
          unit("prompts"));
    field("tokens_per_pass", tokens_per_pass,
          "maximum tokens per forward pass, for log-probabilities and for training; affects memory and speed, not the weight of a response "
          "in the loss",
          at_least(1), unit("tokens"));
    field("share_prompts", share_prompts,
          "responses to the same prompt are in one pass where possible, and the pass computes the prompt once for all of them; affects "
          "memory and speed, and results only by the order of sums",
          formerly("false"));
    field("logprobs", logprobs,
          "source of a response's log-probabilities before a step's updates: recomputed by the training code (trainer), or as sampled "
          "(engine), which on a CPU are bit-identical. auto: engine on a CPU, unless they differ. A step's only update gives them where it "
          "can");
    field("logprob_temperature", logprob_temperature,
          "temperature of log-probabilities in ratios, KL, entropy and loss, for the policy and the reference: that of sampling_params, so "
          "that they are of the distribution that was sampled (sampling), or 1, as in NeMo-Aligner (one)",
          formerly("one"));
    field("entropy_bonus", entropy_bonus, "weight of the policy's entropy, in nats, in the loss", at_least(0));
    field("reference", reference,
          "where the weights of the KL reference policy are: a second copy on the device (resident), a copy in host memory that is swapped "
          "in (swapped), or what fits (auto). With adapters the reference is the network without them");
    field("sampling_params", sampling_params, "how responses are sampled");
    field("val_sampling_params", val_sampling_params, "the same for validation; null: as in training", follows("${.sampling_params}"));
    field("length_params", length_params, "length limits of responses");
    field("val_length_params", val_length_params, "the same for validation; null: as in training", follows("${.length_params}"));
    field.ignored("forward_micro_batch_size", "log-probabilities use the same passes as training");
    field.ignored("val_rollout_micro_batch_size", "the engine forms the batches");
    field.ignored("trt_llm", "the policy generates with its own weights");
    field.alias("max_completion_length", "length_params.max_length");
    field.alias("max_response_length", "length_params.max_length");
  }
};

// The keys of a penalty for leaving the reference: part of `trainer.ppo` and `trainer.reinforce`.
struct KlConfig {
  double initial_policy_kl_penalty = 0.01;
  bool use_absolute_kl = true;
  std::optional<KlEstimator> kl_estimator;

  [[nodiscard]] KlEstimator estimator() const { return kl_estimator.value_or(use_absolute_kl ? KlEstimator::abs : KlEstimator::k1); }
  void fields(auto&& field) {
    field("initial_policy_kl_penalty", initial_policy_kl_penalty, "penalty per nat of KL from the reference policy; 0: KL is not computed",
          at_least(0));
    field("use_absolute_kl", use_absolute_kl, "if kl_estimator is null: |p - q| of log-probabilities instead of p - q");
    field("kl_estimator", kl_estimator,
          "per token, with log-probabilities p of the policy and q of the reference: abs |p - q|, k1 p - q, k2 (p - q)^2 / 2, k3 exp(q - "
          "p) - 1 - (q - p); null: abs, or k1 without use_absolute_kl");
  }
};

enum class Unfinished { drop, keep };
constexpr auto enum_names(Unfinished) {
  return std::array<EnumName<Unfinished>, 2>{{{"drop", Unfinished::drop}, {"keep", Unfinished::keep}}};
}

inline constexpr const char* kLossNormHelp =
    "reference: mean over the tokens of a micro-batch, then over micro-batches. tokens: mean over all tokens of an update. sequences: mean "
    "over the tokens of each response, then over responses. sum: sum over the tokens of a response, then mean over responses, the "
    "sequence-level policy gradient. constant: sum over all tokens, divided by the responses of an update and length_params.max_length";

// Keys of `batch_iterator`.
struct WorkQueueConfig {
  bool use_flask = false;
  int64_t port = 5557;

  void fields(auto&& field) {
    field("use_flask", use_flask, "ranks take prompts from a shared queue, so faster ranks process more");
    field("port", port, "port of the queue on rank 0; 0: any free port", at_least(0), at_most(65535));
  }
};

// Keys of `trainer.ppo`, `trainer.reinforce` and `trainer.rs`.
struct OnlineLoopConfig : UpdateConfig, HealthConfig {
  static constexpr const char* kHelp = "the algorithm";
  int64_t max_epochs = 1, max_steps = -1;
  int64_t val_check_interval = 10, save_interval = 10;
  WorkQueueConfig batch_iterator;

  void fields(auto&& field) {
    field("max_epochs", max_epochs, "passes over the prompts", at_least(1));
    field("max_steps", max_steps, "maximum number of steps; negative: no limit, 0: do nothing");
    field("val_check_interval", val_check_interval, "validate every N steps; 0 or less: never");
    field("save_interval", save_interval, "save every N steps, a multiple of val_check_interval; 0 or less: never",
          follows("${.val_check_interval}"));
    UpdateConfig::fields(field);
    HealthConfig::fields(field);
    field("batch_iterator", batch_iterator, "how prompts are distributed over ranks");
    field.ignored("rollout_batch_seq_length", "rows are packed without padding");
    field.ignored("flask_server", "batch_iterator.use_flask decides how prompts are distributed");
    field.ignored({"trt_llm", "trt_model_dir"}, "the policy generates with its own weights");
    field.ignored("model_gbs", "use model.global_batch_size");
    field.ignored("model_mbs", "use model.micro_batch_size");
  }
};

// Keys of `model.generation`: its own layout over the ranks.
struct GenerationConfig {
  std::optional<int64_t> tensor_parallel_size;

  void fields(auto&& field) {
    field("tensor_parallel_size", tensor_parallel_size,
          "neighbouring ranks that generate with one copy of the weights together; null: as in training. If it is another number, weights "
          "move from the one layout to the other before responses are generated, into memory that is freed after",
          at_least(1));
  }
};

// Keys of `model` that the online trainers have.
struct OnlineModelConfig : NetworkConfig {
  int64_t micro_batch_size = 1, global_batch_size = 32;
  DataConfig data;
  EngineConfig engine;
  GenerationConfig generation;

  // Ranks that generate together.
  [[nodiscard]] int64_t generation_ranks() const { return generation.tensor_parallel_size.value_or(tensor_model_parallel_size); }

  OnlineModelConfig() {
    optim.lr = 9e-7;
    engine.memory = "auto";
  }
  void fields(auto&& field) {
    NetworkConfig::fields(field);
    field("micro_batch_size", micro_batch_size, "responses per micro-batch, over whose tokens loss_norm=reference averages first",
          at_least(1), unit("responses"));
    field("global_batch_size", global_batch_size, "responses per update, over all ranks; 0: all of a step, which is one update",
          at_least(0), unit("responses"));
    field("data", data, "the prompts");
    field.ignored("offload_adam_states", "model.optim.offload_adam_states applies");
    field("engine", engine, "generation; memory: auto takes what all responses of a step need, and at most half of the free memory");
    field("generation", generation, "how ranks generate");
  }
};

// Keys of a `reward_model` on a server.
struct RewardEndpoint {
  std::string name = "reward_model";
  Json ip = "localhost", port = 5555;
  std::optional<RewardInput> send = {};
  std::optional<std::string> token_file = {};
  std::optional<double> wait_limit = {};

  void fields(auto&& field) {
    field("name", name, "the model's name on the server");
    field("ip", ip, "the server's host; or a list of servers of the same model, which share the calls");
    field("port", port, "the server's port; of several a list, or the port of all");
    field("send", send, "what the server receives; null: auto (docs/rewards.md)");
    field("token_file", token_file, "file with the server's bearer token");
    field("wait_limit", wait_limit, "how long the server, or all of a list, may be unreachable; null: 6000", above(0), unit("s"));
    field.alias("host", "ip");
  }
};

// Keys of `remote_rm`.
struct RemoteRewardConfig {
  RewardEndpoint reward_model;
  std::optional<int64_t> pad_to_length;

  void fields(auto&& field) {
    field("reward_model", reward_model, "the reward model's server");
    field("pad_to_length", pad_to_length, "width to which rows of ids are padded when sent; null: the longest row", at_least(1),
          unit("tokens"));
    field.alias("host", "reward_model.ip");
    for (const char* key : {"port", "send", "token_file", "wait_limit"}) field.alias(key, str("reward_model.", key));
  }
};

// What the complete configurations share.
struct OnlineConfig {
  RunConfig exp_manager;
  PretrainedConfig pretrained_checkpoint;
  RewardConfig reward;
  RolloutsConfig rollouts;

  void fields(auto&& field) {
    field("exp_manager", exp_manager, "the run's folder, checkpoints and logs; null: keep_folder=false",
          null_means("keep_folder", "false"));
    field("pretrained_checkpoint", pretrained_checkpoint, "the initial policy, which is also the KL reference");
    field("reward", reward, "where rewards come from");
    field("rollouts", rollouts, "which responses are recorded");
  }
};

// Those of the trainers without a critic.
struct RewardedConfig : OnlineConfig {
  std::optional<RemoteRewardConfig> remote_rm;

  // False: a server at its default address is assumed.
  [[nodiscard]] bool names_reward() const { return !reward.sources.empty() || remote_rm; }
  void fields(auto&& field) {
    OnlineConfig::fields(field);
    field("remote_rm", remote_rm, "a reward server; null: reward.sources, or if that is empty a server at localhost:5555");
  }
};

// A complete configuration. `Loop` and `Rollouts` are the algorithm's own sections of `trainer` and `model`, `Shared` an OnlineConfig.
template <typename Loop, typename Rollouts, typename Shared>
struct OnlineRunConfig : Shared {
  static constexpr const char* kName = Loop::kName;
  struct Model : OnlineModelConfig {
    Rollouts rollouts;

    void fields(auto&& field) {
      OnlineModelConfig::fields(field);
      field(kName, rollouts, "rollouts");
      field.alias(str(kName, ".offload_adam_states"), "optim.offload_adam_states");
    }
  };
  // Keys of NeMo-Aligner's are in the section where it has them; the other of the two is read as well.
  static std::string in_trainer(const char* key) { return str("trainer.", kName, ".", key); }
  static std::string in_model(const char* key) { return str("model.", kName, ".", key); }

  TrainerConfig<Loop> trainer;
  Model model;

  void fields(auto&& field) {
    field("trainer", trainer, "device, length of training, algorithm");
    Shared::fields(field);
    field("model", model, "the policy, its prompts and its optimizer");
    field.alias(in_trainer("entropy_bonus"), in_model("entropy_bonus"));
  }
};

// A run of this algorithm: its name, checkpoints ranked and named by its mean reward, as in NeMo-Aligner, and metrics on the console, which
// are the rewards and these.
[[nodiscard]] RunConfig online_run(const std::string& name, const std::string& rewards, const std::vector<std::string>& console_keys);

// The sources of `reward`, including the one that `remote_rm` configures. UsageError if both are given, or for invalid values.
[[nodiscard]] RewardConfig reward_of(const RewardedConfig& config);
// A source that is this model on a server, or on several. UsageError, opened by `key`, for invalid addresses.
[[nodiscard]] RewardSourceConfig source_at(const RewardEndpoint& server, std::optional<int64_t> pad_to_length, const std::string& key);

// Width of the rows that are sent to servers, by the key that sets it; without an entry, rows are as wide as the longest.
using SentWidths = std::map<std::string, int64_t>;
[[nodiscard]] SentWidths widths_of(const OnlineConfig& config);
[[nodiscard]] SentWidths widths_of(const RewardedConfig& config);
// UsageError if a prompt and its answer may have more tokens.
void check_widths(const SentWidths& widths, int64_t context);

// Equal if prompts are read, and answers sampled and scored, in the same way.
[[nodiscard]] std::string rollout_identity(RewardConfig reward, DataConfig data, RolloutConfig rollouts);

}  // namespace kedge
