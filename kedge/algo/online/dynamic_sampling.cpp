#include "kedge/algo/online/dynamic_sampling.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kedge {

bool has_spread(const RolloutRows& responses, bool drops_unfinished) {
  const RolloutRow* first = nullptr;
  for (const RolloutRow& row : responses) {
    if (row.reward.failed() || (drops_unfinished && !row.rollout->finished)) continue;
    if (first == nullptr) first = &row;
    if (row.reward.value != first->reward.value) return true;
  }
  return false;
}

void GroupCollector::add(RolloutRows rows) {
  Groups groups;
  for (RolloutRow& row : rows) groups[row.slot].push_back(std::move(row));
  for (auto& [slot, responses] : groups) (has_spread(responses, drops_unfinished_) ? kept_ : dropped_)[slot] = std::move(responses);
}

RolloutRows GroupCollector::take() {
  while (std::ssize(kept_) > num_wanted_) kept_.erase(std::prev(kept_.end()));
  while (std::ssize(kept_) < num_wanted_ && !dropped_.empty()) kept_.insert(dropped_.extract(std::prev(dropped_.end())));
  RolloutRows rows;
  for (auto& [slot, responses] : kept_) std::move(responses.begin(), responses.end(), std::back_inserter(rows));
  return rows;
}

void leave_out_filling(RolloutRows& rows) {
  std::map<int64_t, std::pair<double, double>> bounds;  // of the rewards, by slot
  for (const RolloutRow& row : rows) {
    if (!row.trains) continue;
    auto& [least, most] = bounds.try_emplace(row.slot, row.reward.value, row.reward.value).first->second;
    least = std::min(least, row.reward.value);
    most = std::max(most, row.reward.value);
  }
  for (RolloutRow& row : rows) row.trains = row.trains && bounds[row.slot].first < bounds[row.slot].second;
}

int64_t num_batches_of(const RolloutRows& rows, int64_t batch_size) {
  int64_t last = 0;
  for (const RolloutRow& row : rows) last = std::max(last, row.slot);
  return last / batch_size + 1;
}

}  // namespace kedge
