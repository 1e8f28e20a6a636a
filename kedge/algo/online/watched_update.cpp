#include "kedge/algo/online/watched_update.h"

#include <array>
#include <utility>

namespace kedge {
namespace {

void count_tokens(const UpdateStep& step, const RolloutRows& rows, StepEvidence& seen) {
  for (size_t i = 0; i < step.weights.size(); ++i) {
    const RolloutRow& row = rows[static_cast<size_t>(step.minibatch.rows[i])];
    const auto num_drawn = std::ssize(row.rollout->logprobs);
    if (row.trains) seen.num_sampled += num_drawn == 0 ? row.rollout->response_length() : num_drawn;
    if (step.weights[i] != 0) seen.num_weighted += row.rollout->response_length();
  }
}

}  // namespace

Metrics watched_update(Policy& policy, const Group& group, UpdateStep step, RolloutRows& rows, bool observes, StepEvidence& seen) {
  count_tokens(step, rows, seen);
  std::array<double, 2> gap = {0, 0};  // sum over tokens, and their number
  step.loss = [&, loss = std::move(step.loss)](const PassTokens& tokens) {
    if (tokens.previous.defined() && !policy.drops_out()) {
      gap[0] += (tokens.logprobs.detach() - tokens.previous).abs().sum().item<double>();
      gap[1] += static_cast<double>(tokens.previous.numel());
    }
    return loss(tokens);
  };
  const bool may_learn = policy.next_rate() > 0;
  const std::string before = may_learn ? policy.weights_hash() : "";
  const Metrics numbers = observes ? policy.update_and_record(step, rows) : policy.update(step, rows);
  group.all_reduce(std::span<double>(gap), Reduce::sum);
  if (gap[1] > 0) seen.ratio_gap = gap[0] / gap[1];
  seen.learned = may_learn && numbers.find("grad_norm").value_or(0) > 0;
  seen.changed = !seen.learned || policy.weights_hash() != before;
  return numbers;
}

}  // namespace kedge
