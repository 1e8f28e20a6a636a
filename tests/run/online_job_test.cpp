#include "kedge/run/online_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/run/reinforce_job.h"

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

const std::vector<std::string> kCustom = {"reward.sources.plain.kind=custom"};

TEST(OnlineJob, IsFoundByTheNameOfItsCommand) {
  for (const char* name : {"ppo", "reinforce", "rs"}) EXPECT_NE(make_online_job(name), nullptr) << name;
  EXPECT_EQ(make_online_job("sft"), nullptr);
}

TEST(OnlineJob, AsksTheRewardThatItWasGivenAndResumes) {
  const testing::JobToy toy;
  const auto run = [&](const std::string& folder, int steps) {
    auto reward = std::make_shared<testing::FunctionReward>(testing::plain_share);
    ReinforceJob job;
    testing::load_job(job, {toy.online("reinforce", folder), kCustom, {str("trainer.reinforce.max_steps=", steps)}});
    job.add_reward("plain", reward);
    EXPECT_EQ(job.run({.fork = {}, .arguments = {"mine"}}), kExitOk);
    return reward->num_asked;
  };
  const int64_t asked = run("whole", 4);
  EXPECT_GT(asked, 0);
  EXPECT_EQ(run("halves", 2) + run("halves", 4), asked);  // nothing is rewarded twice
  EXPECT_EQ(toy.weights_hash("halves"), toy.weights_hash("whole"));
}

// 8 responses a step: 4 updates in the first step, 1 in the second.
TEST(OnlineJob, TheCosineOfAResumedRunEndsWithItsLastUpdate) {
  const testing::JobToy toy;
  for (const int steps : {1, 2}) {
    ReinforceJob job;
    testing::load_job(job, {toy.online("reinforce"),
                            {"reward.sources.brief={kind: length, target: 4}", "model.optim.lr=1e-3",
                             "model.optim.sched={warmup_steps: 0, constant_steps: 0, horizon: optimizer_steps}",
                             str("model.global_batch_size=", steps == 1 ? 2 : 8), str("trainer.reinforce.max_steps=", steps)}});
    EXPECT_EQ(job.run({}), kExitOk);
  }
  const Json summary = Json::parse(read_text(toy.path() / "run/summary.json"));
  const ScheduleConfig sched{.warmup_steps = 0, .constant_steps = 0};
  EXPECT_EQ(summary.at("metrics", "summary").at("train_optim/lr", "metrics").as_number("lr"), Schedule(sched, 1e-3, 5).rate(4));
}

TEST(OnlineJob, ARewardThatTheProgramDoesNotBringIsRefused) {
  const testing::JobToy toy;
  ReinforceJob job;
  testing::load_job(job, {toy.online("reinforce"), kCustom});
  EXPECT_THAT(error_of([&] { return job.run({}); }), HasSubstr("reward.sources.plain.kind: custom is for a program"));
}

TEST(OnlineJob, PlansWithoutReadingWeights) {
  const testing::JobToy toy;
  write_atomic(toy.path() / "lm/model.safetensors", "no weights");
  ReinforceJob job;
  testing::load_job(job, {toy.online("reinforce"), kCustom});
  const PlanReport report = job.plan({});
  EXPECT_TRUE(report.fits);
  EXPECT_GT(report.needed, 0);
  EXPECT_EQ(report.json.at("max_steps", "plan").as_integer("plan"), 2);
  EXPECT_THAT(report.text, HasSubstr("2 prompts x "));
  const PlanReport full = job.plan({.beside = int64_t{1} << 60U});
  EXPECT_FALSE(full.fits);
}

}  // namespace
}  // namespace kedge
