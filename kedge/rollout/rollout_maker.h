#pragma once
// Answers to prompts, with their rewards: the one way in which every online trainer gets them. Rewards are asked for as answers end, while
// others are still being generated. Knows no losses.
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/dist/group.h"
#include "kedge/engine/engine.h"
#include "kedge/rollout/rollout_row.h"
#include "kedge/text/tokenizer/response_text.h"

namespace kedge {

class WorkQueue;
class ValueCollector;

// What answers are drawn for: those for different purposes are drawn apart, also with one seed.
enum RolloutPurpose : uint64_t { kTraining = 0, kValidation = 1, kWarmup = 2 };

// What is asked for.
struct RolloutRequest {
  const PromptDataset& prompts;
  std::span<const int64_t> batch;  // which prompts, over all ranks; their places here are the slots
  int64_t num_samples = 1;
  int64_t max_new = 128, min_new = 1;
  SamplingConfig sampling;
  const ResponseText& responses;  // what ends an answer
  TokenId vocab_size = 0;         // ids from here on are not drawn
  bool wants_rewards = true;
  bool wants_values = false;  // of the answers' tokens, where there is a critic
  // Sampling is a function of these, of the prompt and of the number of the sample, and of nothing else.
  uint64_t seed = 0, purpose = 0, round = 0;
};

// Who is asked about an answer as soon as it has ended.
struct RolloutScorers {
  RewardSource& rewards;
  ValueCollector* values = nullptr;  // there may be none

  RolloutScorers(RewardSource& source, ValueCollector* collector = nullptr) : rewards(source), values(collector) {}
};

// Not thread-safe. The parts must outlive it.
class RolloutMaker {
 public:
  // `queue`: where ranks get their prompts from; null: each takes its share.
  RolloutMaker(Engine& engine, RolloutScorers scorers, Group group, WorkQueue* queue = nullptr);

  // All ranks' answers, by slot and sample. Rewards, and values at the collector, may still be under way: take_rewards() follows, once.
  [[nodiscard]] RolloutRows generate(const RolloutRequest& wish);
  // Waits for the rewards of what generate() returned. An Error where a source ended the run.
  void take_rewards(RolloutRows& rows);

 private:
  // Answers whose rewards were asked for together.
  struct Asked {
    Rollouts rollouts;
    std::future<std::vector<RowReward>> rewards;
  };
  [[nodiscard]] RolloutRows generate_own(const RolloutRequest& wish);
  void submit(const RolloutRequest& wish, int64_t slot);
  [[nodiscard]] RolloutRow finish(const RolloutRequest& wish, Completion completion);
  void ask_about(std::span<const RolloutRow> rows, const RolloutRequest& wish);

  // A prompt that is being answered, by the engine's number of it.
  struct Open {
    int64_t slot = 0, num_left = 0;
    PromptExample prompt;
    std::shared_ptr<const Json> row;
  };

  Engine& engine_;
  RolloutScorers scorers_;
  Group group_;
  WorkQueue* queue_;
  std::map<int64_t, Open> open_;
  std::vector<Asked> asked_;
};

}  // namespace kedge
