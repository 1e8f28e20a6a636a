#include "kedge/engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/random.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

// Draws that are numbers by count, and an end after a number of tokens fixed by the id.
int32_t drawn_token(SequenceId id, int64_t position) { return static_cast<int32_t>((id * 7919 + position * 104729) % 1000); }

void extend_with(Scheduler& scheduler, SequenceId id, int32_t token) {
  scheduler.extend(id, 0);
  scheduler.set_drawn(id, token);
}

// Stands for the machine: keeps a token for every slot of every block, as the key-value memory would, and checks before every row that
// what the row's sequence believes to be there is there.
class FakeRunner {
 public:
  FakeRunner(Scheduler& scheduler, const BlockPool& pool)
      : scheduler_(scheduler), pool_(pool), memory_(static_cast<size_t>(pool.num_blocks() * pool.block_size()), -1) {}

  // `before`: the step that draws what sequences await.
  void run(const Step& step, const Step& before) {
    const auto size = static_cast<size_t>(pool_.block_size());
    for (const BlockCopy& copy : step.copies)
      std::copy_n(memory_.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(copy.from) * size), size,
                  memory_.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(copy.to) * size));
    std::set<size_t> written;
    for (const StepRow& row : step.rows) {
      const Sequence& sequence = scheduler_.sequence(row.sequence);
      ASSERT_EQ(row.begin, sequence.num_cached);
      ASSERT_GT(row.count, 0);
      if (sequence.awaited >= 0) {
        ASSERT_EQ(before.draws.at(static_cast<size_t>(sequence.awaited)), row.sequence) << "it awaits another's token";
      }
      for (int64_t i = row.begin; i < row.begin + row.count; ++i) {
        const size_t slot = slot_of(sequence, i);
        ASSERT_TRUE(written.insert(slot).second) << "two rows write one slot";
        ASSERT_EQ(pool_.num_holders(sequence.blocks[static_cast<size_t>(i / pool_.block_size())]), 1) << "a shared block is written to";
        memory_[slot] = token_of(sequence, i);
      }
    }
    // All rows at once: what they read is looked at when everything is written.
    for (const StepRow& row : step.rows) {
      const Sequence& sequence = scheduler_.sequence(row.sequence);
      for (int64_t i = 0; i < row.begin + row.count; ++i)
        ASSERT_EQ(memory_[slot_of(sequence, i)], token_of(sequence, i)) << "sequence " << row.sequence << " at " << i;
    }
  }

 private:
  // The device knows the token that the sequence awaits.
  [[nodiscard]] static int32_t token_of(const Sequence& sequence, int64_t position) {
    const bool is_awaited = sequence.awaited >= 0 && position == sequence.length() - 1;
    return is_awaited ? drawn_token(sequence.id, position) : sequence.tokens[static_cast<size_t>(position)];
  }
  [[nodiscard]] size_t slot_of(const Sequence& sequence, int64_t position) const {
    const BlockId block = sequence.blocks.at(static_cast<size_t>(position / pool_.block_size()));
    return static_cast<size_t>(block * pool_.block_size() + position % pool_.block_size());
  }

  Scheduler& scheduler_;
  const BlockPool& pool_;
  std::vector<int32_t> memory_;
};

std::vector<int32_t> prompt_of(int64_t length, int32_t from = 1) {
  std::vector<int32_t> prompt(static_cast<size_t>(length));
  std::iota(prompt.begin(), prompt.end(), from);
  return prompt;
}

TEST(Scheduler, ComputesALongPromptInPieces) {
  BlockPool pool(8, 4);
  Scheduler scheduler({.max_batch_tokens = 5, .max_running = 4}, pool);
  scheduler.add(0, 1, prompt_of(12), 20, "request");
  for (const auto& [begin, count, draws] : {std::tuple(0, 5, 0), {5, 5, 0}, {10, 2, 1}}) {
    const Step step = scheduler.next();
    ASSERT_EQ(step.rows.size(), 1U);
    EXPECT_EQ(step.rows[0].begin, begin);
    EXPECT_EQ(step.rows[0].count, count);
    EXPECT_EQ(step.rows[0].num_draws, draws);
    scheduler.computed(step);
  }
  extend_with(scheduler, 0, 7);
  const Step step = scheduler.next();
  EXPECT_EQ(step.rows[0].begin, 12);
  EXPECT_EQ(step.rows[0].count, 1);
}

TEST(Scheduler, SamplesOfOnePromptComputeItOnce) {
  BlockPool pool(16, 4);
  Scheduler scheduler({.max_batch_tokens = 100, .max_running = 8}, pool);
  scheduler.add(10, 3, prompt_of(6), 12, "request");
  Step step = scheduler.next();
  ASSERT_EQ(step.rows.size(), 1U);
  EXPECT_EQ(step.draws, (std::vector<SequenceId>{10, 11, 12}));
  EXPECT_EQ(step.draws_of(step.rows[0]).size(), 3U);
  scheduler.computed(step);
  for (const SequenceId id : {10, 11, 12}) extend_with(scheduler, id, static_cast<int32_t>(id));
  EXPECT_EQ(pool.num_free(), 14) << "two blocks, held by three";
  step = scheduler.next();
  EXPECT_EQ(step.rows.size(), 3U);
  EXPECT_EQ(step.copies.size(), 2U) << "the last one may keep the block that all shared";
  EXPECT_EQ(step.num_tokens(), 3);
}

// Sequences 0, the older one, and 1 have computed their prompts. Returns that step.
Step start_two(Scheduler& scheduler, int64_t prompt, int64_t longest) {
  for (const SequenceId id : {0, 1}) scheduler.add(id, 1, prompt_of(prompt), longest, "request");
  Step step = scheduler.next();
  scheduler.computed(step);
  return step;
}

TEST(Scheduler, TheYoungestWaitsWhenBlocksRunOut) {
  BlockPool pool(4, 2);
  Scheduler scheduler({.max_batch_tokens = 100, .max_running = 8}, pool);
  EXPECT_EQ(start_two(scheduler, 4, 8).rows.size(), 2U);
  extend_with(scheduler, 0, 1);
  extend_with(scheduler, 1, 1);
  const Step second = scheduler.next();
  ASSERT_EQ(second.rows.size(), 1U);
  EXPECT_EQ(second.rows[0].sequence, 0);
  EXPECT_EQ(scheduler.num_preempted(), 1);
  EXPECT_EQ(scheduler.sequence(1).length(), 5) << "what it drew stays";
  scheduler.computed(second);
  scheduler.finish(0);
  const Step third = scheduler.next();
  ASSERT_EQ(third.rows.size(), 1U);
  EXPECT_EQ(third.rows[0].begin, 0);
  EXPECT_EQ(third.rows[0].count, 5) << "all of it again";
}

TEST(Scheduler, RefusesByNameWhatCanNeverFit) {
  BlockPool pool(2, 4);
  Scheduler scheduler({}, pool);
  EXPECT_EQ(testing::error_of([&] { scheduler.add(0, 1, prompt_of(4), 10, "row 3"); }),
            "row 3: 10 tokens need 3 blocks of the KV cache, which has 2; shorten the request or give the engine more memory");
  EXPECT_EQ(testing::error_of([&] { scheduler.add(0, 1, {}, 10, "row 4"); }), "row 4: the prompt is empty");
  EXPECT_EQ(testing::error_of([&] { scheduler.add(0, 1, prompt_of(4), 4, "row 5"); }),
            "row 5: a prompt of 4 tokens leaves no room for a response within 4");
  EXPECT_TRUE(scheduler.idle());
  scheduler.add(0, 1, prompt_of(4), 9, "row 6");
  EXPECT_FALSE(scheduler.idle());
}

TEST(Scheduler, AStepIsPlannedBeforeTheTokensOfTheOneBeforeAreKnown) {
  BlockPool pool(4, 2);
  Scheduler scheduler({.max_batch_tokens = 100, .max_running = 8}, pool);
  static_cast<void>(start_two(scheduler, 2, 6));
  scheduler.extend(0, 0);
  scheduler.extend(1, 1);
  const Step ahead = scheduler.next();
  ASSERT_EQ(ahead.draws, (std::vector<SequenceId>{0, 1}));
  EXPECT_EQ(scheduler.sequence(1).awaited, 1);
  scheduler.computed(ahead);
  scheduler.set_drawn(0, 5);
  EXPECT_EQ(scheduler.sequence(0).tokens, (std::vector<int32_t>{1, 2, 5}));
  EXPECT_EQ(scheduler.sequence(0).awaited, -1);
  scheduler.finish(1);  // the token that it awaited is an end
  EXPECT_EQ(scheduler.find(1), nullptr);
  EXPECT_EQ(pool.num_free(), 2);
  scheduler.extend(0, 0);
  EXPECT_EQ(scheduler.next().draws, (std::vector<SequenceId>{0}));
}

// One random life of a scheduler: arrivals at random moments, lengths, budgets; `ahead`: every step is planned before the tokens of the one
// before are known. Returns how many sequences were made to wait.
int64_t live(uint64_t seed, bool ahead) {
  const Random random(seed, 0);
  uint64_t position = 0;
  const auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1), position++));
  };
  BlockPool pool(number(1, 20), number(1, 6));
  const int64_t capacity = pool.num_blocks() * pool.block_size() + 1;
  const SchedulerConfig config{number(1, 24), number(1, 9)};
  Scheduler scheduler(config, pool);
  FakeRunner runner(scheduler, pool);
  std::map<SequenceId, int64_t> ends, lengths;  // at which each ends; so far
  int64_t arrivals = number(1, 12), next_id = 0;
  std::optional<Step> under_way;
  const auto launch = [&](const Step& before) {
    Step step = scheduler.next();
    EXPECT_LE(step.num_tokens(), config.max_batch_tokens);
    EXPECT_LE(scheduler.num_running(), config.max_running);
    EXPECT_EQ(step.rows.empty(), scheduler.idle());
    runner.run(step, before);
    if (!::testing::Test::HasFatalFailure()) scheduler.computed(step);
    return step;
  };
  for (int64_t round = 0; arrivals > 0 || !scheduler.idle() || under_way; ++round) {
    if (arrivals > 0 && number(0, 2) == 0) {
      --arrivals;
      const int64_t prompt = number(1, std::min<int64_t>(30, capacity - 1)), longest = number(prompt + 1, std::min(prompt + 20, capacity));
      const int64_t samples = number(1, 5);
      scheduler.add(next_id, samples, prompt_of(prompt, static_cast<int32_t>(next_id * 100)), longest, "request");
      for (int64_t i = 0; i < samples; ++i) lengths[next_id] = prompt, ends[next_id++] = number(prompt + 1, longest);
    }
    Step step = under_way ? *std::exchange(under_way, std::nullopt) : launch({});
    if (::testing::Test::HasFatalFailure()) return 0;
    for (size_t i = 0; i < step.draws.size(); ++i) {
      const Sequence* sequence = scheduler.find(step.draws[i]);
      if (sequence == nullptr) continue;
      if (sequence->length() + 1 < sequence->max_length) {
        scheduler.extend(sequence->id, static_cast<int64_t>(i));
      } else {
        scheduler.finish(sequence->id);
      }
    }
    if (ahead && !scheduler.idle()) under_way = launch(step);
    if (::testing::Test::HasFatalFailure()) return 0;
    for (const SequenceId id : step.draws) {
      const auto found = lengths.find(id);
      if (found == lengths.end()) continue;
      if (++found->second == ends.at(id)) {
        lengths.erase(found);
        if (scheduler.find(id) != nullptr) scheduler.finish(id);
      } else {
        scheduler.set_drawn(id, drawn_token(id, found->second - 1));
      }
    }
    EXPECT_LT(round, 100000) << "it does not end";
    if (round >= 100000) return 0;
  }
  EXPECT_TRUE(lengths.empty()) << "every sequence ends";
  EXPECT_EQ(pool.num_free(), pool.num_blocks()) << "no block is lost";
  return scheduler.num_preempted();
}

TEST(Scheduler, ThousandsOfRandomLivesLoseAndMixUpNothing) {
  for (const bool ahead : {false, true}) {
    int64_t preempted = 0;
    for (uint64_t seed = 0; seed < 5000; ++seed) {
      preempted += live(seed, ahead);
      ASSERT_FALSE(HasFailure()) << "seed " << seed << (ahead ? ", ahead" : "");
    }
    EXPECT_GT(preempted, 5000) << "the lives are too easy";
  }
}

}  // namespace
}  // namespace kedge
