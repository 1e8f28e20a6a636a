#pragma once
// One running sample: its tokens, how far its keys and values are computed, and their blocks. Independent of tensors.
#include <cstdint>
#include <vector>

#include "kedge/engine/block_pool.h"

namespace kedge {

using SequenceId = int64_t;

struct Sequence {
  SequenceId id = 0;
  std::vector<int32_t> tokens;  // the prompt, then the sampled tokens
  int64_t prompt_length = 0;
  int64_t max_length = 0;  // prompt and response together
  int64_t num_cached = 0;  // tokens whose keys and values are in the blocks
  std::vector<BlockId> blocks;
  bool running = false;
  std::vector<SequenceId> followers;  // samples of the same prompt that wait for this one to compute it
  int64_t awaited = -1;               // if the newest token is not known yet: which draw of the step under way it is

  [[nodiscard]] int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  [[nodiscard]] int64_t num_drawn() const { return length() - prompt_length; }
  // Its newest token is not computed yet: that is what the next step is for.
  [[nodiscard]] int64_t num_pending() const { return length() - num_cached; }
};

}  // namespace kedge
