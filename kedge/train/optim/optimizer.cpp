#include "kedge/train/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/linalg_vector_norm.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/train/optim/adamw.h"

namespace kedge {
namespace {

// Shares are cut between blocks of this many elements, as parameters are, so that kernels find every share aligned.
constexpr int64_t kBlock = 128;

}  // namespace

double clip_coefficient(double norm, double max_norm) { return max_norm == 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6)); }

Optimizer::Optimizer(const OptimizerConfig& config, Parameters& parameters, Group group)
    : config_(config),
      parameters_(parameters),
      group_(std::move(group)),
      is_shared_(config.name == OptimizerKind::distributed_fused_adam && group_.size() > 1),
      share_(share_of_rank(group_.rank())) {
  ensure(parameters.options().trainable, "an optimizer of parameters that do not train");
  check(config_.betas.size() == 2, "optim.betas: expected two numbers, found ", config_.betas.size());
  for (const double beta : config_.betas) check(beta >= 0 && beta < 1, "optim.betas: ", beta, " is not in [0, 1)");
  if (config_.name == OptimizerKind::sgd) return;
  auto options = parameters.flat_gradient().options().dtype(config_.moments == MomentType::fp32 ? at::kFloat : at::kBFloat16);
  if (config_.offload_adam_states && parameters.options().device.is_cuda()) options = options.device(at::kCPU).pinned_memory(true);
  first_ = at::zeros({share_.end - share_.begin}, options);
  second_ = at::zeros({share_.end - share_.begin}, options);
}

Share Optimizer::share_of_rank(int rank) const {
  const int64_t size = parameters_.flat().numel();
  if (!is_shared_) return {0, size};
  const Share blocks = share_of(size / kBlock, rank, group_.size());
  return {blocks.begin * kBlock, blocks.end * kBlock};
}

// Calls use(begin, values) for every piece of what the ranks hold together; `own` is this rank's share of it. One piece per rank is in
// memory at a time.
template <typename F>
void Optimizer::gather(const Tensor& own, F&& use) const {
  constexpr int64_t kPiece = int64_t{1} << 20U;
  int64_t longest = 0;
  for (int rank = 0; rank < group_.size(); ++rank) longest = std::max(longest, share_of_rank(rank).end - share_of_rank(rank).begin);
  for (int64_t at = 0; at < longest; at += kPiece) {
    const auto piece_of = [&](int rank) {
      const Share share = share_of_rank(rank);
      const int64_t begin = std::min(share.begin + at, share.end);
      return Share{begin, std::min(begin + kPiece, share.end)};
    };
    const Share mine = piece_of(group_.rank());
    const Tensor all = group_.all_gather_rows(own.narrow(0, mine.begin - share_.begin, mine.end - mine.begin));
    int64_t from = 0;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const Share piece = piece_of(rank);
      use(piece.begin, all.narrow(0, from, piece.end - piece.begin));
      from += piece.end - piece.begin;
    }
  }
}

void Optimizer::zero_gradients() {
  Tensor gradient = parameters_.flat_gradient();
  gradient.zero_();
}

double Optimizer::gradient_norm() const { return at::linalg_vector_norm(parameters_.flat_gradient()).item<double>(); }

void Optimizer::update(Share part, double lr, double grad_scale, double weight_decay) {
  const int64_t begin = std::max(part.begin, share_.begin), end = std::min(part.end, share_.end);
  const AdamWStep step{lr, config_.betas[0], config_.betas[1], config_.eps, weight_decay, num_steps_, grad_scale};
  const bool away = first_.device() != parameters_.flat().device();
  const int64_t piece = away ? int64_t{1} << 27U : end - begin;
  const bool publishes = !parameters_.flat().is_same(parameters_.flat_master());
  for (int64_t at = begin; at < end; at += piece) {
    const auto slice = [&](const Tensor& flat) { return flat.narrow(0, at, std::min(piece, end - at)); };
    const auto of_share = [&](const Tensor& moment) { return moment.narrow(0, at - share_.begin, std::min(piece, end - at)); };
    const auto here = [&](const Tensor& moment) {
      return away ? of_share(moment).to(parameters_.flat().device(), true) : of_share(moment);
    };
    const AdamWTensors tensors{slice(parameters_.flat_master()), slice(parameters_.flat_gradient()), here(first_), here(second_),
                               publishes ? slice(parameters_.flat()) : Tensor()};
    adamw_update(tensors, step);
    if (!away) continue;
    of_share(first_).copy_(tensors.first);
    of_share(second_).copy_(tensors.second);
  }
}

void Optimizer::descend(double lr, double grad_scale) {
  const Tensor master = parameters_.flat_master();
  master.narrow(0, 0, parameters_.num_decaying()).mul_(1 - lr * config_.weight_decay);
  master.add_(parameters_.flat_gradient(), -lr * grad_scale);
  parameters_.publish();
}

void Optimizer::step(double lr, double grad_scale) {
  const NoGrad no_grad;
  ++num_steps_;
  if (config_.name == OptimizerKind::sgd) return descend(lr, grad_scale);
  const int64_t decaying = parameters_.num_decaying();
  update({0, decaying}, lr, grad_scale, config_.weight_decay);
  update({decaying, parameters_.flat().numel()}, lr, grad_scale, 0);
  if (!is_shared_) return;
  const Tensor master = parameters_.flat_master();
  gather(master.narrow(0, share_.begin, share_.end - share_.begin),
         [&](int64_t begin, const Tensor& values) { master.narrow(0, begin, values.numel()).copy_(values); });
  parameters_.publish();
}

void Optimizer::save_moment(StateSnapshot& snapshot, const std::string& name, const Tensor& moment) const {
  const bool is_first = group_.rank() == 0;
  if (!is_shared_) {
    if (is_first) snapshot.add(name, moment);
    return;
  }
  Tensor whole = at::empty({is_first ? parameters_.flat().numel() : 0}, moment.options().device(at::kCPU).pinned_memory(false));
  gather(moment, [&](int64_t begin, const Tensor& values) {
    if (is_first) whole.narrow(0, begin, values.numel()).copy_(values);
  });
  if (is_first) snapshot.take(name, std::move(whole));
}

void Optimizer::save(StateSnapshot& snapshot) const {
  const NoGrad no_grad;
  if (first_.defined()) {
    save_moment(snapshot, "optimizer.first_moment", first_);
    save_moment(snapshot, "optimizer.second_moment", second_);
  }
  snapshot.set("optimizer.steps", num_steps_);
}

void Optimizer::load(const StateFiles& files) {
  if (first_.defined()) {
    const int64_t size = parameters_.flat().numel();
    files.read_part("optimizer.first_moment", {share_.begin, size}, first_);
    files.read_part("optimizer.second_moment", {share_.begin, size}, second_);
  }
  num_steps_ = files.at("optimizer.steps").as_integer("optimizer.steps");
}

}  // namespace kedge
