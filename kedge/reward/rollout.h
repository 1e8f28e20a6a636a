#pragma once
// One answer to one prompt, as it leaves the engine, with its prompt's complete row. Independent of rewards and losses.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

struct Rollout {
  int64_t prompt_id = 0;                      // which prompt of the data set
  int64_t sample = 0;                         // which of the answers to it
  TokenIds ids = {};                          // the prompt, then the answer
  int64_t prompt_length = 0;                  // how many of the ids are the prompt's
  bool finished = false;                      // it ended by itself, not by a limit
  std::vector<float> logprobs = {};           // of the answer's ids, from the engine's sampling
  std::string prompt = {}, response = {};     // as text; the answer without the tokens that ended it
  std::shared_ptr<const Json> row = nullptr;  // the prompt's row of the data file, unchanged; may be null

  [[nodiscard]] int64_t length() const { return static_cast<int64_t>(ids.size()); }
  [[nodiscard]] int64_t response_length() const { return length() - prompt_length; }
};

// A group of rollouts. Shared, because rewards are computed while generation continues.
using Rollouts = std::vector<std::shared_ptr<const Rollout>>;

}  // namespace kedge
