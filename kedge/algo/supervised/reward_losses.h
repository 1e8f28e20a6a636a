#pragma once
// Losses of reward models: of pairs, of attribute values, and of pairs with a strength. Free functions, differentiable.
#include <array>

#include "kedge/config/config_schema.h"
#include "kedge/core/tensor.h"

namespace kedge {

// -log sigmoid(chosen - rejected) of every pair; all [pairs].
[[nodiscard]] Tensor ranking_losses(const Tensor& chosen, const Tensor& rejected);

// The mean squared distance of `scores` from `labels`, both [rows, attributes], over the labels that are not `masked_label`. A Bug if
// all are: the caller checks first.
[[nodiscard]] Tensor regression_loss(const Tensor& scores, const Tensor& labels, double masked_label);

enum class PreferenceLoss { regression, regular_bt, margin_bt, scaled_bt };
constexpr auto enum_names(PreferenceLoss) {
  return std::array<EnumName<PreferenceLoss>, 4>{{{"regression", PreferenceLoss::regression},
                                                  {"regular_bt", PreferenceLoss::regular_bt},
                                                  {"margin_bt", PreferenceLoss::margin_bt},
                                                  {"scaled_bt", PreferenceLoss::scaled_bt}}};
}

// Of answers A and B to one prompt, scalars. The label's sign shows which is better (below 0: A), its size by how much.
[[nodiscard]] Tensor strength_loss(PreferenceLoss kind, const Tensor& score_a, const Tensor& score_b, double label);

}  // namespace kedge
