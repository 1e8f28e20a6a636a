#include "kedge/reward/reward_scorer.h"

#include <algorithm>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {

RewardScorer::RewardScorer(const Model& model, RewardScorerOptions options)
    : model_(model),
      options_(std::move(options)),
      pooling_(options_.pooling.value_or(noted_pooling(model.config()))),
      merges_(options_.merge_attributes || !options_.attribute_weights.empty()) {
  const int64_t num_labels = model.head().num_labels;
  check(options_.attribute_weights.empty() || static_cast<int64_t>(options_.attribute_weights.size()) == num_labels, options_.weights_key,
        ": ", options_.attribute_weights.size(), " weights for ", num_labels, " labels");
  check(!options_.standardization.enable || (num_rewards() == 1 && !options_.is_regression), options_.standardization_key,
        ": standardises the one reward of a ranking model; this one has ", num_labels, num_labels == 1 ? " attribute" : " labels");
}

Tensor RewardScorer::score_together(std::span<const TokenIds> rows) const {
  const Tensor scores = row_scores(model_, pack_rows(rows, model_.device()), pooling_);
  if (!merges_) return options_.standardization.apply(scores).to(at::kCPU);
  return options_.standardization.apply(merge_labels(scores, options_.attribute_weights, options_.weights_key)).unsqueeze(1).to(at::kCPU);
}

Tensor RewardScorer::score(std::span<const TokenIds> rows) const {
  const NoGrad no_grad;
  std::vector<Tensor> parts;
  while (!rows.empty()) {
    const size_t count = rows_within(rows, options_.max_tokens);
    parts.push_back(score_together(rows.first(count)));
    rows = rows.subspan(count);
  }
  return parts.empty() ? at::empty({0, num_rewards()}, at::kFloat) : at::cat(parts).contiguous();
}

}  // namespace kedge
