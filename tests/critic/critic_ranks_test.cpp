// A critic as a server of the 2 or 3 ranks that mpirun has started has it, beside one of one process.
#include "kedge/critic/critic_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kedge/core/error.h"
#include "kedge/critic/critic.h"

#include "tests/support/critic_job.h"

namespace kedge {
namespace {

using namespace testing;  // the job, its ranks and its rows
using ::testing::HasSubstr;

const std::vector<TokenIds> kAskedRows = {{1, 2, 3, 4}, {7, 8}, {9, 10, 11, 12, 13, 14}, {5}};

std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel()};
}
std::vector<float> critic_values(const Critic& critic) { return floats_of(critic.values(kAskedRows)); }

// `use` is what is done with the critic of rank 0, while the others follow.
void run_served(const CriticJob& job, const std::function<void(Critic& critic)>& use) {
  const auto start = [&job] {
    CriticOptions options = toy_rewarding_options();
    options.update.max_skipped_updates = 0;
    return job.start(options);
  };
  CriticRanks ranks(job.group(), job.group(), job.folder());
  if (job.group().rank() > 0) return ranks.follow(start);
  MetricsLog log{true};
  Critic critic({.folder = job.folder(), .start = start, .log = log, .ranks = job.group().size() > 1 ? &ranks : nullptr});
  use(critic);
  ranks.stop();
}

struct ServedCourse {
  std::vector<float> before, rewards, after;
  double loss = 0;
};

// Six rows are two updates, of two micro-batches and of one: with three ranks, some have none. Each part is a process of its own, which
// goes on from the folder: from calls alone, from a save, from a save and calls.
ServedCourse served_course_of(const Group& group, Sharding kind) {
  const CriticJob job(group, kind);
  ServedCourse course;
  std::vector<float> last;
  const auto goes_on = [&](Critic& critic, int64_t calls) {
    EXPECT_EQ(critic.train_calls(), calls);
    if (calls > 0) {
      EXPECT_EQ(critic_values(critic), last) << calls;
    }
  };
  run_served(job, [&](Critic& critic) {
    goes_on(critic, 0);
    course.before = critic_values(critic);
    course.rewards = floats_of(critic.rewards(kAskedRows));
    for (uint64_t call = 0; call < 3; ++call) static_cast<void>(critic.train(toy_critic_batch(6, 6, call), str("call ", call)));
    last = critic_values(critic);
    EXPECT_NE(last, course.before);
  });
  run_served(job, [&](Critic& critic) {
    goes_on(critic, 3);
    EXPECT_EQ(critic.train(toy_critic_batch(6, 6, 2), "call 2").train_calls, 3) << "a call that is sent again has no effect";
    EXPECT_EQ(critic_values(critic), last);
    static_cast<void>(critic.save(5, "save"));
  });
  run_served(job, [&](Critic& critic) {
    goes_on(critic, 3);
    const std::vector<float> saved = last;
    static_cast<void>(critic.train(toy_critic_batch(6, 6, 9), "lost"));
    EXPECT_NE(critic_values(critic), saved);
    static_cast<void>(critic.restore(5, "restore"));
    EXPECT_EQ(critic_values(critic), saved);
    course.loss = critic.train(toy_critic_batch(6, 6, 7), "last").loss.value();
    last = course.after = critic_values(critic);
  });
  run_served(job, [&](Critic& critic) {
    goes_on(critic, 4);
    EXPECT_EQ(floats_of(critic.rewards(kAskedRows)), course.rewards) << "whatever it has learned";
    static_cast<void>(critic.restore(0, "start"));
    EXPECT_EQ(critic_values(critic), course.before);
  });
  return course;
}

TEST(CriticRanks, LearnTheSameWhateverIsShardedAndAlmostWhatOneRankDoes) {
  const bool looks = world().rank() == 0;
  const ServedCourse alone = looks ? served_course_of(Group::single(), Sharding::none) : ServedCourse();
  const ServedCourse none = served_course_of(world(), Sharding::none);
  if (looks) {
    EXPECT_EQ(none.before, alone.before) << "nothing is summed over ranks";
    EXPECT_EQ(none.rewards, alone.rewards);
    EXPECT_NEAR(none.loss, alone.loss, 1e-5);
    for (size_t i = 0; i < alone.after.size(); ++i) EXPECT_NEAR(none.after[i], alone.after[i], 1e-5) << i;
  }
  for (const Sharding kind : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
    const ServedCourse course = served_course_of(world(), kind);
    EXPECT_EQ(course.before, none.before);
    EXPECT_EQ(course.rewards, none.rewards);
    EXPECT_EQ(course.after, none.after);
    EXPECT_EQ(course.loss, none.loss);
  }
}

TEST(CriticRanks, ACallThatFailsHasNoEffectOnAnyRank) {
  for (const Sharding kind : {Sharding::none, Sharding::all}) {
    const CriticJob job(world(), kind);
    std::vector<float> good, next;
    CriticBatch endless = toy_critic_batch(4, 6, 3);
    endless.returns.assign(endless.returns.size(), std::numeric_limits<float>::infinity());
    run_served(job, [&](Critic& critic) {
      static_cast<void>(critic.train(toy_critic_batch(6, 6, 1), "good"));
      good = critic_values(critic);
      EXPECT_THAT(error_of<Error>([&] { static_cast<void>(critic.train(endless, "bad")); }), HasSubstr("gradients that are not finite"));
      EXPECT_EQ(critic.train_calls(), 1);
      EXPECT_EQ(critic_values(critic), good);
      static_cast<void>(critic.train(toy_critic_batch(6, 6, 2), "next"));
      next = critic_values(critic);
    });
    run_served(job, [&](Critic& critic) {
      EXPECT_EQ(critic.train_calls(), 2);
      EXPECT_EQ(critic_values(critic), next);
    });
  }
}

}  // namespace
}  // namespace kedge
