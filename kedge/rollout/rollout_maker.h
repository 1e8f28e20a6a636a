#pragma once
// Answers to prompts, with their rewards: for every online trainer. Rewards are requested as answers end, while
// others are still being generated. Independent of losses.
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/dist/group.h"
#include "kedge/engine/engine.h"
#include "kedge/rollout/rollout_row.h"
#include "kedge/text/tokenizer/response_text.h"

namespace kedge {

class WorkQueue;
class ValueCollector;

// The purpose of sampling: different purposes use different random numbers, even with the same seed.
enum RolloutPurpose : uint64_t { kTraining = 0, kValidation = 1, kWarmup = 2 };

// The request.
struct RolloutRequest {
  const PromptDataset& prompts;
  std::span<const int64_t> batch;  // which prompts, over all ranks; their places here are the slots
  int64_t num_samples = 1;
  int64_t max_new = 128, min_new = 1;
  SamplingConfig sampling;
  double logprob_temperature = 1;  // of the answers' log-probabilities
  const ResponseText& responses;   // what ends an answer
  TokenId vocab_size = 0;          // ids from here on are not sampled
  bool wants_rewards = true;
  bool wants_values = false;  // of the answers' tokens, if there is a critic
  // Sampling is a function of these, the prompt and the sample number only.
  uint64_t seed = 0, purpose = 0, round = 0;
};

// What is called for an answer as soon as it has ended.
struct RolloutScorers {
  RewardSource& rewards;
  ValueCollector* values = nullptr;  // may be null

  RolloutScorers(RewardSource& source, ValueCollector* collector = nullptr) : rewards(source), values(collector) {}
};

// Who answers which prompts.
struct RolloutRanks {
  Group group;                      // ranks with different prompts
  std::optional<Group> world = {};  // all of them, where several compute each answer together; else the same
  bool asks = true;                 // of those, the one that has its answers scored

  RolloutRanks(Group different, std::optional<Group> all = {}, bool scores = true)
      : group(std::move(different)), world(std::move(all)), asks(scores) {}
};

// Not thread-safe. The parts must outlive it.
class RolloutMaker {
 public:
  // `queue`: where ranks get their prompts from; null: each takes its share.
  RolloutMaker(Engine& engine, RolloutScorers scorers, RolloutRanks ranks, WorkQueue* queue = nullptr);

  // All ranks' answers, by slot and sample. Rewards, and values at the collector, may still be pending: call take_rewards() next, once.
  [[nodiscard]] RolloutRows generate(const RolloutRequest& wish);
  // Waits for the rewards of what generate() returned. An Error if a source ended the run.
  void take_rewards(RolloutRows& rows);

 private:
  // Answers whose rewards were requested together.
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
  RolloutRanks ranks_;
  WorkQueue* queue_;
  std::map<int64_t, Open> open_;
  std::vector<Asked> asked_;
};

}  // namespace kedge
