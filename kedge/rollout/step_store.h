#pragma once
// The seam to where the steps of an online run are kept: a trainer asks there for a step's answers before it generates any, and hands over
// what became of the step at its end. A run has files (rollout_records.h); a replay has them read and compares (replay_tape.h).
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/rollout/record_file.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// A step that is about to begin.
struct StepKey {
  const RecordHeader& header;  // as far as it is known: the step, the fingerprint, the weights before it
  const PromptDataset& prompts;
  std::span<const int64_t> batch;           // which of the prompts; their places here are the slots
  const std::function<RolloutRows()> draw;  // the answers as the policy gives them now, without rewards
};

class StepStore {
 public:
  virtual ~StepStore() = default;

  // The answers of the step with their rewards: of each row its rollout, slot and reward. None: they are to be generated.
  [[nodiscard]] virtual std::optional<RolloutRows> load(const StepKey& key) = 0;
  // All that is known of the step, after its updates.
  virtual void save(RecordHeader header, RolloutRows rows) = 0;
};

}  // namespace kedge
