#include "kedge/critic/local_critic.h"

#include <utility>

namespace kedge {

template <typename Result>
std::future<Result> LocalCritic::later(std::function<Result()> task) {
  const auto packaged = std::make_shared<std::packaged_task<Result()>>(std::move(task));
  worker_.post([packaged] { (*packaged)(); });
  return packaged->get_future();
}

std::future<RolloutValues> LocalCritic::values(Rollouts rollouts) {
  return later<RolloutValues>([this, rollouts = std::move(rollouts)] {
    std::vector<TokenIds> rows;
    for (const auto& rollout : rollouts) rows.push_back(rollout->ids);
    const Tensor packed = critic_.values(rows);
    const auto* value = packed.const_data_ptr<float>();
    RolloutValues result;
    for (const TokenIds& row : rows) {
      result.values.emplace_back(value, value + row.size() - 1);  // nothing comes after the last
      value += row.size();
    }
    return result;
  });
}

void LocalCritic::train(CriticBatch batch) {
  finish_training();
  training_ = later<double>([this, batch = std::move(batch)] { return critic_.train(batch, {}).loss.value(); }).share();
}

void LocalCritic::finish_training() {
  const std::shared_future<double> training = std::exchange(training_, {});
  if (training.valid()) last_loss_ = training.get();
}

std::shared_future<void> LocalCritic::save(int64_t actor_step, int64_t resumable_step) {
  return later<void>([this, actor_step, resumable_step, training = training_] {
           if (training.valid()) (void)training.get();  // a critic without what failed must not be saved as this step's
           critic_.save(actor_step, {}, {}, resumable_step);
         })
      .share();
}

std::optional<int64_t> LocalCritic::restore(int64_t actor_step) {
  if (training_.valid()) std::exchange(training_, {}).wait();  // it is undone as well
  const CriticResult restored = later<CriticResult>([this, actor_step] { return critic_.restore(actor_step, {}); }).get();
  last_loss_ = restored.loss;
  return restored.train_calls;
}

}  // namespace kedge
