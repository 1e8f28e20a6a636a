#include "kedge/algo/online/rollout_correction.h"

#include <algorithm>
#include <cmath>

#include "kedge/core/error.h"

namespace kedge {
namespace {

bool is_inside(double ratio, const RolloutCorrectionConfig& config) {
  return ratio >= config.rollout_correction_range[0] && ratio <= config.rollout_correction_range[1];
}

double ratio_of(float trained, float generated) { return std::exp(double{trained} - double{generated}); }

}  // namespace

void check_correction(const RolloutCorrectionConfig& config, const std::string& section) {
  const std::vector<double>& range = config.rollout_correction_range;
  check(range.size() == 2 && range[0] < range[1], section, ".rollout_correction_range: expected two numbers, the smaller first");
}

std::vector<float> correction_weights(std::span<const float> trained, std::span<const float> generated,
                                      const RolloutCorrectionConfig& config) {
  ensure(trained.size() == generated.size(), trained.size(), " log-probs, but ", generated.size(), " of the engine");
  std::vector<float> weights;
  double log_product = 0;
  for (size_t i = 0; i < trained.size(); ++i) {
    const double ratio = ratio_of(trained[i], generated[i]);
    log_product += double{trained[i]} - double{generated[i]};
    double weight = 1;
    if (config.rollout_correction == RolloutCorrection::tis) weight = std::min(ratio, config.rollout_correction_max);
    if (config.rollout_correction == RolloutCorrection::icepop) weight = is_inside(ratio, config) ? ratio : 0;
    weights.push_back(static_cast<float>(weight));
  }
  if (config.rollout_correction == RolloutCorrection::sequence_mask && !is_inside(std::exp(log_product), config))
    std::fill(weights.begin(), weights.end(), 0.0F);
  return weights;
}

Metrics add_correction(RolloutRows& rows, const RolloutCorrectionConfig& config) {
  Metrics metrics;
  if (config.rollout_correction == RolloutCorrection::none) return metrics;
  double sum = 0, max = 0;
  int64_t count = 0, num_clipped = 0;
  for (RolloutRow& row : rows) {
    const std::vector<float>& generated = row.rollout->logprobs;
    if (row.logprobs.empty() || generated.empty()) continue;
    row.correction = correction_weights(row.logprobs, generated, config);
    for (size_t i = 0; i < row.correction.size(); ++i) {
      const double ratio = ratio_of(row.logprobs[i], generated[i]);
      sum += ratio;
      max = std::max(max, ratio);
      const double plain = config.rollout_correction == RolloutCorrection::sequence_mask ? 1 : ratio;
      num_clipped += row.correction[i] == static_cast<float>(plain) ? 0 : 1;
      ++count;
    }
  }
  if (count == 0) return metrics;
  metrics.set("rollout_correction_mean", sum / static_cast<double>(count));
  metrics.set("rollout_correction_max", max);
  metrics.set("rollout_correction_clipped", static_cast<double>(num_clipped) / static_cast<double>(count));
  return metrics;
}

}  // namespace kedge
