#include "kedge/algo/supervised/reward_losses.h"

#include <cmath>

#include <ATen/ops/log_sigmoid.h>

#include "kedge/core/error.h"

namespace kedge {

Tensor ranking_losses(const Tensor& chosen, const Tensor& rejected) { return -at::log_sigmoid(chosen - rejected); }

Tensor regression_loss(const Tensor& scores, const Tensor& labels, double masked_label) {
  const Tensor counts = labels.ne(masked_label).to(scores.scalar_type());
  const Tensor number = counts.sum();
  ensure(number.item<double>() > 0, "a regression loss without labels");
  return ((scores - labels).square() * counts).sum() / number;
}

Tensor strength_loss(PreferenceLoss kind, const Tensor& score_a, const Tensor& score_b, double label) {
  const Tensor distance = label < 0 ? score_a - score_b : score_b - score_a;
  const double strength = std::abs(label);
  switch (kind) {
    case PreferenceLoss::regular_bt:
      return -at::log_sigmoid(distance);
    case PreferenceLoss::margin_bt:
      return -at::log_sigmoid(distance - strength);
    case PreferenceLoss::scaled_bt:
      return -strength * at::log_sigmoid(distance);
    case PreferenceLoss::regression:
      break;
  }
  throw Bug("a regression has no strengths");
}

}  // namespace kedge
