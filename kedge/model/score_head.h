#pragma once
// Rewards and values from hidden states: one linear layer, pooled to a row of numbers per sequence or one number per token.
#include <string>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/model/model.h"

namespace kedge {

// Which hidden state represents a row: that of its last token, or the mean or the elementwise maximum over its tokens.
enum class Pooling { last, mean, max };
constexpr auto enum_names(Pooling) {
  return std::array<EnumName<Pooling>, 3>{{{"last", Pooling::last}, {"mean", Pooling::mean}, {"max", Pooling::max}}};
}

// A model is scored as it was trained: the pooling is in its config.json. Without a note it is the last token's.
void note_pooling(Model& model, Pooling pooling);
[[nodiscard]] Pooling noted_pooling(const ModelConfig& config);

// (x - mean) / std of the output of a ranking reward model or a critic.
struct Standardization {
  bool enable = false;
  double mean = 0, std = 1;

  void fields(auto&& field) {
    field("enable", enable, "return (x - mean) / std");
    field("mean", mean, "mean reward of the initial policy's responses");
    field("std", std, "their standard deviation", above(0));
  }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return enable ? (x - mean) / std : x; }
};

// The head on every row of `states` [rows, hidden]: fp32 [rows, labels]; differentiable. The product is taken in fp32.
[[nodiscard]] Tensor score_states(const Model& model, const Tensor& states);

// fp32 [rows, labels].
[[nodiscard]] Tensor row_scores(const Model& model, const PackedBatch& batch, Pooling pooling, const PassOptions& pass = {});
// fp32 [tokens, labels].
[[nodiscard]] Tensor token_scores(const Model& model, const PackedBatch& batch, const PassOptions& pass = {});

// The weighted sum of the labels, [...]; empty weights: their mean. UsageError (opening with `where`) if their number is not that
// of the labels.
[[nodiscard]] Tensor merge_labels(const Tensor& scores, const std::vector<double>& weights, const std::string& where);

}  // namespace kedge
