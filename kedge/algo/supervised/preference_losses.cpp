#include "kedge/algo/supervised/preference_losses.h"

#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// The distance of Bernoulli(sigmoid(q)) from Bernoulli(sigmoid(p)), with the former's probabilities as weights.
Tensor bernoulli_kl(const Tensor& q, const Tensor& p) {
  return at::sigmoid(q) * (at::log_sigmoid(q) - at::log_sigmoid(p)) + at::sigmoid(-q) * (at::log_sigmoid(-q) - at::log_sigmoid(-p));
}

}  // namespace

Tensor dpo_losses(const DpoLossOptions& options, const Tensor& margins, const Tensor& gaps) {
  const Tensor scaled = margins * options.beta;
  switch (options.kind) {
    case DpoLoss::dpo:
      if (options.label_smoothing == 0) return -at::log_sigmoid(scaled);
      return at::log_sigmoid(scaled) * (options.label_smoothing - 1) - at::log_sigmoid(-scaled) * options.label_smoothing;
    case DpoLoss::ipo:
      return (margins - 1 / (2 * options.beta)).square();
    case DpoLoss::hinge:
      return at::relu(1 - scaled);
    case DpoLoss::rpo_sq:
      return (scaled - gaps).square();
    case DpoLoss::rpo_bwd_kl:
      return bernoulli_kl(gaps, scaled);
    case DpoLoss::rpo_fwd_kl:
      return bernoulli_kl(scaled, gaps);
  }
  throw Bug("a preference loss without a formula");
}

Tensor kto_losses(const KtoLossOptions& options, const Tensor& ratios, const Tensor& desirable, double kl) {
  const Tensor above = (ratios - kl) * options.beta;
  return at::where(desirable, (1 - at::sigmoid(above)) * options.desirable_weight, (1 - at::sigmoid(-above)) * options.undesirable_weight);
}

}  // namespace kedge
