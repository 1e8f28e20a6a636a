#include "kedge/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace kedge {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Log of the sum of exponentials, in double so that neither the order of a vocabulary nor its size shows.
double log_sum_of(std::span<const float> logits, float most) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

int32_t likeliest(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());  // the first of equals
}

void penalise(std::span<float> logits, std::span<const int32_t> used, double penalty) {
  if (penalty == 1) return;
  for (const int32_t id : std::set<int32_t>(used.begin(), used.end()))
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] /= static_cast<float>(penalty);
}

void keep_top_k(std::span<float> logits, int64_t k) {
  if (k <= 0 || static_cast<size_t>(k) >= logits.size()) return;
  std::vector<float> order(logits.begin(), logits.end());
  std::nth_element(order.begin(), order.begin() + k - 1, order.end(), std::greater<>());
  const float least = order[static_cast<size_t>(k - 1)];
  for (float& logit : logits)
    if (logit < least) logit = kNever;
}

// Everything behind the first token with which the probabilities, from the largest on, exceed p.
void keep_top_p(std::span<float> logits, double p) {
  if (p <= 0 || p >= 1) return;
  std::vector<int32_t> order;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != kNever) order.push_back(static_cast<int32_t>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
  const double log_sum = log_sum_of(logits, logits[static_cast<size_t>(order.front())]);
  double sum = 0;
  bool enough = false;
  for (const int32_t id : order) {
    float& logit = logits[static_cast<size_t>(id)];
    sum += std::exp(static_cast<double>(logit) - log_sum);
    if (enough) logit = kNever;
    enough = enough || sum > p;
  }
}

// The token in whose share of [0, 1), in the order of ids, `uniform` falls.
int32_t pick(std::span<const float> logits, double uniform) {
  const float most = logits[static_cast<size_t>(likeliest(logits))];
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - most);
  const double wanted = uniform * total;
  double sum = 0;
  int32_t last = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kNever) continue;
    sum += std::exp(static_cast<double>(logits[i]) - most);
    last = static_cast<int32_t>(i);
    if (sum > wanted) return last;
  }
  return last;  // rounding left a sliver at the end
}

}  // namespace

std::optional<Drawn> draw_token(std::span<const float> logits, const SamplingConfig& config, const SamplingRow& row,
                                std::vector<float>& scratch) {
  if (std::any_of(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit) || logit == -kNever; })) return std::nullopt;
  scratch.assign(logits.begin(), logits.end());
  const std::span<float> changed(scratch);
  for (const int32_t id : row.not_yet)
    if (id >= 0 && static_cast<size_t>(id) < changed.size()) changed[static_cast<size_t>(id)] = kNever;
  if (row.vocab_size > 0)
    for (size_t i = static_cast<size_t>(row.vocab_size); i < changed.size(); ++i) changed[i] = kNever;
  if (std::all_of(changed.begin(), changed.end(), [](float logit) { return logit == kNever; })) return std::nullopt;

  int32_t token = 0;
  if (config.use_greedy) {
    token = likeliest(changed);
  } else {
    for (float& logit : changed) logit /= static_cast<float>(config.temperature);
    penalise(changed, row.used, config.repetition_penalty);
    keep_top_k(changed, config.top_k);
    keep_top_p(changed, config.top_p);
    token = pick(changed, row.uniform);
  }
  const double log_sum = log_sum_of(logits, *std::max_element(logits.begin(), logits.end()));
  return Drawn{token, static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum)};
}

}  // namespace kedge
