#include "kedge/algo/online/algorithm.h"

namespace kedge {

void add_kl(RolloutRows& rows, KlEstimator estimator) {
  for (RolloutRow& row : rows) {
    if (row.reference.empty()) continue;
    row.kl_mean = answer_kl(estimator, KlReduce::mean, row.logprobs, row.reference);
    row.kl_sum = answer_kl(estimator, KlReduce::sum, row.logprobs, row.reference);
  }
}

}  // namespace kedge
