#pragma once
// A reward model as one function of rows, for servers, local reward sources and kedge score. Independent of text and network protocols.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/model/model.h"
#include "kedge/model/score_head.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

struct RewardScorerOptions {
  std::optional<Pooling> pooling = {};         // none: as the folder was trained
  bool merge_attributes = false;               // one number per row, the mean of its attributes
  std::vector<double> attribute_weights = {};  // or their sum with these weights
  Standardization standardization = {};
  bool is_regression = false;  // its numbers are attribute values, which are not standardised; also if there are several
  int64_t max_tokens = 0;      // computed together; a longer row alone; 0: all
  // Names of the settings in errors.
  std::string weights_key = "model.regression.attribute_weights", standardization_key = "model.reward_standardization";
};

// Not thread-safe. `model`, with a score head, must outlive it.
class RewardScorer {
 public:
  // UsageError for settings that do not fit the model.
  RewardScorer(const Model& model, RewardScorerOptions options);

  // fp32 [rows, num_rewards()], in host memory. Every row has at least one token. A row's result does not depend on other rows,
  // if the kernels allow that (on the CPU they do).
  [[nodiscard]] Tensor score(std::span<const TokenIds> rows) const;

  [[nodiscard]] int64_t num_rewards() const { return merges_ ? 1 : model_.head().num_labels; }
  [[nodiscard]] const ModelConfig& network() const { return model_.config(); }

 private:
  [[nodiscard]] Tensor score_together(std::span<const TokenIds> rows) const;

  const Model& model_;
  RewardScorerOptions options_;
  Pooling pooling_;
  bool merges_;
};

}  // namespace kedge
