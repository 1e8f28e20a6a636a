#pragma once
// The configurations of the reward server and the critic server, under the reference's keys.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/critic_model.h"
#include "kedge/algo/reward_config.h"
#include "kedge/algo/reward_scorer.h"
#include "kedge/algo/rm.h"
#include "kedge/algo/training_config.h"
#include "kedge/core/config_schema.h"
#include "kedge/net/server_config.h"
#include "kedge/train/run_folder.h"

namespace kedge {

// Keys of `model.regression`.
struct AttributesConfig {
  bool merge_attributes = false;
  std::optional<std::vector<double>> attribute_weights;

  void fields(auto&& field) {
    field("merge_attributes", merge_attributes, "one reward a row, made of its attributes; false: all of them");
    field("attribute_weights", attribute_weights, "what each attribute counts, where they are merged; null: all the same");
    field.ignored("num_attributes", "the folder's head says how many there are");
  }
};

// How rows come to a server's models: part of `inference` (reward server) and `trainer.ppo` (critic server).
struct ServeRowsConfig : ServerConfig {
  Json inference_micro_batch_size = 4;
  int64_t max_queue_delay_microseconds = 2000;
  bool add_bos = false, add_eos = false;

  void fields(auto&& field) {
    ServerConfig::fields(field);
    field("inference_micro_batch_size", inference_micro_batch_size,
          "row counts, one or a list, that are computed at once; fewer wait for company", follows("${model.forward_micro_batch_size}"));
    field("max_queue_delay_microseconds", max_queue_delay_microseconds, "how long they wait", at_least(0), unit("us"));
    field("add_bos", add_bos, "put the tokenizer's bos before texts; ids and messages stay as they are");
    field("add_eos", add_eos, "put its eos behind them");
    field.ignored("strip_sequence_length_to_multiple", "padding is never computed");
    field.ignored("pad_sequence_length_to_multiple",
                  "padding is never computed; the key of today is strip_sequence_length_to_multiple, which does nothing either");
    field.refused("micro_batch_size", "is called inference_micro_batch_size");
  }
};

struct RewardServerConfig {
  struct Inference : ServeRowsConfig {
    std::string model_name = "reward_model";

    Inference() { port = 5555; }
    void fields(auto&& field) {
      field("model_name", model_name, "what clients call the model");
      ServeRowsConfig::fields(field);
    }
  };
  struct Model {
    int64_t forward_micro_batch_size = 4;
    int64_t encoder_seq_length = 4096;
    RewardModelType reward_model_type = RewardModelType::binary_ranking;
    AttributesConfig regression;
    RewardStandardization reward_standardization;

    void fields(auto&& field) {
      field("forward_micro_batch_size", forward_micro_batch_size,
            "rows of full length that fit into one forward pass; of shorter ones it takes more", at_least(1));
      field("encoder_seq_length", encoder_seq_length, "longest row; longer texts are cut, longer ids refused", at_least(1), unit("tokens"));
      field("reward_model_type", reward_model_type, "binary_ranking: a reward; regression: attribute values");
      field("regression", regression, "of models with several attributes");
      field("reward_standardization", reward_standardization, "of rewards, before they are given out");
      for (const char* key : {"global_batch_size", "micro_batch_size", "mcore_gpt", "megatron_amp_O2", "sequence_parallel",
                              "activations_checkpoint_granularity", "activations_checkpoint_method", "output_sequence"})
        field.ignored(key, "has no meaning for a server of rewards");
      field.ignored("precision", "trainer.precision counts");
      field.ignored("force_head_dtype", "the head computes in fp32");
      field.refused("tensor_model_parallel_size", "a model is not cut over ranks", {"1", "-1"});
      field.refused("pipeline_model_parallel_size", "a model is not cut over ranks", {"1", "-1"});
    }
  };

  std::string rm_model_file;
  ComputeConfig trainer;
  Inference inference;
  Model model;

  void fields(auto&& field) {
    field("rm_model_file", rm_model_file, "the reward model's folder, or Org/Name in the Hugging Face cache", required());
    field("trainer", trainer, "where to compute");
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
            "give rewards too, from the folder the critic started from; the actor's key of this name must be equal");
      field(
          "reward_model", reward_model,
          "where its weights are: resident, a second copy on the device; swapped, a copy in host memory that is brought in for every call; "
          "auto: resident where there is memory. With adapters it is the network without them, and takes none");
      field("max_steps", max_steps, "updates over which the learning rate falls; the server goes on after them", at_least(1));
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
      field("micro_batch_size", micro_batch_size, "rows of one forward pass in training", at_least(1));
      field("global_batch_size", global_batch_size, "rows of one update", at_least(1));
      field("forward_micro_batch_size", forward_micro_batch_size,
            "rows of full length that fit into one forward pass elsewhere; of shorter ones it takes more", at_least(1),
            follows("${.micro_batch_size}"));
      field("loss_clip_val", loss_clip_val, "how far a value may move from the old one and gain by it; 0 or less: no limit");
      field("reward_model_type", reward_model_type, "binary_ranking: a reward; regression: attribute values");
      field("regression", regression, "of models with several attributes");
      field("reward_standardization", reward_standardization, "of rewards and of values");
      field.alias("offload_adam_states", "optim.offload_adam_states");
      field.ignored("output_sequence", "a critic gives a value for every token");
      field.ignored("force_head_dtype", "the head computes in fp32");
      field.ignored("share_embeddings_and_output_weights", "a critic has no output embedding");
    }
  };

  Trainer trainer;
  RunConfig exp_manager;
  PretrainedConfig pretrained_checkpoint;
  Model model;

  CriticServerConfig();
  void fields(auto&& field) {
    field("trainer", trainer, "where to compute, the server and its updates");
    field("exp_manager", exp_manager, "the run's folder and logs; the two newest checkpoints are kept");
    field("pretrained_checkpoint", pretrained_checkpoint,
          "the reward model it starts from; without rewards, any model: it gets a new head");
    field("model", model, "the network and its optimizer");
  }
};

// What the keys come to. UsageError, opened by the key, for what cannot be.
[[nodiscard]] std::vector<int64_t> preferred_batch_sizes(const Json& micro_batch_size, const std::string& key);
[[nodiscard]] Standardization standardization_of(const RewardStandardization& config);
[[nodiscard]] RewardScorerOptions scorer_options(const RewardServerConfig::Model& model);
[[nodiscard]] RewardScorerOptions scorer_options(const CriticServerConfig::Model& model);
// Without what its checkpoints' folders take along, and with a reward model that stays resident.
[[nodiscard]] CriticOptions critic_options(const CriticServerConfig& config);

}  // namespace kedge
