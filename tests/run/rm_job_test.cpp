#include "kedge/run/rm_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(RmJob, LeavesWhatAServerNeedsToStandardiseRewards) {
  const testing::JobToy toy;
  RmJob job;
  testing::load_job(job, {toy.rm()});
  EXPECT_EQ(job.run({}), kExitOk);
  EXPECT_THAT(read_text(toy.path() / "run/summary.json"), HasSubstr("reward_standardization"));
  EXPECT_THAT(read_text(toy.path() / "run/model/config.json"), HasSubstr("ForSequenceClassification"));
}

TEST(RmJob, TheyAreOfTheBestModelIfThatIsTheOneItLeaves) {
  const testing::JobToy toy;
  const std::string checkpoints = "exp_manager.checkpoint_callback_params.";
  RmJob job;
  testing::load_job(job, {toy.rm(),
                          {"trainer.rm.val_check_interval=1", "trainer.rm.save_interval=1", checkpoints + "save_best_model=true",
                           checkpoints + "monitor=step", checkpoints + "mode=min"}});
  EXPECT_EQ(job.run({}), kExitOk);
  const Checkpoint best = list_checkpoints(toy.path() / "run/checkpoints").front();
  const Json summary = Json::parse(read_text(toy.path() / "run/summary.json"));
  EXPECT_EQ(best.step(), 1);
  EXPECT_EQ(summary.at("model_step", ""), Json(1));
  EXPECT_EQ(summary.at("reward_standardization", "").at("mean", ""), Json(best.meta.metrics.at("val_rewards_all_mean")));
  EXPECT_EQ(summary.at("reward_standardization", "").at("std", ""), Json(best.meta.metrics.at("val_rewards_all_std")));
}

TEST(RmJob, AHeadOfAnotherSizeIsRefused) {
  const testing::JobToy toy;
  RmJob job;
  testing::load_job(
      job, {toy.rm(),
            {"model.regression.num_attributes=2", "model.regression.load_rm_head_weights=true", "model.reward_model_type=regression",
             "pretrained_checkpoint.restore_from_path=" + (toy.path() / "rm").string()}});
  EXPECT_THAT(error_of([&] { return job.load(toy.path() / "rm", {}); }),
              HasSubstr("model.regression.num_attributes: 2 attributes, but the head of"));
}

TEST(RmJob, ARowWithoutTheOtherOfItsPairIsRefused) {
  const testing::JobToy toy;
  std::string rows;
  for (int i = 0; i < 3; ++i) rows += "{\"text\": \"a\", \"label\": [1, 2, 3, 4, 1]}\n";
  toy.file("judged.jsonl", rows);
  const std::string data = (toy.path() / "judged.jsonl").string();
  RmJob job;
  testing::load_job(job, {toy.rm(),
                          {"model.reward_model_type=regression", "model.regression.loss_func=scaled_bt",
                           "model.regression.num_attributes=5", "trainer.rm.train_random_sampler=false", "model.global_batch_size=2",
                           "model.data.data_prefix={train: [" + data + "], validation: [" + data + "], test: [" + data + "]}"}});
  EXPECT_THAT(error_of([&] { return SupervisedSetup(job).folder; }), HasSubstr("3 rows; expected a multiple of 2"));
}

}  // namespace
}  // namespace kedge
