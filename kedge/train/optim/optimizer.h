#pragma once
// The optimizer of a model's parameters: gradient norm, clipping, AdamW or plain descent, over the flat buffers. It updates, and has the
// moments of, what this rank owns of the parameters. Independent of models and losses.
#include <cstdint>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/core/tensor.h"
#include "kedge/model/parameters.h"
#include "kedge/train/checkpoint/state_files.h"

namespace kedge {

// AdamW with all moments on every rank, AdamW with sharded moments, and gradient descent without moments.
enum class OptimizerKind { adamw, distributed_fused_adam, sgd };
constexpr auto enum_names(OptimizerKind) {
  using Kind = OptimizerKind;
  return std::array<EnumName<Kind>, 4>{{{"adamw", Kind::adamw},
                                        {"distributed_fused_adam", Kind::distributed_fused_adam},
                                        {"mcore_distributed_optim", Kind::distributed_fused_adam},  // NeMo's newer name for the same
                                        {"sgd", Kind::sgd}}};
}

enum class MomentType { fp32, bf16 };
constexpr auto enum_names(MomentType) {
  return std::array<EnumName<MomentType>, 2>{{{"fp32", MomentType::fp32}, {"bf16", MomentType::bf16}}};
}

struct OptimizerConfig {
  OptimizerKind name = OptimizerKind::distributed_fused_adam;
  double lr = 9e-6;
  std::vector<double> betas = {0.9, 0.98};
  double eps = 1e-8;
  double weight_decay = 0.1;
  MomentType moments = MomentType::fp32;
  bool offload_adam_states = false;

  void fields(auto&& field) {
    field("name", name,
          "AdamW on every rank (adamw), AdamW with states sharded over ranks (the distributed ones), or plain gradient descent (sgd)");
    field("lr", lr, "peak learning rate", at_least(0), finite());
    field("betas", betas, "decay rates of the two moments");
    field("eps", eps, "added to the square root of the second moment", above(0), finite());
    field("weight_decay", weight_decay, "decoupled (not for sgd); applies to matrices, not to norms or biases", at_least(0), finite());
    field("moments", moments, "storage type of the two moments; bf16 halves their memory");
    field("offload_adam_states", offload_adam_states, "keep the moments in host memory and stream them through the GPU");
    for (const char* key :
         {"bucket_cap_mb", "overlap_grad_sync", "overlap_param_sync", "contiguous_grad_buffer", "contiguous_param_buffer"})
      field.ignored(key, "gradients and parameters are not bucketed");
  }
};

// What gradients of this norm are multiplied by, so that their norm is at most max_norm; 1 if max_norm is 0 or less (no clipping).
[[nodiscard]] double clip_coefficient(double norm, double max_norm);

// Not thread-safe. `parameters` must be trainable and outlive it. All ranks that hold them make the same calls and end every step with the
// same weights, whatever is sharded.
class Optimizer {
 public:
  // UsageError for invalid settings.
  Optimizer(const OptimizerConfig& config, Parameters& parameters);

  void zero_gradients() { parameters_.zero_gradients(); }
  // L2 norm of all gradients, summed over all ranks, before any clipping.
  [[nodiscard]] double gradient_norm() const;
  // One update with gradients multiplied by `grad_scale` (for clipping, clip_coefficient). The gradients are already summed over all ranks.
  void step(double lr, double grad_scale = 1);

  // All of its state: the moments, and how many updates were made. A rank's snapshot gets the moments that no rank before it has.
  void save(StateSnapshot& snapshot) const;
  void load(const StateFiles& files);

  [[nodiscard]] int64_t num_steps() const { return num_steps_; }
  // Of this rank's parts, one after the other; undefined for sgd.
  [[nodiscard]] const Tensor& first_moment() const { return first_; }
  [[nodiscard]] const Tensor& second_moment() const { return second_; }

 private:
  void update(const Parameters::OwnPart& part, int64_t own_begin, double lr, double grad_scale);
  void descend(const Parameters::OwnPart& part, double lr, double grad_scale) const;
  [[nodiscard]] double decay_of(const Parameters::OwnPart& part) const;
  [[nodiscard]] std::vector<Tensor> cut(const Tensor& moment) const;
  void save_moment(StateSnapshot& snapshot, const std::string& name, const Tensor& moment) const;
  void load_moment(const StateFiles& files, const std::string& name, const Tensor& moment) const;

  OptimizerConfig config_;
  Parameters& parameters_;
  Tensor first_, second_;
  int64_t num_steps_ = 0;
};

}  // namespace kedge
