// REINFORCE with a reward that is a C++ function of yours: answers with many commas are good.
//
//   own_reward MODEL_FOLDER PROMPTS.jsonl OUT_FOLDER [key=value ...]
#include <algorithm>
#include <iostream>

#include "kedge/algo/reinforce.h"
#include "kedge/core/config.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/model/model_files.h"

namespace {

// Gets every answer as soon as it is generated; slow rewards may answer later, on a thread of their own.
class CommaReward final : public kedge::RewardSource {
 public:
  std::future<std::vector<kedge::RowReward>> submit(kedge::Rollouts rollouts) override {
    std::vector<kedge::RowReward> rewards;
    for (const auto& rollout : rollouts)
      rewards.push_back({.value = static_cast<double>(std::count(rollout->response.begin(), rollout->response.end(), ','))});
    std::promise<std::vector<kedge::RowReward>> done;
    done.set_value(std::move(rewards));
    return done.get_future();
  }
};

int run(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  kedge::check(arguments.size() >= 3, "own_reward: wants a model folder, a file of prompts and a folder for the result");
  kedge::ReinforceConfig config;
  std::vector<std::string> keys = {"pretrained_checkpoint.restore_from_path=" + arguments[0],
                                   "model.data.data_prefix={train: [" + arguments[1] + "]}", "trainer.reinforce.val_check_interval=0"};
  keys.insert(keys.end(), arguments.begin() + 3, arguments.end());
  kedge::load_config(kedge::describe(config), std::nullopt, keys);

  const auto model = kedge::load_model(arguments[0], {.storage = {.trainable = true}, .head = kedge::HeadKind::language});
  const auto tokenizer = kedge::load_tokenizer(arguments[0]);
  const auto lengths = kedge::online_lengths(kedge::settings_of(config), model->config().max_positions);
  const auto prompts = std::make_shared<const kedge::PromptDataset>(kedge::Rows::of_file(arguments[1]), kedge::encoder_of(*tokenizer),
                                                                    config.model.data, lengths.max_prompt);
  CommaReward rewards;
  kedge::ModelFolderOptions save;
  save.save.companions = arguments[0];  // the tokenizer comes along
  kedge::ReinforceTrainer trainer({.model = *model, .tokenizer = *tokenizer, .rewards = rewards, .prompts = prompts, .save = save}, config);
  kedge::make_folder(arguments[2]);
  kedge::MetricsLog log = kedge::make_metrics_log(config.exp_manager.metrics, arguments[2], true);
  static_cast<void>(trainer.fit(log));
  trainer.write_model(kedge::Path(arguments[2]) / "model");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    std::cerr << "own_reward: " << error.what() << "\n";
    return 2;
  }
}
