#include "kedge/critic/local_critic.h"

#include <utility>

#include "kedge/core/error.h"

namespace kedge {

template <typename Result>
std::future<Result> LocalCritic::later(std::function<Result()> task) {
  const auto packaged = std::make_shared<std::packaged_task<Result()>>(std::move(task));
  if (is_collective()) {
    (*packaged)();
  } else {
    worker_.post([packaged] { (*packaged)(); });
  }
  return packaged->get_future();
}

// The calls' rollouts are computed together, and their values returned by call.
std::vector<RolloutValues> LocalCritic::values_of(std::span<const Rollouts> calls) const {
  std::vector<TokenIds> rows;
  for (const Rollouts& rollouts : calls)
    for (const auto& rollout : rollouts) rows.push_back(rollout->ids);
  const Tensor packed = critic_.values(rows);
  const auto* value = packed.const_data_ptr<float>();
  std::vector<RolloutValues> results;
  for (const Rollouts& rollouts : calls) {
    RolloutValues& result = results.emplace_back();
    for (const auto& rollout : rollouts) {
      const size_t size = rollout->ids.size();
      result.values.emplace_back(value, value + size - 1);  // nothing comes after the last
      value += size;
    }
  }
  return results;
}

std::future<RolloutValues> LocalCritic::values(Rollouts rollouts) {
  if (!is_collective())
    return later<RolloutValues>([this, rollouts = std::move(rollouts)] { return std::move(values_of({&rollouts, 1}).front()); });
  asked_.push_back(std::move(rollouts));
  return promised_.emplace_back().get_future();
}

void LocalCritic::compute_values() {
  if (!is_collective()) return;
  std::vector<RolloutValues> results = values_of(asked_);
  for (size_t i = 0; i < results.size(); ++i) promised_[i].set_value(std::move(results[i]));
  asked_.clear();
  promised_.clear();
}

void LocalCritic::train(CriticBatch batch) {
  finish_training();
  ensure(asked_.empty(), "a critic that is trained before the values it was asked for are computed");
  training_ = later<double>([this, batch = std::move(batch)] { return critic_.train(batch, {}).loss.value(); }).share();
  if (is_collective()) static_cast<void>(training_.get());  // a rank whose training failed must not go on to the policy's
}

void LocalCritic::finish_training() {
  const std::shared_future<double> training = std::exchange(training_, {});
  if (training.valid()) last_loss_ = training.get();
}

std::shared_future<void> LocalCritic::save(int64_t actor_step, const std::vector<int64_t>& resumable_steps) {
  const std::shared_future<void> saving = later<void>([this, actor_step, resumable_steps, training = training_] {
                                            if (training.valid())
                                              (void)training.get();  // a critic without what failed must not be saved as this step's
                                            critic_.save(actor_step, {}, {}, resumable_steps);
                                          }).share();
  if (is_collective() && !critic_.keeps_folder()) saving.get();  // rank 0 has the others' problems, but for those that end a rank
  return saving;
}

std::optional<int64_t> LocalCritic::restore(int64_t actor_step) {
  if (training_.valid()) std::exchange(training_, {}).wait();  // it is undone as well
  const CriticResult restored = later<CriticResult>([this, actor_step] { return critic_.restore(actor_step, {}); }).get();
  last_loss_ = restored.loss;
  return restored.train_calls;
}

}  // namespace kedge
