#pragma once
// The interface to the records of an online run: a trainer first looks for a step's recorded answers, and stores
// the step's results at its end. A run writes files (rollout_records.h); a replay reads and compares them (replay_tape.h).
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/rollout/record_file.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// A step that is about to start.
struct StepKey {
  const RecordHeader& header;  // as far as it is known: the step, the fingerprint, the weights before it
  const PromptDataset& prompts;
  std::span<const int64_t> batch;           // which of the prompts; their places here are the slots
  const std::function<RolloutRows()> draw;  // the answers as the policy gives them now, without rewards
};

class StepStore {
 public:
  virtual ~StepStore() = default;

  // The answers of the step with their rewards: of each row its rollout, slot and reward. None: they must be generated.
  [[nodiscard]] virtual std::optional<RolloutRows> load(const StepKey& key) = 0;
  // All that is known of the step, after its updates.
  virtual void save(RecordHeader header, RolloutRows rows) = 0;
};

}  // namespace kedge
