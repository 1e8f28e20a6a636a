#include "kedge/algo/online/critic_training.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {

void CriticTraining::restore_once(int64_t step) {
  if (std::exchange(is_restored_, true)) return;
  const std::optional<int64_t> found = critic_.restore(step);
  if (!found) return;
  if (train_calls_ && *train_calls_ != *found)
    throw Error(str("policy and critic do not match: at step ", step, " the policy's checkpoint was saved after ", *train_calls_,
                    " training calls of the critic, but the critic's save of that step has ", *found,
                    ". Use the critic that this run was saved with, or start again in another exp_manager.explicit_log_dir"));
  train_calls_ = found;
}

void CriticTraining::train(const RolloutRows& rows) {
  CriticBatch batch = critic_batch(rows, epochs_);
  if (batch.num_rows == 0) return;
  critic_.train(std::move(batch));
  if (train_calls_) ++*train_calls_;
}

FolderWriter CriticTraining::save(StateSnapshot& state, int64_t step, const std::function<FolderWriter()>& save_policy) const {
  // Only both together are a checkpoint. The critic writes while the policy does, unless training waits meanwhile: then it saves when the
  // policy's part is on disk, so that the few saves it keeps are not newer than what is on a full disk here. One that ranks hold together
  // saves now, on all of them; the saves that the policy could resume from stay among those it keeps.
  std::shared_future<void> saving;
  if (state.copies() || critic_.is_collective()) saving = critic_.save(step, resumable_steps_);
  if (train_calls_) state.set("trainer.train_calls", *train_calls_);
  const FolderWriter write = save_policy();
  if (!write) return {};
  return [write, saving, &critic = critic_, step, resumable = resumable_steps_](const Path& folder) {
    write(folder);
    (saving.valid() ? saving : critic.save(step, resumable)).get();
  };
}

void CriticTraining::load(const StateFiles& state, int64_t step) {
  resumable_steps_ = {step};
  const Json* calls = state.find("trainer.train_calls");
  train_calls_ = calls == nullptr ? std::nullopt : std::optional(calls->as_integer("trainer.train_calls"));
}

CriticBatch critic_batch(const RolloutRows& rows, int64_t epochs) {
  CriticBatch batch;
  for (const RolloutRow& row : rows)
    if (!row.reward.failed()) batch.width = std::max(batch.width, row.rollout->length());
  const auto width = static_cast<size_t>(batch.width);
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (const RolloutRow& row : rows) {
      if (row.reward.failed()) continue;
      const Rollout& rollout = *row.rollout;
      ++batch.num_rows;
      batch.tokens.insert(batch.tokens.end(), rollout.ids.begin(), rollout.ids.end());
      batch.tokens.resize(static_cast<size_t>(batch.num_rows) * width, 0);
      // The target at a position belongs to the id after it: the prompt's last place is the answer's first.
      const auto before = static_cast<size_t>(rollout.prompt_length - 1), end = static_cast<size_t>(batch.num_rows) * (width - 1);
      const auto add = [&](std::vector<float>& to, const std::vector<float>& numbers) {
        to.resize(to.size() + before, 0);
        to.insert(to.end(), numbers.begin(), numbers.end());
        to.resize(end, 0);
      };
      add(batch.returns, row.returns);
      add(batch.previous, row.values);
      add(batch.mask, std::vector<float>(row.returns.size(), 1));
    }
  return batch;
}

}  // namespace kedge
