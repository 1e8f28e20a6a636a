#include "kedge/critic/critic_fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/critic/critic.h"

#include "tests/support/expect_error.h"
#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

using testing::CriticToy;
using testing::error_of;
using ::testing::HasSubstr;
using testing::JudgeFolder;
using testing::same_bits;
using testing::TempFolder;
using testing::toy_critic_batch;
using testing::weights_of;

struct ForkToy {
  JudgeFolder judge;
  TempFolder parent, child;

  [[nodiscard]] std::unique_ptr<CriticToy> open(const Path& folder) const { return std::make_unique<CriticToy>(judge, folder); }
};

// Of a parent that trained on since, and still does.
TEST(CriticFork, AChildGoesOnFromTheSavesOfItsParent) {
  const ForkToy toy;
  const CriticCaller parent_run{.run = "parent"}, child_run{.run = "child"};
  const auto parent = toy.open(toy.parent.path());
  parent->critic->restore(0, "", parent_run);
  parent->critic->train(toy_critic_batch(4, 6, 1), "", 0, parent_run);
  parent->critic->save(5, "", parent_run);
  const Tensor at_five = weights_of(parent->critic->model()).clone();
  parent->critic->train(toy_critic_batch(4, 6, 2), "", 1, parent_run);
  parent->critic->save(10, "", parent_run);
  const Tensor at_ten = weights_of(parent->critic->model()).clone();

  fork_critic(toy.parent.path(), toy.child.path(), {.what = "fork"});
  const auto child = toy.open(toy.child.path());
  EXPECT_EQ(child->critic->restore(5, "", child_run).train_calls, 1);
  EXPECT_EQ(child->critic->owner(), "child");
  EXPECT_TRUE(same_bits(weights_of(child->critic->model()), at_five));
  child->critic->train(toy_critic_batch(4, 6, 2), "", 1, child_run);
  EXPECT_TRUE(same_bits(weights_of(child->critic->model()), at_ten));
  fork_critic(toy.parent.path(), toy.child.path(), {.what = "fork"});  // started again, it goes on with its own
  EXPECT_EQ(toy.open(toy.child.path())->critic->train_calls(), 2);

  EXPECT_EQ(parent->critic->owner(), "parent");
  EXPECT_EQ(parent->critic->train(toy_critic_batch(4, 6, 3), "", 2, parent_run).train_calls, 3);
}

TEST(CriticFork, ASingleSaveByItsStepOrItsFolder) {
  const ForkToy toy;
  const auto parent = toy.open(toy.parent.path());
  for (int64_t step = 1; step <= 2; ++step) {
    parent->critic->train(toy_critic_batch(4, 6, 1), "");
    parent->critic->save(step, "");
  }
  fork_critic(toy.parent.path(), toy.child.path(), {.actor_step = 1, .what = "fork"});
  EXPECT_EQ(toy.open(toy.child.path())->critic->train_calls(), 1);
  const TempFolder other;
  fork_critic(toy.parent / "checkpoints/megatron_gpt-step=2-last", other.path(), {.what = "fork"});
  EXPECT_EQ(toy.open(other.path())->critic->train_calls(), 2);
}

TEST(CriticFork, ACriticThatIsThereIsReplacedIfThatIsWanted) {
  const ForkToy toy;
  const auto parent = toy.open(toy.parent.path());
  parent->critic->train(toy_critic_batch(4, 6, 1), "");
  parent->critic->save(5, "");
  {
    const auto earlier = toy.open(toy.child.path());
    for (int64_t step = 5; step <= 6; ++step) {
      earlier->critic->train(toy_critic_batch(4, 6, 2), "");
      earlier->critic->save(step, "");
    }
    earlier->critic->restore(5, "");
  }
  EXPECT_ANY_THROW(fork_critic(toy.parent.path(), toy.child.path(), {.actor_step = 6, .replaces = true, .what = "fork"}));
  EXPECT_TRUE(is_folder(toy.child / "checkpoints/megatron_gpt-step=1-last")) << "nothing is removed for a fork that cannot be";
  fork_critic(toy.parent.path(), toy.child.path(), {.actor_step = 5, .replaces = true, .what = "fork"});
  EXPECT_FALSE(is_folder(toy.child / "set_aside"));
  const auto child = toy.open(toy.child.path());
  EXPECT_EQ(child->critic->restore(5, "").train_calls, 1);
  EXPECT_TRUE(same_bits(child->weights(), parent->weights()));
  EXPECT_ANY_THROW(child->critic->restore(6, ""));
}

TEST(CriticFork, ResumesOnlyIfTheKeysSaySo) {
  const ForkToy toy;
  const Path used = toy.parent.path(), unused = toy.child.path();
  static_cast<void>(toy.open(used));
  check_resume({}, used);
  check_resume({}, unused);
  RunFolderConfig afresh;
  afresh.resume_if_exists = false;
  check_resume(afresh, unused);
  EXPECT_EQ(error_of([&] { return check_resume(afresh, used), 0; }),
            used.string() +
                ": holds a critic; exp_manager.resume_if_exists=true continues with it, another explicit_log_dir starts from scratch");
  RunFolderConfig again;
  again.resume_ignore_no_checkpoint = false;
  check_resume(again, used);
  EXPECT_EQ(error_of([&] { return check_resume(again, unused), 0; }),
            unused.string() + ": no critic to continue with, and exp_manager.resume_ignore_no_checkpoint=false");
  again.resume_from_checkpoint = used.string();
  check_resume(again, unused);
}

TEST(CriticFork, WhatIsNotThereIsTold) {
  const ForkToy toy;
  const auto refusal = [&](const Path& from, std::optional<int64_t> step) {
    return error_of([&] { fork_critic(from, toy.child.path(), {.actor_step = step, .what = "--fork X"}); });
  };
  EXPECT_THAT(refusal(toy.parent.path(), {}), HasSubstr("--fork X: there is no critic in " + toy.parent.path().string()));
  const auto parent = toy.open(toy.parent.path());
  EXPECT_THAT(refusal(toy.parent.path(), {}), HasSubstr("has no complete save (saves of steps: none)"));
  parent->critic->save(5, "");
  EXPECT_THAT(refusal(toy.parent.path(), 4), HasSubstr("has no complete save of step 4 (saves of steps: 5)"));
  EXPECT_FALSE(is_folder(toy.child / "checkpoints"));
}

}  // namespace
}  // namespace kedge
