#include "kedge/run/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/job_toy.h"

namespace kedge {
namespace {

TEST(Job, IsFoundByTheNameOfItsCommand) {
  for (const char* name : {"sft", "rm", "ppo", "reinforce", "rs"}) EXPECT_NE(make_job(name), nullptr) << name;
  EXPECT_EQ(make_job("serve"), nullptr);
  EXPECT_EQ(make_job(""), nullptr);
}

TEST(Job, ARunThatWasStoppedEndsAsOneThatWasNot) {
  const testing::JobToy toy;
  const auto run = [&](const std::string& folder, int steps) {
    const std::unique_ptr<Job> job = make_job("sft");
    testing::load_job(*job, {toy.sft(folder), {str("trainer.sft.max_steps=", steps), "trainer.sft.save_interval=1"}});
    return job->run({});
  };
  EXPECT_EQ(run("whole", 4), kExitOk);
  EXPECT_EQ(run("halves", 2), kExitOk);
  const std::string half = toy.weights_hash("halves");
  EXPECT_EQ(run("halves", 4), kExitOk);
  EXPECT_NE(toy.weights_hash("halves"), half);
  EXPECT_EQ(toy.weights_hash("halves"), toy.weights_hash("whole"));
}

}  // namespace
}  // namespace kedge
