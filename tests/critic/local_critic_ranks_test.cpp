// A critic that the 2 or 3 ranks that mpirun has started hold together, beside one that works alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/critic/local_critic.h"
#include "kedge/train/checkpoint/state_parts.h"

#include "tests/support/critic_job.h"

namespace kedge {
namespace {

using namespace testing;  // the job, its ranks and its rows
using ::testing::HasSubstr;

struct Held {
  Held(const Group& ranks, Sharding kind)
      : job(ranks, kind),
        critic({.folder = job.folder(), .start = [this] { return job.start(toy_critic_options()); }, .log = log, .group = ranks}) {}

  // Of two rows on rank 0, of none on the others.
  [[nodiscard]] std::vector<float> values() {
    std::vector<std::future<RolloutValues>> asked;
    for (const TokenIds& ids : {TokenIds{1, 2, 3, 4}, TokenIds{7, 8}})
      if (job.group().rank() == 0) asked.push_back(local.values({std::make_shared<Rollout>(Rollout{.ids = ids})}));
    local.compute_values();
    std::vector<float> all;
    for (auto& one : asked) {
      const std::vector<float> values = one.get().values.at(0);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  CriticJob job;
  MetricsLog log{true};
  Critic critic;
  LocalCritic local{critic};
};

struct Course {
  std::vector<float> before, saved, after, restored;
  std::string print;  // of the start
  double loss = 0;
};

// Six rows are two updates, of two micro-batches and of one: with three ranks, some have none.
Course course_of(const Group& group, Sharding kind) {
  Held held(group, kind);
  Course course;
  course.print = start_print(held.critic.model().model());
  EXPECT_EQ(held.local.restore(0), 0);
  course.before = held.values();
  for (uint64_t round = 0; round < 3; ++round) held.local.train(toy_critic_batch(6, 6, round));
  held.local.save(5, {}).get();
  course.saved = held.values();
  held.local.train(toy_critic_batch(6, 6, 7));
  held.local.finish_training();
  course.after = held.values();
  course.loss = held.local.last_loss().value();
  EXPECT_EQ(held.local.restore(5), 3);
  course.restored = held.values();
  held.local.save(5, {}).get();  // it is saved already, which rank 0 tells the others
  return course;
}

void expect_near(const std::vector<float>& together, const std::vector<float>& alone) {
  ASSERT_EQ(together.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[i], alone[i], 1e-5) << i;
}

TEST(LocalCriticRanks, LearnsTheSameWhateverIsShardedAndAlmostTheSameAlone) {
  const Course alone = course_of(Group::single(), Sharding::none), none = course_of(world(), Sharding::none);
  EXPECT_NE(alone.before, alone.saved);
  EXPECT_EQ(alone.saved, alone.restored);
  EXPECT_EQ(none.print, alone.print);
  EXPECT_NEAR(none.loss, alone.loss, 1e-5);
  if (world().rank() == 0) expect_near(none.after, alone.after);
  for (const Sharding kind : {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::all}) {
    const Course course = course_of(world(), kind);
    EXPECT_EQ(course.print, none.print);
    EXPECT_EQ(course.before, none.before);
    EXPECT_EQ(course.saved, none.saved);
    EXPECT_EQ(course.after, none.after);
    EXPECT_EQ(course.restored, none.saved);
    EXPECT_EQ(course.loss, none.loss);
  }
}

// Rank 0 tells it, the run goes on, and the next save may succeed.
TEST(LocalCriticRanks, AfterAPartThatCannotBeWrittenTheNextSaveSucceeds) {
  Held held(world(), Sharding::all);
  held.local.train(toy_critic_batch(6, 6, 1));
  const Path stage = parts_stage(held.job.folder(), held.critic.model().step());
  if (world().rank() > 0) make_folder(stage / "state" / str("state.", world().rank(), ".safetensors") / "in the way");
  world().barrier();
  const auto saving = held.local.save(1, {});
  if (world().rank() == 0) {
    EXPECT_THAT(error_of<Error>([&] { saving.get(); }), HasSubstr("rank 1: "));
  }
  world().barrier();
  held.local.save(2, {}).get();
  EXPECT_EQ(held.local.restore(2), 1);
}

}  // namespace
}  // namespace kedge
