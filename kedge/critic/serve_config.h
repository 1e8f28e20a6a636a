#pragma once
// The configurations of the reward server and the critic server, with NeMo-Aligner's keys.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/critic/critic_model.h"
#include "kedge/net/server_config.h"
#include "kedge/reward/reward_config.h"
#include "kedge/reward/reward_model_type.h"
#include "kedge/reward/reward_scorer.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/optim/updater.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Keys of `model.regression`.
struct AttributesConfig {
  bool merge_attributes = false;
  std::optional<std::vector<double>> attribute_weights;

  void fields(auto&& field) {
    field("merge_attributes", merge_attributes, "merge a row's attributes into one reward; false: return all of them");
    field("attribute_weights", attribute_weights, "weight of each attribute when merged; null: all equal");
    field.ignored("num_attributes", "the number is read from the folder's head");
  }
};

// How rows are batched for a server's models: part of `inference` (reward server) and `trainer.ppo` (critic server).
struct ServeRowsConfig : ServerConfig {
  Json inference_micro_batch_size = 4;
  int64_t max_queue_delay_microseconds = 2000;
  bool add_bos = false, add_eos = false;

  void fields(auto&& field) {
    ServerConfig::fields(field);
    field("inference_micro_batch_size", inference_micro_batch_size,
          "preferred batch size, or a list; smaller batches wait up to max_queue_delay_microseconds for more rows",
          follows("${model.forward_micro_batch_size}"));
    field("max_queue_delay_microseconds", max_queue_delay_microseconds,
          "how long batches below inference_micro_batch_size wait for more rows", at_least(0), unit("us"));
    field("add_bos", add_bos, "put the tokenizer's BOS before texts; ids and messages are not changed");
    field("add_eos", add_eos, "put the tokenizer's EOS after texts");
    field.ignored("strip_sequence_length_to_multiple", "padding is never computed");
    field.ignored("pad_sequence_length_to_multiple",
                  "padding is never computed; the current key is strip_sequence_length_to_multiple, which has no effect either");
    field.refused("micro_batch_size", "renamed to inference_micro_batch_size");
  }
};

struct RewardServerConfig {
  struct Inference : ServeRowsConfig {
    std::string model_name = "reward_model";

    Inference() { port = 5555; }
    void fields(auto&& field) {
      field("model_name", model_name, "name of the model for clients");
      ServeRowsConfig::fields(field);
    }
  };
  struct Model {
    int64_t forward_micro_batch_size = 4;
    int64_t encoder_seq_length = 4096;
    int64_t tensor_model_parallel_size = 1;
    RewardModelType reward_model_type = RewardModelType::binary_ranking;
    AttributesConfig regression;
    RewardStandardization reward_standardization;

    void fields(auto&& field) {
      field("forward_micro_batch_size", forward_micro_batch_size, "rows of full length per forward pass; more if rows are shorter",
            at_least(1));
      field("encoder_seq_length", encoder_seq_length, "longest row; longer texts are truncated, longer ids rejected", at_least(1),
            unit("tokens"));
      field("reward_model_type", reward_model_type, "binary_ranking: one reward; regression: attribute values");
      field("regression", regression, "settings of models with several attributes");
      field("reward_standardization", reward_standardization, "of rewards, before they are returned");
      field.ignored({"global_batch_size", "micro_batch_size", "mcore_gpt", "megatron_amp_O2", "sequence_parallel",
                     "activations_checkpoint_granularity", "activations_checkpoint_method", "output_sequence"},
                    "has no effect on a reward server");
      field.ignored("precision", "trainer.precision applies");
      field.ignored("force_head_dtype", "the head computes in fp32");
      field("tensor_model_parallel_size", tensor_model_parallel_size,
            "neighbouring ranks that compute every layer together; the others have other rows. -1: 1", at_least(-1));
      field.refused("pipeline_model_parallel_size",
                    "layers are not divided among ranks: model.tensor_model_parallel_size shares the computation of each", {"1", "-1"});
    }
  };

  std::string rm_model_file;
  ComputeConfig trainer;
  Inference inference;
  Model model;

  void fields(auto&& field) {
    field("rm_model_file", rm_model_file, "the reward model's folder, or Org/Name in the Hugging Face cache", required());
    field("trainer", trainer, "device and precision");
    field("inference", inference, "the server");
    field("model", model, "the model");
  }
};

enum class RewardModelPlace { automatic, resident, swapped };
constexpr auto enum_names(RewardModelPlace) {
  return std::array<EnumName<RewardModelPlace>, 3>{
      {{"auto", RewardModelPlace::automatic}, {"resident", RewardModelPlace::resident}, {"swapped", RewardModelPlace::swapped}}};
}

struct CriticServerConfig {
  struct Ppo : ServeRowsConfig, UpdateConfig {
    bool combine_rm_and_critic_server = true;
    RewardModelPlace reward_model = RewardModelPlace::automatic;
    int64_t max_steps = 10000;

    Ppo() { port = 5556; }
    void fields(auto&& field) {
      ServeRowsConfig::fields(field);
      field("combine_rm_and_critic_server", combine_rm_and_critic_server,
            "also return rewards, from the critic's initial model; must equal the actor's key of this name");
      field("reward_model", reward_model,
            "where the reward model's weights are: a second copy on the device (resident), a copy in host memory that is swapped in for "
            "every call (swapped), or resident if it fits (auto). With adapters it is the network without them and needs no memory");
      field("max_steps", max_steps, "updates over which the learning rate decays; the server continues after them", at_least(1));
      UpdateConfig::fields(field);
    }
  };
  struct Trainer : ComputeConfig {
    Ppo ppo;

    void fields(auto&& field) {
      ComputeConfig::fields(field);
      field("ppo", ppo, "the server and its updates");
    }
  };
  struct Model : NetworkConfig {
    int64_t micro_batch_size = 1, global_batch_size = 64, forward_micro_batch_size = 1;
    double loss_clip_val = 0.2;
    RewardModelType reward_model_type = RewardModelType::binary_ranking;
    AttributesConfig regression;
    RewardStandardization reward_standardization;

    Model() {
      optim.sched.min_lr = 9e-7;
      regression.merge_attributes = true;
    }
    void fields(auto&& field) {
      NetworkConfig::fields(field);
      field("micro_batch_size", micro_batch_size, "rows per forward pass in training", at_least(1));
      field("global_batch_size", global_batch_size, "rows per update", at_least(1));
      field("forward_micro_batch_size", forward_micro_batch_size,
            "rows of full length per forward pass outside training; more if rows are shorter", at_least(1),
            follows("${.micro_batch_size}"));
      field("loss_clip_val", loss_clip_val, "clip range of a value around its old value; 0 or less: no clipping");
      field("reward_model_type", reward_model_type, "binary_ranking: one reward; regression: attribute values");
      field("regression", regression, "settings of models with several attributes");
      field("reward_standardization", reward_standardization, "of rewards and of values");
      field.alias("offload_adam_states", "optim.offload_adam_states");
      field.ignored("output_sequence", "a critic returns a value for every token");
      field.refused("use_avg_pool", "a critic returns one value per token", {"false", "False"});
      field.ignored("force_head_dtype", "the head computes in fp32");
      field.ignored("share_embeddings_and_output_weights", "a critic has no output embedding");
    }
  };

  // Its actor says when it saves.
  struct Run : RunFolderConfig {
    void fields(auto&& field) {
      RunFolderConfig::fields(field);
      field.ignored("checkpoint_callback_params", "a critic keeps its three newest saves and those that its actor needs");
      field.ignored("create_checkpoint_callback", "a critic saves when its actor does");
      field.ignored("max_time_per_run", "a server runs until it is stopped");
    }
  };

  Trainer trainer;
  Run exp_manager;
  PretrainedConfig pretrained_checkpoint;
  Model model;

  CriticServerConfig();
  void fields(auto&& field) {
    field("trainer", trainer, "device, server and updates");
    field("exp_manager", exp_manager, "the run's folder and logs. resume_from_checkpoint may be another critic's folder",
          null_means("keep_folder", "false"));
    field("pretrained_checkpoint", pretrained_checkpoint, "the initial reward model; without rewards, any model: it gets a new head");
    field("model", model, "the network and its optimizer");
  }
};

// Options from the keys. UsageError, opened by the key, for invalid values.
[[nodiscard]] std::vector<int64_t> preferred_batch_sizes(const Json& micro_batch_size, const std::string& key);
[[nodiscard]] Standardization standardization_of(const RewardStandardization& config);
[[nodiscard]] RewardScorerOptions scorer_options(const RewardServerConfig::Model& model);
[[nodiscard]] RewardScorerOptions scorer_options(const CriticServerConfig::Model& model);
// Without the extra files of its checkpoints, and with a resident reward model.
[[nodiscard]] CriticOptions critic_options(const CriticServerConfig& config);

}  // namespace kedge
