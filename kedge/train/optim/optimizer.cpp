#include "kedge/train/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/train/optim/adamw.h"
#include "kedge/train/optim/gradient_norm.h"

namespace kedge {
namespace {

int64_t own_size(const Parameters& parameters) {
  int64_t size = 0;
  for (const Parameters::OwnPart& part : parameters.own_parts()) size += length(part.range);
  return size;
}

}  // namespace

double clip_coefficient(double norm, double max_norm) { return max_norm <= 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6)); }

Optimizer::Optimizer(const OptimizerConfig& config, Parameters& parameters) : config_(config), parameters_(parameters) {
  ensure(parameters.options().trainable, "an optimizer of parameters that do not train");
  check(config_.betas.size() == 2, "optim.betas: expected two numbers, found ", config_.betas.size());
  for (const double beta : config_.betas) check(beta >= 0 && beta < 1, "optim.betas: ", beta, " is not in [0, 1)");
  if (config_.name == OptimizerKind::sgd) return;
  const at::Device device = parameters.options().device;
  auto options = at::TensorOptions(device).dtype(config_.moments == MomentType::fp32 ? at::kFloat : at::kBFloat16);
  if (config_.offload_adam_states && device.is_cuda()) options = options.device(at::kCPU).pinned_memory(true);
  first_ = at::zeros({own_size(parameters)}, options);
  second_ = at::zeros({own_size(parameters)}, options);
}

double Optimizer::gradient_norm() const { return kedge::gradient_norm(parameters_); }

double Optimizer::decay_of(const Parameters::OwnPart& part) const {
  return part.range.begin < parameters_.num_decaying() ? config_.weight_decay : 0;
}

void Optimizer::update(const Parameters::OwnPart& part, int64_t own_begin, double lr, double grad_scale) {
  const AdamWStep step{lr, config_.betas[0], config_.betas[1], config_.eps, decay_of(part), num_steps_, grad_scale};
  const bool away = first_.device() != part.master.device();
  const int64_t size = length(part.range), piece = away ? int64_t{1} << 27U : std::max<int64_t>(size, 1);
  const bool publishes = part.value.data_ptr() != part.master.data_ptr();
  for (int64_t at = 0; at < size; at += piece) {
    const int64_t count = std::min(piece, size - at);
    const auto slice = [&](const Tensor& row) { return row.narrow(0, at, count); };
    const auto of_moment = [&](const Tensor& moment) { return moment.narrow(0, own_begin + at, count); };
    const auto here = [&](const Tensor& moment) { return away ? of_moment(moment).to(part.master.device(), true) : of_moment(moment); };
    const AdamWTensors tensors{slice(part.master), slice(part.gradient), here(first_), here(second_),
                               publishes ? slice(part.value) : Tensor()};
    adamw_update(tensors, step);
    if (!away) continue;
    of_moment(first_).copy_(tensors.first);
    of_moment(second_).copy_(tensors.second);
  }
}

void Optimizer::descend(const Parameters::OwnPart& part, double lr, double grad_scale) const {
  part.master.mul_(1 - lr * decay_of(part));
  part.master.add_(part.gradient, -lr * grad_scale);
}

void Optimizer::step(double lr, double grad_scale) {
  const NoGrad no_grad;
  ++num_steps_;
  const bool is_sgd = config_.name == OptimizerKind::sgd;
  for (int64_t begin = 0; const Parameters::OwnPart& part : parameters_.own_parts()) {
    is_sgd ? descend(part, lr, grad_scale) : update(part, begin, lr, grad_scale);
    begin += length(part.range);
  }
  is_sgd ? parameters_.publish() : parameters_.share_values();
}

// A moment's slices for each of the own parts.
std::vector<Tensor> Optimizer::cut(const Tensor& moment) const {
  std::vector<Tensor> slices;
  for (int64_t begin = 0; const Parameters::OwnPart& part : parameters_.own_parts()) {
    slices.push_back(moment.narrow(0, begin, length(part.range)));
    begin += length(part.range);
  }
  return slices;
}

void Optimizer::save_moment(StateSnapshot& snapshot, const std::string& name, const Tensor& moment) const {
  if (moment.numel() == parameters_.whole_size()) return snapshot.add(name, moment);
  for (const FlatRow& row : parameters_.rows_to_save(cut(moment)))
    snapshot.add_part(name, {row.begin, parameters_.whole_size()}, row.values);
}

void Optimizer::load_moment(const StateFiles& files, const std::string& name, const Tensor& moment) const {
  parameters_.restore_rows(cut(moment), moment.scalar_type(), [&](const FlatRow& row) {
    files.read_part(name, {row.begin, parameters_.whole_size()}, row.values);
  });
}

void Optimizer::save(StateSnapshot& snapshot) const {
  const NoGrad no_grad;
  if (first_.defined() && !parameters_.is_copy()) {
    save_moment(snapshot, "optimizer.first_moment", first_);
    save_moment(snapshot, "optimizer.second_moment", second_);
  }
  snapshot.set("optimizer.steps", num_steps_);
}

void Optimizer::load(const StateFiles& files) {
  if (first_.defined()) {
    load_moment(files, "optimizer.first_moment", first_);
    load_moment(files, "optimizer.second_moment", second_);
  }
  num_steps_ = files.at("optimizer.steps").as_integer("optimizer.steps");
}

}  // namespace kedge
