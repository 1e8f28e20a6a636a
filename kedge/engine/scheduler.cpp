#include "kedge/engine/scheduler.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {

int64_t Step::num_tokens() const {
  int64_t sum = 0;
  for (const StepRow& row : rows) sum += row.count;
  return sum;
}

Scheduler::Scheduler(const SchedulerConfig& config, BlockPool& blocks, bool is_cuda)
    : config_(config), max_running_(config.running_on(is_cuda)), blocks_(blocks) {}

void Scheduler::add(SequenceId first, int64_t num_samples, const std::vector<int32_t>& prompt, int64_t max_length,
                    const std::string& where) {
  ensure(num_samples > 0, "a request for ", num_samples, " samples");
  check(!prompt.empty(), where, ": the prompt is empty");
  const auto length = static_cast<int64_t>(prompt.size());
  check(max_length > length, where, ": a prompt of ", length, " tokens leaves no room for a response within ", max_length);
  // The last token is sampled and never computed.
  const int64_t wanted = blocks_.blocks_for(max_length - 1);
  check(wanted <= blocks_.num_blocks(), where, ": ", max_length, " tokens need ", wanted, " blocks of the KV cache, which has ",
        blocks_.num_blocks(), "; shorten the request or give the engine more memory");
  for (int64_t i = 0; i < num_samples; ++i) {
    const auto [place, is_new] = sequences_.emplace(first + i, Sequence{first + i, prompt, length, max_length, 0, {}, false, {}});
    ensure(is_new, "sequence ", first + i, " already exists");
    if (i > 0) sequences_.at(first).followers.push_back(first + i);
  }
  waiting_.push_back(first);
}

// Blocks to take before the tokens up to num_tokens can be written, including a copy of a shared one.
int64_t Scheduler::num_missing(const Sequence& sequence, int64_t num_tokens) const {
  return blocks_.blocks_for(num_tokens) - static_cast<int64_t>(sequence.blocks.size()) + (writes_to_shared(sequence) ? 1 : 0);
}

bool Scheduler::writes_to_shared(const Sequence& sequence) const {
  const auto block = static_cast<size_t>(sequence.num_cached / blocks_.block_size());
  return block < sequence.blocks.size() && blocks_.num_holders(sequence.blocks[block]) > 1;
}

void Scheduler::drop_blocks(Sequence& sequence) {
  for (const BlockId block : sequence.blocks) blocks_.release(block);
  sequence.blocks.clear();
  sequence.num_cached = 0;
}

void Scheduler::make_wait(Sequence& sequence) {
  drop_blocks(sequence);
  std::erase(running_, sequence.id);
  sequence.running = false;
  waiting_.push_front(sequence.id);
  ++num_preempted_;
}

// Preempts the youngest running sequence, or takes blocks of waiting ones; never from `but`, and, since rows are planned from the oldest
// on, never from one whose row is already in the step.
bool Scheduler::free_something(SequenceId but) {
  const auto at = std::find(running_.begin(), running_.end(), but);
  if (at != running_.end() && at + 1 != running_.end()) {
    make_wait(sequences_.at(running_.back()));
    return true;
  }
  for (auto id = waiting_.rbegin(); id != waiting_.rend(); ++id) {
    Sequence& other = sequences_.at(*id);
    if (*id == but || other.blocks.empty()) continue;
    drop_blocks(other);
    return true;
  }
  return false;
}

// Blocks for the tokens up to num_tokens, none of those to be written shared; false if others cannot free enough.
bool Scheduler::make_room(Sequence& sequence, int64_t num_tokens, Step& step) {
  while (num_missing(sequence, num_tokens) > blocks_.num_free())
    if (!free_something(sequence.id)) return false;
  if (writes_to_shared(sequence)) {
    BlockId& block = sequence.blocks[static_cast<size_t>(sequence.num_cached / blocks_.block_size())];
    const BlockId own = *blocks_.take();
    step.copies.push_back({block, own});
    blocks_.release(block);
    block = own;
  }
  while (static_cast<int64_t>(sequence.blocks.size()) < blocks_.blocks_for(num_tokens)) sequence.blocks.push_back(*blocks_.take());
  return true;
}

// Adds the sequence's row; false if there was no room.
bool Scheduler::plan(Sequence& sequence, int64_t budget, Step& step) {
  const int64_t count = std::min(sequence.num_pending(), budget);
  if (!make_room(sequence, sequence.num_cached + count, step)) return false;
  const auto first_draw = static_cast<int64_t>(step.draws.size());
  if (count == sequence.num_pending()) {
    step.draws.push_back(sequence.id);
    step.draws.insert(step.draws.end(), sequence.followers.begin(), sequence.followers.end());
  }
  step.rows.push_back({sequence.id, sequence.num_cached, count, first_draw, static_cast<int64_t>(step.draws.size()) - first_draw});
  return true;
}

Step Scheduler::next() {
  Step step;
  step.rows.reserve(running_.size());
  step.draws.reserve(running_.size());
  int64_t budget = config_.max_batch_tokens;
  for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = sequences_.at(running_[i]);
    if (plan(sequence, budget, step)) {
      budget -= step.rows.back().count;
    } else {
      make_wait(sequence);  // the youngest itself: there is none behind it
    }
  }
  while (!waiting_.empty() && budget > 0 && num_running() < max_running_) {
    Sequence& sequence = sequences_.at(waiting_.front());
    // Room for all its tokens, so that it does not preempt others at once; if nothing runs, waiting ones give up their blocks.
    while (running_.empty() && num_missing(sequence, sequence.length()) > blocks_.num_free() && free_something(sequence.id)) {
    }
    if (num_missing(sequence, sequence.length()) > blocks_.num_free()) break;
    waiting_.pop_front();
    running_.push_back(sequence.id);
    sequence.running = true;
    ensure(plan(sequence, budget, step), "room for a sequence was counted wrongly");
    budget -= step.rows.back().count;
  }
  ensure(!step.rows.empty() || idle(), "sequences wait and nothing runs");
  return step;
}

void Scheduler::computed(const Step& step) {
  for (const StepRow& row : step.rows) {
    Sequence& leader = sequences_.at(row.sequence);
    leader.num_cached = row.begin + row.count;
    if (row.num_draws == 0) continue;
    for (const SequenceId id : leader.followers) {
      Sequence& follower = sequences_.at(id);
      follower.blocks = leader.blocks;
      follower.num_cached = leader.num_cached;
      for (const BlockId block : follower.blocks) blocks_.share(block);
    }
    leader.followers.clear();
  }
}

const Sequence* Scheduler::find(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : &found->second;
}

void Scheduler::extend(SequenceId id, int64_t draw) {
  Sequence& sequence = sequences_.at(id);
  ensure(sequence.num_pending() == 0 && sequence.length() < sequence.max_length, "sequence ", id, " is not at its end, or is full");
  sequence.tokens.push_back(0);
  sequence.awaited = draw;
  if (sequence.running) return;
  // A follower that has just got its prompt is queued after others that have theirs, before those that must compute one.
  waiting_.insert(std::find_if(waiting_.begin(), waiting_.end(), [&](SequenceId other) { return sequences_.at(other).num_cached == 0; }),
                  id);
}

void Scheduler::set_drawn(SequenceId id, int32_t token) {
  Sequence& sequence = sequences_.at(id);
  ensure(sequence.awaited >= 0, "sequence ", id, " awaits no token");
  sequence.tokens.back() = token;
  sequence.awaited = -1;
}

void Scheduler::finish(SequenceId id) {
  Sequence& sequence = sequences_.at(id);
  ensure(sequence.followers.empty(), "sequence ", id, " is finished while others wait for its prompt");
  drop_blocks(sequence);
  if (sequence.running) {
    std::erase(running_, id);
  } else {
    std::erase(waiting_, id);  // its end was learned after it was queued again
  }
  sequences_.erase(id);
}

}  // namespace kedge
