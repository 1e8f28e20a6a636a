#pragma once
// Losses of DPO and its relatives, and of KTO: free functions of how much more likely the policy makes a response than the reference does.
// Differentiable; independent of networks and data.
#include <array>

#include "kedge/config/config_schema.h"
#include "kedge/core/tensor.h"

namespace kedge {

enum class DpoLoss { dpo, ipo, hinge, rpo_sq, rpo_bwd_kl, rpo_fwd_kl };
constexpr auto enum_names(DpoLoss) {
  return std::array<EnumName<DpoLoss>, 7>{{{"dpo", DpoLoss::dpo},
                                           {"sigmoid", DpoLoss::dpo},
                                           {"ipo", DpoLoss::ipo},
                                           {"hinge", DpoLoss::hinge},
                                           {"rpo_sq", DpoLoss::rpo_sq},
                                           {"rpo_bwd_kl", DpoLoss::rpo_bwd_kl},
                                           {"rpo_fwd_kl", DpoLoss::rpo_fwd_kl}}};
}

struct DpoLossOptions {
  DpoLoss kind = DpoLoss::dpo;
  double beta = 0.2;
  double label_smoothing = 0;  // of kind dpo: the probability that a pair is the wrong way round
};

// Of every pair, [pairs]. `margins`: log-ratio of the better response minus that of the worse one, where a log-ratio is the policy's
// log-probability minus the reference's. `gaps`: the difference of the given rewards, scaled; only the rpo losses use it.
[[nodiscard]] Tensor dpo_losses(const DpoLossOptions& options, const Tensor& margins, const Tensor& gaps);

struct KtoLossOptions {
  double beta = 0.2;
  double desirable_weight = 1, undesirable_weight = 1;
};

// Of every response, [rows]: weighted by whether it is `desirable` (bool). `ratios`: log-ratios. `kl`: the batch's estimate of how far the
// policy is from the reference, at least 0; no gradient goes through it.
[[nodiscard]] Tensor kto_losses(const KtoLossOptions& options, const Tensor& ratios, const Tensor& desirable, double kl);

}  // namespace kedge
