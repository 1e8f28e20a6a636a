// REINFORCE with a reward that is a C++ function of yours: responses with many commas are good.
//
//   custom_reward MODEL_FOLDER PROMPTS.jsonl RUN_FOLDER [key=value ...]
//
// Started again with the same run folder it resumes from the newest valid checkpoint, also after kill -9.
#include <algorithm>
#include <iostream>

#include "kedge/kedge.h"

// Gets every response as soon as it is generated; a slow reward may answer later, from a thread of its own.
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

static int run(const std::vector<std::string>& arguments) {
  kedge::check(arguments.size() >= 3, "expected a model folder, a file of prompts and a folder for the run");
  const std::string& prompts = arguments[1];
  std::vector<std::string> settings = {
      "pretrained_checkpoint.restore_from_path=" + arguments[0],
      "model.data.data_prefix={train: [" + prompts + "], validation: [" + prompts + "], test: [" + prompts + "]}",
      "exp_manager.explicit_log_dir=" + arguments[2],
      "trainer.reinforce.val_check_interval=0",
      "reward.sources.commas.kind=custom",
  };
  settings.insert(settings.end(), arguments.begin() + 3, arguments.end());

  kedge::ReinforceJob job;
  kedge::load_config(job.section(), std::nullopt, settings);
  job.add_reward("commas", std::make_shared<CommaReward>());
  return job.run({.fork = {}, .arguments = arguments});
}

int main(int count, char** words) try { return run({words + 1, words + count}); } catch (const std::exception& error) {
  std::cerr << "custom_reward: " << error.what() << "\n";
  return 2;
}
