#include "kedge/run/ppo_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/machine.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/job_toy.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> with_critic(const testing::JobToy& toy) {
  return {"local_critic.restore_from_path=" + (toy.path() / "rm").string(), "local_critic.model.encoder_seq_length=24",
          "local_critic.model.global_batch_size=2", "local_critic.model.micro_batch_size=2",
          "reward.sources.brief={kind: length, target: 4}"};
}

TEST(PpoJob, TrainsWithACriticInTheProcessAndResumesBoth) {
  const testing::JobToy toy;
  const auto run = [&](const std::string& folder, int steps) {
    PpoJob job;
    testing::load_job(job, {toy.online("ppo", folder), with_critic(toy), {str("trainer.ppo.max_steps=", steps)}});
    EXPECT_TRUE(job.has_critic());
    return job.run({});
  };
  EXPECT_EQ(run("whole", 4), kExitOk);
  EXPECT_EQ(run("halves", 2), kExitOk);
  EXPECT_EQ(run("halves", 4), kExitOk);
  EXPECT_EQ(toy.weights_hash("halves"), toy.weights_hash("whole"));
  EXPECT_TRUE(is_folder(toy.path() / "halves/critic/journals"));
  EXPECT_THAT(read_text(toy.path() / "whole/log.txt"), Not(HasSubstr("last update of")));
}

// 2 responses and 3 epochs.
TEST(PpoJob, ACriticsUpdateThatIsNotFullIsWarnedOf) {
  const testing::JobToy toy;
  PpoJob job;
  testing::load_job(job, {toy.online("ppo"),
                          with_critic(toy),
                          {"trainer.ppo.max_steps=1", "trainer.ppo.critic_epochs=3", "local_critic.model.global_batch_size=4"}});
  EXPECT_EQ(job.run({}), kExitOk);
  EXPECT_THAT(read_text(toy.path() / "run/log.txt"),
              HasSubstr("the 6 rows of a step leave 2 for its last update of 4, whose gradient is scaled by 1/2"));
}

// The first is ended before it has saved: its policy is gone, and its critic is left.
TEST(PpoJob, AForkAfterOneOfAnotherRunHasTheCriticOfItsOwnParent) {
  const testing::JobToy toy;
  const auto newest = [&](const std::string& folder) { return list_checkpoints(toy.path() / folder / "checkpoints").back().folder; };
  const auto critic_hash = [&](const std::string& folder) { return file_hash(newest(folder + "/critic") / "model/model.safetensors"); };
  const auto run = [&](const std::string& folder, int steps, const std::string& critic_lr, const std::optional<Path>& fork = {}) {
    PpoJob job;
    testing::load_job(job, {toy.online("ppo", folder),
                            with_critic(toy),
                            {str("trainer.ppo.max_steps=", steps), "local_critic.model.optim.lr=" + critic_lr,
                             "local_critic.model.optim.sched={name: constant, warmup_steps: 0}"}});
    EXPECT_EQ(job.run({.fork = fork}), kExitOk);
  };
  run("one", 1, "1e-3");
  run("other", 1, "2e-3");
  run("child", 2, "1e-3", newest("one"));
  EXPECT_EQ(list_checkpoints(toy.path() / "child/critic/checkpoints").size(), 2U);
  for (const char* part : {"checkpoints", "model"}) std::filesystem::remove_all(toy.path() / "child" / part);
  run("child", 2, "1e-3", newest("other"));
  run("clean", 2, "1e-3", newest("other"));
  EXPECT_EQ(critic_hash("child"), critic_hash("clean"));
  EXPECT_NE(critic_hash("one"), critic_hash("other"));
}

TEST(PpoJob, AFullDiskBetweenTwoSavesIsNoReasonToEnd) {
  const testing::JobToy toy;
  const auto run = [&](const std::string& folder, bool fills) {
    std::optional<testing::FileSizeLimit> full;
    int64_t num_asked = 0;
    PpoJob job;
    testing::load_job(job, {toy.online("ppo", folder),
                            with_critic(toy),
                            {"trainer.ppo.max_steps=4", "trainer.ppo.save_interval=4"},
                            {"reward.sources={plain: {kind: custom}}"}});
    job.add_reward("plain", std::make_shared<testing::FunctionReward>([&](const Rollout& rollout) {
                     if (fills && num_asked == 2) full.emplace(0);  // from the second step's first response on
                     if (num_asked == 6) full.reset();              // to the fourth's
                     ++num_asked;
                     return testing::plain_share(rollout);
                   }));
    EXPECT_EQ(job.run({}), kExitOk);
    EXPECT_EQ(num_asked, 8);
  };
  run("whole", false);
  run("full", true);
  EXPECT_EQ(toy.weights_hash("full"), toy.weights_hash("whole"));
}

// The critic keeps three saves of its own accord. Here the first checkpoint is the best, and stays while more than three come after it.
TEST(PpoJob, TheCriticKeepsWhatThePolicyMayResumeFrom) {
  const testing::JobToy toy;
  for (const bool save_last : {false, true}) {
    const std::string folder = save_last ? "last" : "best";
    const auto run = [&](int steps) {
      PpoJob job;
      testing::load_job(job, {toy.online("ppo", folder),
                              with_critic(toy),
                              {"exp_manager.checkpoint_callback_params.monitor=step", "exp_manager.checkpoint_callback_params.mode=min",
                               str("exp_manager.checkpoint_callback_params.save_last=", save_last ? "true" : "false"),
                               str("trainer.ppo.max_steps=", steps)}});
      return job.run({});
    };
    EXPECT_EQ(run(5), kExitOk);
    const std::vector<Checkpoint> saved = list_checkpoints(toy.path() / folder / "checkpoints");
    ASSERT_EQ(saved.size(), save_last ? 2U : 1U);
    if (save_last) {
      write_atomic(saved.back().folder / "state/state.json", std::string(static_cast<size_t>(saved.back().files.back().bytes), ' '));
    }
    EXPECT_EQ(run(6), kExitOk);
    EXPECT_THAT(read_text(toy.path() / folder / "log.txt"), HasSubstr(saved.front().folder.string() + " at step 1"));
  }
}

TEST(PpoJob, ACheckpointWithoutItsCriticIsPassedOver) {
  const testing::JobToy toy;
  const auto run = [&](const std::string& folder, int steps) {
    PpoJob job;
    testing::load_job(job, {toy.online("ppo", folder),
                            with_critic(toy),
                            {"exp_manager.checkpoint_callback_params.monitor=step", "exp_manager.checkpoint_callback_params.mode=max",
                             "exp_manager.checkpoint_callback_params.save_top_k=3", str("trainer.ppo.max_steps=", steps)}});
    return job.run({});
  };
  EXPECT_EQ(run("whole", 4), kExitOk);
  EXPECT_EQ(run("run", 3), kExitOk);
  const Path critic = toy.path() / "run/critic/checkpoints";
  const std::vector<Checkpoint> saved = list_checkpoints(toy.path() / "run/checkpoints");
  ASSERT_EQ(saved.size(), 4U);  // the last has two names
  const Path damaged = list_checkpoints(critic).back().folder;
  write_atomic(damaged / "model/model.safetensors", std::string(std::filesystem::file_size(damaged / "model/model.safetensors"), ' '));
  EXPECT_EQ(run("run", 4), kExitOk);
  const std::string log = read_text(toy.path() / "run/log.txt");
  EXPECT_THAT(log, HasSubstr("skipping a damaged checkpoint: " + damaged.string() + ": model/model.safetensors: its bytes are not"));
  EXPECT_THAT(log, HasSubstr(saved[1].folder.string() + " at step 2"));
  EXPECT_EQ(toy.weights_hash("run"), toy.weights_hash("whole"));
  for (const Checkpoint& one : list_checkpoints(critic)) std::filesystem::remove_all(one.folder);
  EXPECT_THAT(error_of([&] { return run("run", 5); }), HasSubstr("has no complete save of step 4 (saves of steps: none)"));
}

TEST(PpoJob, ACriticThatCannotBeIsRefused) {
  const testing::JobToy toy;
  const auto problem = [&](const std::vector<std::string>& more) {
    PpoJob job;
    testing::load_job(job, {toy.online("ppo"), with_critic(toy), more});
    return error_of([&] { return job.run({}); });
  };
  EXPECT_THAT(problem({"local_critic.model.encoder_seq_length=8"}), HasSubstr("the critic reads up to 8 tokens"));
  EXPECT_THAT(problem({"local_critic.restore_from_path=nowhere"}), HasSubstr("local_critic.restore_from_path: no model nowhere"));
}

}  // namespace
}  // namespace kedge
