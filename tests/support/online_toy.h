#pragma once
// An online run in small: a network over bytes, prompts in a file, and a reward that a function gives.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kedge/algo/online/ppo.h"
#include "kedge/algo/online/reinforce.h"
#include "kedge/algo/online/rs.h"

#include "tests/support/tiny_training.h"

namespace kedge::testing {

// Answers at once, and counts.
class FunctionReward final : public RewardSource {
 public:
  std::function<RowReward(const Rollout& rollout)> judge;
  int64_t num_asked = 0;

  explicit FunctionReward(std::function<RowReward(const Rollout& rollout)> function) : judge(std::move(function)) {}
  std::future<std::vector<RowReward>> submit(Rollouts rollouts) override {
    std::vector<RowReward> rewards;
    for (const auto& rollout : rollouts) rewards.push_back(judge(*rollout));
    num_asked += static_cast<int64_t>(rollouts.size());
    std::promise<std::vector<RowReward>> promise;
    promise.set_value(std::move(rewards));
    return promise.get_future();
  }
};

// The share of an answer's ids below 128: plain text.
inline RowReward plain_share(const Rollout& rollout) {
  double count = 0;
  for (size_t i = static_cast<size_t>(rollout.prompt_length); i < rollout.ids.size(); ++i) count += rollout.ids[i] < 128 ? 1 : 0;
  return {.value = count / static_cast<double>(rollout.response_length())};
}

struct OnlineToy {
  TempFolder temp;
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();
  std::unique_ptr<Model> model;
  FunctionReward rewards{plain_share};
  std::shared_ptr<const PromptDataset> prompts, validation;
  PpoConfig ppo;
  ReinforceConfig reinforce;
  RsConfig rs;

  explicit OnlineToy(std::unique_ptr<Model> network = byte_model()) : model(std::move(network)) {
    prompts = open_prompts("train.jsonl", rows_of(12));
    validation = open_prompts("val.jsonl", rows_of(5));
    const auto small = [](auto& config, auto& loop, auto& rollouts) {
      config.model.encoder_seq_length = config.model.data.seq_length = 24;
      config.model.global_batch_size = 8;
      config.model.optim.lr = 0.01;
      config.model.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 0};
      loop.max_epochs = 100;
      rollouts.num_rollout_samples = 4;
      rollouts.num_val_samples = 4;
      rollouts.length_params.max_length = 8;
      rollouts.tokens_per_pass = 60;
    };
    small(ppo, ppo.trainer.loop, ppo.model.rollouts);
    small(reinforce, reinforce.trainer.loop, reinforce.model.rollouts);
    small(rs, rs.trainer.loop, rs.model.rollouts);
    reinforce.trainer.loop.unfinished = Unfinished::keep;
    ppo.trainer.loop.unfinished = Unfinished::keep;
    ppo.model.global_batch_size = 4;
    rs.model.global_batch_size = 4;
  }

  [[nodiscard]] OnlineParts parts(const Path& folder = {}) {
    return {.model = *model, .tokenizer = *tokenizer, .rewards = rewards, .prompts = prompts, .validation = validation, .folder = folder};
  }
  [[nodiscard]] std::unique_ptr<ReinforceTrainer> reinforce_trainer(const Path& folder = {}) {
    return std::make_unique<ReinforceTrainer>(parts(folder), reinforce);
  }
  [[nodiscard]] std::unique_ptr<RSTrainer> rs_trainer(const Path& folder = {}) { return std::make_unique<RSTrainer>(parts(folder), rs); }

  // Prompts of these rows in place of the toy's own.
  [[nodiscard]] std::shared_ptr<const PromptDataset> open_prompts(const std::string& name, const std::string& rows,
                                                                  const DataConfig& config = {}) const {
    return std::make_shared<const PromptDataset>(Rows::of_file(temp.file(name, rows)), encoder_of(*tokenizer), config, 16);
  }

 private:
  [[nodiscard]] static std::string rows_of(int count) {
    std::string rows;
    for (int i = 0; i < count; ++i)
      rows += R"({"text": ")" + std::string(static_cast<size_t>(i % 3 + 1), 'p') + std::to_string(i) + "\"}\n";
    return rows;
  }
};

// What a report says, but for times.
inline std::string shown(const StepReport& report) {
  std::string text;
  const auto add = [&](const Metrics& metrics) {
    for (const auto& [name, value] : metrics)
      if (!name.starts_with("timers/")) text += name + "=" + shortest(value) + " ";
  };
  for (const Metrics& update : report.updates) add(update);
  add(report.metrics);
  return text;
}

}  // namespace kedge::testing
