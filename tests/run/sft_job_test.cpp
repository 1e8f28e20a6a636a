#include "kedge/run/sft_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

TEST(SftJob, ReadsItsPartsFromItsSettings) {
  const testing::JobToy toy;
  SftJob job;
  testing::load_job(job, {toy.sft(), {"model.encoder_seq_length=4096", "model.seed=9"}});
  EXPECT_EQ(job.sections().name, "sft");
  EXPECT_EQ(job.batches().global_size, 4);
  EXPECT_EQ(job.batches().seed, 9);
  EXPECT_EQ(job.files().size(), 2U);
  job.limit_length(64);
  const SupervisedSetup setup(job);
  EXPECT_LE(setup.data.largest_micro.longest, 64);
  EXPECT_GT(job.cache_bytes(setup.network, 4, 64), 0);
  testing::load_job(job, {toy.sft(), {"model.num_samples=0"}});
  EXPECT_EQ(job.cache_bytes(setup.network, 4, 64), 0);  // nothing is sampled
  toy.write_tokenizer_without_bos();
  testing::load_job(job, {toy.sft(), {"model.data.train_ds.add_bos=true"}});
  EXPECT_THAT(testing::error_of([&] { return SupervisedSetup(job).folder; }),
              ::testing::HasSubstr("model.data.train_ds.add_bos: the tokenizer of " + (toy.path() / "lm").string() + " has no BOS token"));
}

}  // namespace
}  // namespace kedge
