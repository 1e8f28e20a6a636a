#include "kedge/rollout/recorded_sources.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Of a function that is called at once; what it throws, the future does.
template <typename Function>
auto ready(Function&& function) -> std::future<decltype(function())> {
  std::packaged_task<decltype(function())()> task(std::forward<Function>(function));
  task();
  return task.get_future();
}

}  // namespace

std::future<RolloutValues> RecordedCritic::values(Rollouts rollouts) {
  return ready([&] {
    RolloutValues result;
    for (const auto& rollout : rollouts) {
      const RolloutRow* row = find_(*rollout);
      check(row != nullptr && std::ssize(row->values) == rollout->response_length(), "prompt ", rollout->prompt_id,
            ": no values of its answer are recorded, and a replay queries no critic; rollouts.keep=all keeps those of every step");
      std::vector<float>& values = result.values.emplace_back(static_cast<size_t>(rollout->length() - 1), 0.0F);
      std::copy(row->values.rbegin(), row->values.rend(), values.rbegin());
    }
    return result;
  });
}

std::shared_future<void> RecordedCritic::save(int64_t /*actor_step*/, const std::vector<int64_t>& /*resumable_steps*/) {
  return ready([] {}).share();
}

RowReward RecordedReward::reward_of(const Rollout& rollout) const {
  const RolloutRow* row = find_(rollout);
  check(row != nullptr, "prompt ", rollout.prompt_id, ": the reward from ", key_,
        " for its answer is not recorded; --servers queries reward servers again, rollouts.keep=all keeps every step");
  RowReward reward;
  const std::string inside = label_ + "/";
  bool is_known = false;
  for (const auto& [name, value] : row->reward.parts) {
    if (name == label_) {
      is_known = true;
      reward.value = value;
    } else if (name.starts_with(inside)) {
      reward.parts.emplace_back(name.substr(inside.size()), value);
    }
  }
  if (!is_known) reward = {.error = row->reward.failed() ? row->reward.error : str(key_, " gave no reward for it")};
  return reward;
}

std::future<std::vector<RowReward>> RecordedReward::submit(Rollouts rollouts) {
  return ready([&] {
    std::vector<RowReward> rewards;
    for (const auto& rollout : rollouts) rewards.push_back(reward_of(*rollout));
    return rewards;
  });
}

}  // namespace kedge
