#include "kedge/rollout/value_collector.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/data/files/sampler.h"
#include "kedge/dist/partition.h"
#include "kedge/rollout/rollout_exchange.h"

namespace kedge {

class ValueCollector::Rewards : public RewardSource {
 public:
  explicit Rewards(ValueCollector& collector) : collector_(collector) {}
  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override {
    return std::async(std::launch::deferred, [asked = collector_.rewards_of(rollouts)] {
      std::vector<RowReward> rewards;
      for (const Pending& one : asked) {
        const RolloutValues& reply = one.reply.get();
        ensure(one.place < reply.rewards.size(), "rewards of a critic that returns none");
        rewards.push_back(reply.rewards[one.place]);
      }
      return rewards;
    });
  }

 private:
  ValueCollector& collector_;
};

std::vector<ValueCollector::Pending> ValueCollector::ask_critic(const Rollouts& rollouts) {
  const std::shared_future<RolloutValues> reply = critic_.values(rollouts).share();
  std::vector<Pending> asked;
  for (size_t i = 0; i < rollouts.size(); ++i) asked.push_back({.rollout = rollouts[i], .reply = reply, .place = i});
  return asked;
}

void ValueCollector::ask(Rollouts rollouts) {
  const std::lock_guard lock(mutex_);
  for (Pending& one : ask_critic(rollouts)) pending_[one.rollout.get()] = std::move(one);
}

std::vector<ValueCollector::Pending> ValueCollector::rewards_of(const Rollouts& rollouts) {
  const std::lock_guard lock(mutex_);
  const bool are_known = std::all_of(rollouts.begin(), rollouts.end(), [&](const auto& rollout) {
    const auto found = pending_.find(rollout.get());
    return found != pending_.end() && !found->second.is_rewarded;
  });
  if (!are_known) return ask_critic(rollouts);
  std::vector<Pending> asked;
  for (const auto& rollout : rollouts) {
    Pending& one = pending_.at(rollout.get());
    one.is_rewarded = true;
    asked.push_back(one);
  }
  return asked;
}

std::unique_ptr<RewardSource> ValueCollector::rewards() { return std::make_unique<Rewards>(*this); }

void ValueCollector::take(const Group& group, RolloutRows& rows) {
  critic_.finish_training();  // if it failed there are no values, and every rank must know
  std::map<const Rollout*, Pending> pending;
  {
    const std::lock_guard lock(mutex_);
    pending = std::exchange(pending_, {});
  }
  std::array<double, 1> num_asked = {static_cast<double>(pending.size())};
  group.all_reduce(std::span<double>(num_asked), Reduce::sum);
  if (num_asked[0] == 0) {
    const Share share = share_of(static_cast<int64_t>(rows.size()), group.rank(), group.size());
    Rollouts own;
    for (int64_t i = share.begin; i < share.end; ++i) own.push_back(rows[static_cast<size_t>(i)].rollout);
    if (!own.empty()) {
      const std::lock_guard lock(mutex_);
      for (Pending& one : ask_critic(own)) pending[one.rollout.get()] = std::move(one);
    }
  }
  critic_.compute_values();
  std::vector<int64_t> own;
  for (size_t i = 0; i < rows.size(); ++i) {
    RolloutRow& row = rows[i];
    const auto found = pending.find(row.rollout.get());
    if (found == pending.end()) continue;
    const std::vector<float>& values = found->second.reply.get().values.at(found->second.place);
    ensure(std::ssize(values) == row.rollout->length() - 1, values.size(), " values of ", row.rollout->length(), " tokens");
    // The one after the prompt's last id is what is expected before the answer's first.
    row.values.assign(values.end() - row.rollout->response_length(), values.end());
    own.push_back(static_cast<int64_t>(i));
  }
  exchange_values(group, own, rows);
}

}  // namespace kedge
