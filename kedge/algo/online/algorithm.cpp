#include "kedge/algo/online/algorithm.h"

namespace kedge {

std::vector<double> token_kls(const RolloutRow& row, KlEstimator estimator) {
  std::vector<double> kls(static_cast<size_t>(row.rollout->response_length()), 0);
  if (row.reference.empty()) return kls;
  for (size_t i = 0; i < kls.size(); ++i) kls[i] = token_kl(estimator, row.logprobs[i], row.reference[i]);
  return kls;
}

void add_kl(RolloutRows& rows, KlEstimator estimator) {
  for (RolloutRow& row : rows) {
    if (row.reference.empty() || row.logprobs.empty()) continue;
    row.kl_mean = answer_kl(estimator, KlReduce::mean, row.logprobs, row.reference);
    row.kl_sum = answer_kl(estimator, KlReduce::sum, row.logprobs, row.reference);
  }
}

}  // namespace kedge
