#pragma once
// The sections that the configurations of all trainers share: where to compute, the network, its adapters.
#include <array>
#include <optional>
#include <string>

#include "kedge/config/config_schema.h"
#include "kedge/dist/mesh.h"
#include "kedge/dist/shard_layout.h"
#include "kedge/model/spec/lora_config.h"
#include "kedge/train/optim/optim_config.h"

namespace kedge {

// Keys of `trainer`.
struct ComputeConfig {
  std::optional<int64_t> devices, num_nodes;
  std::string accelerator = "auto";
  std::optional<std::string> precision;
  int64_t threads = 0;
  bool deterministic = false, rehearse = true;
  TransportKind transport = TransportKind::automatic;

  void fields(auto&& field) {
    field("devices", devices, "ranks per machine; null: as many as mpirun or srun started", at_least(1));
    field("num_nodes", num_nodes, "machines; null: as many as mpirun or srun started", at_least(1));
    field("accelerator", accelerator, "auto (a GPU if there is one), gpu, cpu, cuda or cuda:N");
    field("precision", precision, "32, or bf16 with fp32 master weights; null: bf16 on a GPU, 32 on a CPU");
    field("threads", threads, "CPU threads; 0: OMP_NUM_THREADS, or one per core", at_least(0));
    field("deterministic", deterministic, "bit-identical results on a GPU, at some cost in speed; a CPU is always deterministic");
    field("rehearse", rehearse,
          "before the first step, run one micro-batch of the largest size through every phase, to find out early if memory is short");
    field("transport", transport,
          "how GPU tensors travel between ranks: nccl, peer (CUDA IPC, on one machine) or mpi (through host memory); auto: nccl");
    field.ignored({"max_epochs", "max_steps"}, "use the key in the algorithm's own section");
    field.ignored("max_time", "exp_manager.max_time_per_run is the limit");
    field.ignored("logger", "exp_manager decides what is logged");
    field.ignored("enable_checkpointing", "exp_manager decides what is saved");
    field.ignored({"use_distributed_sampler", "replace_sampler_ddp"}, "the order of the data does not depend on ranks");
  }
};

// Keys of `trainer`, with the algorithm's own section: its training loop, which has the name `Loop::kName`.
template <typename Loop>
struct TrainerConfig : ComputeConfig {
  Loop loop;

  void fields(auto&& field) {
    ComputeConfig::fields(field);
    field(Loop::kName, loop, Loop::kHelp);
  }
};

enum class PeftScheme { none, lora };
constexpr auto enum_names(PeftScheme) {
  return std::array<EnumName<PeftScheme>, 2>{{{"none", PeftScheme::none}, {"lora", PeftScheme::lora}}};
}

// Keys of `model.peft`.
struct PeftConfig {
  PeftScheme peft_scheme = PeftScheme::none;
  std::optional<std::string> restore_from_path;
  LoraConfig lora_tuning;

  void fields(auto&& field) {
    field("peft_scheme", peft_scheme, "lora: train adapters on a frozen network; none: train all weights");
    field("restore_from_path", restore_from_path, "folder of an adapter to start from, in PEFT's layout");
    field.refused("restore_from_ckpt", "restore_from_path names the folder of an adapter to start from", {"null"});
    field("lora_tuning", lora_tuning, "the adapters");
  }
};

// Keys of `pretrained_checkpoint`.
struct PretrainedConfig {
  std::string restore_from_path;

  void fields(auto&& field) {
    field("restore_from_path", restore_from_path, "the model folder, or Org/Name in the Hugging Face cache", required());
  }
};

enum class Recompute { selective, full };
constexpr auto enum_names(Recompute) {
  return std::array<EnumName<Recompute>, 2>{{{"selective", Recompute::selective}, {"full", Recompute::full}}};
}

// Keys of `model` that every trainer has.
struct NetworkConfig {
  int64_t seed = 1234;
  int64_t encoder_seq_length = 4096;
  std::optional<Recompute> activations_checkpoint_granularity;
  std::optional<Sharding> sharding;
  std::optional<int64_t> sharding_group;
  Collectives collectives = Collectives::ordered;
  int64_t tensor_model_parallel_size = 1;
  bool sequence_parallel = false;
  PeftConfig peft;
  OptimConfig optim;

  void fields(auto&& field) {
    field("seed", seed, "random seed for the order of the data, new weights and dropout", at_least(0));
    field("encoder_seq_length", encoder_seq_length, "longest row; the network's own limit also applies", at_least(2), unit("tokens"));
    field(
        "activations_checkpoint_granularity", activations_checkpoint_granularity,
        "full: keep only the input of every layer and recompute the rest; selective: recompute the scores of attention, as null does too");
    field("sharding", sharding,
          "what ranks share instead of each holding all of it: none, optimizer (ZeRO-1), gradients too (ZeRO-2), or all, with the weights "
          "(ZeRO-3); null: optimizer, or none if optim.name is adamw or sgd");
    field("sharding_group", sharding_group, "ranks that share one copy of the model, such as those of a node; null: all ranks",
          at_least(1));
    field("collectives", collectives,
          "how gradients are summed over ranks: in rank order, with the same bits whatever is sharded (ordered), or in the order that is "
          "fastest, and once per update where gradients are not sharded (fast)");
    field("tensor_model_parallel_size", tensor_model_parallel_size,
          "neighbouring ranks that compute every layer together, each with its own heads and its share of the MLP and of the vocabulary; "
          "the others have other rows of a batch",
          at_least(1));
    field("sequence_parallel", sequence_parallel,
          "ranks that compute every layer together divide the tokens of a pass where a layer's products do not need all of them: norms are "
          "computed, and the inputs of layers kept, for each rank's own tokens. The same numbers in less memory; without such ranks, "
          "nothing");
    field("peft", peft, "adapters");
    field("optim", optim, "the optimizer");
    field.ignored("enable_nge", "there is only one generator");
    field.ignored("mcore_gpt", "there is only one implementation of the network");
    field.ignored("megatron_amp_O2", "bf16 weights always have fp32 master copies");
    field.ignored("precision", "trainer.precision applies");
    field.ignored("max_position_embeddings", "the network's own limit applies");
    field.ignored({"activations_checkpoint_method", "activations_checkpoint_num_layers", "activations_checkpoint_layers_per_pipeline"},
                  "recomputation is always per layer");
    field.ignored("use_flash_attention", "attention never materializes the score matrix");
    field.ignored("gradient_as_bucket_view", "gradients are not bucketed");
    field.ignored("sync_batch_comm", "there are no pipeline stages");
    field.ignored("save_nemo_on_validation_end", "checkpoints are Hugging Face folders");
    field.refused("resume_from_checkpoint", "exp_manager.resume_from_checkpoint names a checkpoint to resume from", {"null"});
    field.refused("seq_len_interpolation_factor", "the model folder's own rope_scaling applies", {"null"});
    field.refused({"hidden_dropout", "attention_dropout", "ffn_dropout"},
                  "networks are trained without dropout; adapters have model.peft.lora_tuning.adapter_dropout", {"0.0", "0", "null"});
    field.ignored("dist_ckpt_format", "checkpoints are Hugging Face folders");
    field.ignored("dist_ckpt_load_strictness", "every tensor must be present");
    field.ignored("overwrite_base_config", "a model folder contains no settings");
    field.refused("pipeline_model_parallel_size",
                  "layers are not divided among ranks: model.sharding=all shares their memory, and "
                  "model.tensor_model_parallel_size their computation",
                  {"1"});
    field.refused("context_parallel_size", "rows are not split over ranks", {"1"});
  }
};

}  // namespace kedge
