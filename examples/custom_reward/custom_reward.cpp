// REINFORCE with a reward that is a C++ function of yours: answers with many commas are good.
//
//   custom_reward MODEL_FOLDER PROMPTS.jsonl OUT_FOLDER [key=value ...]
#include <algorithm>
#include <iostream>

#include "kedge/algo/reinforce.h"
#include "kedge/core/config.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/model/model_files.h"

// Gets every answer as soon as it is generated; a slow reward may answer later, from a thread of its own.
class CommaReward final : public kedge::RewardSource {
  std::future<std::vector<kedge::RowReward>> submit(kedge::Rollouts rollouts) override {
    std::vector<kedge::RowReward> rewards;
    for (const auto& rollout : rollouts)
      rewards.push_back({.value = static_cast<double>(std::count(rollout->response.begin(), rollout->response.end(), ','))});
    std::promise<std::vector<kedge::RowReward>> done;
    done.set_value(std::move(rewards));
    return done.get_future();
  }
};

static void run(const std::vector<std::string>& arguments) {
  kedge::check(arguments.size() >= 3, "wants a model folder, a file of prompts and a folder for the result");
  const std::string &folder = arguments[0], &prompt_file = arguments[1], &out = arguments[2];
  kedge::ReinforceConfig config;
  std::vector<std::string> keys = {"pretrained_checkpoint.restore_from_path=" + folder,
                                   "model.data.data_prefix={train: [" + prompt_file + "]}", "trainer.reinforce.val_check_interval=0"};
  keys.insert(keys.end(), arguments.begin() + 3, arguments.end());
  kedge::load_config(kedge::describe(config), std::nullopt, keys);

  const auto model = kedge::load_model(folder, {.storage = {.trainable = true}, .head = kedge::HeadKind::language});
  const auto tokenizer = kedge::load_tokenizer(folder);
  const auto lengths = kedge::online_lengths(kedge::settings_of(config), model->config().max_positions);
  const auto prompts = std::make_shared<const kedge::PromptDataset>(kedge::Rows::of_file(prompt_file), kedge::encoder_of(*tokenizer),
                                                                    config.model.data, lengths.max_prompt);
  CommaReward rewards;
  kedge::ModelFolderOptions save;
  save.save.companions = folder;  // the tokenizer comes along
  kedge::ReinforceTrainer trainer({.model = *model, .tokenizer = *tokenizer, .rewards = rewards, .prompts = prompts, .save = save}, config);
  kedge::make_folder(out);
  kedge::MetricsLog log = kedge::make_metrics_log(config.exp_manager.metrics, out, true);
  static_cast<void>(trainer.fit(log));
  trainer.write_model(kedge::Path(out) / "model");
}

int main(int count, char** words) try {
  run({words + 1, words + count});
  return 0;
} catch (const std::exception& error) {
  std::cerr << "custom_reward: " << error.what() << "\n";
  return 2;
}
