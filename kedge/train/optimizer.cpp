#include "kedge/train/optimizer.h"

#include <algorithm>

#include <ATen/ops/linalg_vector_norm.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/train/adamw.h"

namespace kedge {

double clip_coefficient(double norm, double max_norm) { return max_norm == 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6)); }

Optimizer::Optimizer(const OptimizerConfig& config, Parameters& parameters) : config_(config), parameters_(parameters) {
  ensure(parameters.options().trainable, "an optimizer of parameters that do not train");
  check(config_.betas.size() == 2, "optim.betas: wants two numbers, found ", config_.betas.size());
  for (const double beta : config_.betas) check(beta >= 0 && beta < 1, "optim.betas: ", beta, " is not in [0, 1)");
  auto options = parameters.flat_gradient().options().dtype(config_.moments == MomentType::fp32 ? at::kFloat : at::kBFloat16);
  if (config_.offload_adam_states && parameters.options().device.is_cuda()) options = options.device(at::kCPU).pinned_memory(true);
  first_ = at::zeros({parameters.flat().numel()}, options);
  second_ = at::zeros({parameters.flat().numel()}, options);
}

void Optimizer::zero_gradients() {
  Tensor gradient = parameters_.flat_gradient();
  gradient.zero_();
}

double Optimizer::gradient_norm() const { return at::linalg_vector_norm(parameters_.flat_gradient()).item<double>(); }

void Optimizer::update(int64_t begin, int64_t end, double lr, double grad_scale, double weight_decay) {
  const AdamWStep step{lr, config_.betas[0], config_.betas[1], config_.eps, weight_decay, num_steps_, grad_scale};
  const bool away = first_.device() != parameters_.flat().device();
  const int64_t piece = away ? int64_t{1} << 27U : end - begin;
  const bool publishes = !parameters_.flat().is_same(parameters_.flat_master());
  for (int64_t at = begin; at < end; at += piece) {
    const auto slice = [&](const Tensor& flat) { return flat.narrow(0, at, std::min(piece, end - at)); };
    const auto here = [&](const Tensor& moment) { return away ? slice(moment).to(parameters_.flat().device(), true) : slice(moment); };
    const AdamWTensors tensors{slice(parameters_.flat_master()), slice(parameters_.flat_gradient()), here(first_), here(second_),
                               publishes ? slice(parameters_.flat()) : Tensor()};
    adamw_update(tensors, step);
    if (!away) continue;
    slice(first_).copy_(tensors.first);
    slice(second_).copy_(tensors.second);
  }
}

void Optimizer::step(double lr, double grad_scale) {
  const NoGrad no_grad;
  ++num_steps_;
  const int64_t decaying = parameters_.num_decaying(), all = parameters_.flat().numel();
  update(0, decaying, lr, grad_scale, config_.weight_decay);
  update(decaying, all, lr, grad_scale, 0);
}

void Optimizer::save(StateSnapshot& snapshot) const {
  snapshot.add("optimizer.first_moment", first_);
  snapshot.add("optimizer.second_moment", second_);
  snapshot.set("optimizer.steps", num_steps_);
}

void Optimizer::load(const StateFiles& files) {
  files.read("optimizer.first_moment", first_);
  files.read("optimizer.second_moment", second_);
  num_steps_ = files.at("optimizer.steps").as_integer("optimizer.steps");
}

}  // namespace kedge
