#pragma once
// The optimizer of a model's parameters: gradient norm, clipping, AdamW, over the flat buffers. Knows no model and no loss.
#include <cstdint>
#include <vector>

#include "kedge/core/config.h"
#include "kedge/core/tensor.h"
#include "kedge/model/parameters.h"
#include "kedge/train/state_files.h"

namespace kedge {

enum class MomentType { fp32, bf16 };
constexpr auto enum_names(MomentType) {
  return std::array<EnumName<MomentType>, 2>{{{"fp32", MomentType::fp32}, {"bf16", MomentType::bf16}}};
}

struct OptimizerConfig {
  double lr = 9e-6;
  std::vector<double> betas = {0.9, 0.98};
  double eps = 1e-8;
  double weight_decay = 0.1;
  MomentType moments = MomentType::fp32;
  bool offload_adam_states = false;

  void fields(auto&& field) {
    field("lr", lr, "learning rate at its highest", at_least(0));
    field("betas", betas, "how long the two moments remember");
    field("eps", eps, "added to the root of the second moment", above(0));
    field("weight_decay", weight_decay, "decoupled; matrices only, neither norms nor biases", at_least(0));
    field("moments", moments, "how the two moments are stored; bf16 halves their memory");
    field("offload_adam_states", offload_adam_states, "keep the moments in host memory and move them through the GPU in pieces");
  }
};

// What gradients of this norm are multiplied by, so that their norm is at most max_norm; 1 where max_norm is 0 (no clipping).
[[nodiscard]] double clip_coefficient(double norm, double max_norm);

// Not thread-safe. `parameters` must be trainable and outlive it.
class Optimizer {
 public:
  // UsageError for settings that make no sense.
  Optimizer(const OptimizerConfig& config, Parameters& parameters);

  void zero_gradients();
  // L2 norm of all gradients, before any clipping.
  [[nodiscard]] double gradient_norm() const;
  // One update with gradients multiplied by `grad_scale` (for clipping, clip_coefficient).
  void step(double lr, double grad_scale = 1);

  // All of its state: the moments, and how many updates were made.
  void save(StateSnapshot& snapshot) const;
  void load(const StateFiles& files);

  [[nodiscard]] int64_t num_steps() const { return num_steps_; }
  [[nodiscard]] const Tensor& first_moment() const { return first_; }
  [[nodiscard]] const Tensor& second_moment() const { return second_; }

 private:
  void update(int64_t begin, int64_t end, double lr, double grad_scale, double weight_decay);

  OptimizerConfig config_;
  Parameters& parameters_;
  Tensor first_, second_;
  int64_t num_steps_ = 0;
};

}  // namespace kedge
