#pragma once
// Decides which sequences run next and which wait, within a fixed number of blocks and of tokens per step. Samples of one prompt compute it
// once. Independent of tensors and text.
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/engine/block_pool.h"
#include "kedge/engine/sequence.h"

namespace kedge {

struct SchedulerConfig {
  int64_t max_batch_tokens = 8192;
  int64_t max_running = 0;

  void fields(auto&& field) {
    field("max_batch_tokens", max_batch_tokens, "maximum tokens per step; longer prompts are processed in chunks", at_least(1));
    field("max_running", max_running, "maximum sequences decoded together; 0: 1024 on a GPU, 256 on a CPU", at_least(0));
  }

  // A GPU reads the weights once for all of them, however many there are; a CPU gains nothing from more.
  [[nodiscard]] int64_t running_on(bool is_cuda) const { return max_running > 0 ? max_running : is_cuda ? 1024 : 256; }
};

// Tokens [begin, begin + count) of a sequence. The last one's logits are sampled `num_draws` times: not while a prompt is computed in
// pieces, for the sequence itself at the end, for its followers too at the end of the prompt they share.
struct StepRow {
  SequenceId sequence = 0;
  int64_t begin = 0, count = 0;
  int64_t first_draw = 0, num_draws = 0;  // in the step's draws
};

// A sequence is about to write into a shared block, and gets its own copy.
struct BlockCopy {
  BlockId from = 0, to = 0;
};

// What to do next: the copies, one after another, then all rows at once.
struct Step {
  std::vector<BlockCopy> copies;
  std::vector<StepRow> rows;
  std::vector<SequenceId> draws;  // for which sequences tokens are sampled, row by row

  [[nodiscard]] int64_t num_tokens() const;
  [[nodiscard]] std::span<const SequenceId> draws_of(const StepRow& row) const {
    return std::span(draws).subspan(static_cast<size_t>(row.first_draw), static_cast<size_t>(row.num_draws));
  }
};

// Not thread-safe. `blocks` must outlive the scheduler and must not be used elsewhere.
class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, BlockPool& blocks, bool is_cuda = false);

  // `num_samples` sequences of one prompt with ids from `first` on, each at most `max_length` tokens with the prompt. UsageError if
  // one alone would not fit into all blocks; `where` opens it and names the request.
  void add(SequenceId first, int64_t num_samples, const std::vector<int32_t>& prompt, int64_t max_length, const std::string& where);

  // No rows: nothing is left to do. If there is no room for a sequence's next tokens, the youngest one is preempted and later recomputes
  // its own tokens exactly.
  [[nodiscard]] Step next();

  // The step is done, or launched: steps run one after another. Then every sequence in its `draws` is extended or finished.
  void computed(const Step& step);
  // It continues with a token that is being sampled, as this draw of the step. The next step may be planned with it; before the one after
  // that, set_drawn() says which it is, or the sequence is finished.
  void extend(SequenceId id, int64_t draw);
  void set_drawn(SequenceId id, int32_t token);
  void finish(SequenceId id);  // forgets it

  [[nodiscard]] const Sequence& sequence(SequenceId id) const { return sequences_.at(id); }
  [[nodiscard]] const Sequence* find(SequenceId id) const;  // null if it was finished
  [[nodiscard]] bool idle() const { return sequences_.empty(); }
  [[nodiscard]] int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  [[nodiscard]] int64_t num_preempted() const { return num_preempted_; }

 private:
  [[nodiscard]] bool plan(Sequence& sequence, int64_t budget, Step& step);
  [[nodiscard]] bool make_room(Sequence& sequence, int64_t num_tokens, Step& step);
  [[nodiscard]] int64_t num_missing(const Sequence& sequence, int64_t num_tokens) const;
  [[nodiscard]] bool writes_to_shared(const Sequence& sequence) const;
  bool free_something(SequenceId but);
  void make_wait(Sequence& sequence);
  void drop_blocks(Sequence& sequence);

  SchedulerConfig config_;
  int64_t max_running_;
  BlockPool& blocks_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::deque<SequenceId> waiting_;   // next first; followers are in no queue until their prompt is computed
  std::vector<SequenceId> running_;  // oldest first
  int64_t num_preempted_ = 0;
};

}  // namespace kedge
