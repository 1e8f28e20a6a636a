#include "kedge/run/supervised_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/run/sft_job.h"

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(SupervisedJob, PlansWithoutReadingWeights) {
  const testing::JobToy toy;
  write_atomic(toy.path() / "lm/model.safetensors", "no weights");
  SftJob job;
  testing::load_job(job, {toy.sft()});
  const PlanReport report = job.plan({});
  EXPECT_TRUE(report.fits);
  EXPECT_EQ(report.json.at("steps_per_epoch", "plan").as_integer("plan"), 2);
  EXPECT_THAT(report.text, HasSubstr("8 training rows"));
  EXPECT_FALSE(job.plan({.beside = int64_t{1} << 60U}).fits);
  EXPECT_FALSE(is_folder(toy.path() / "run"));
}

TEST(SupervisedJob, ARunBeginsFromACheckpointOfAnother) {
  const testing::JobToy toy;
  SftJob parent;
  testing::load_job(parent, {toy.sft("parent"), {"trainer.sft.save_interval=1"}});
  EXPECT_EQ(parent.run({}), kExitOk);
  Path checkpoint;
  for (const auto& entry : std::filesystem::directory_iterator(toy.path() / "parent/checkpoints")) checkpoint = entry.path();
  SftJob child;
  testing::load_job(child, {toy.sft("child"), {"trainer.sft.max_steps=3"}});
  EXPECT_EQ(child.run({.fork = checkpoint, .arguments = {"run", "--fork"}}), kExitOk);
  EXPECT_NE(toy.weights_hash("child"), toy.weights_hash("parent"));
  EXPECT_THAT(read_text(toy.path() / "child/run.json"), HasSubstr("--fork"));
}

TEST(SupervisedJob, ATokenOutsideTheVocabularyIsRefusedBeforeWeightsAreRead) {
  const testing::JobToy toy;
  toy.cut_vocabulary(258);  // without EOS
  const auto problem = [&](const std::vector<std::string>& changes) {
    SftJob job;
    testing::load_job(job, {toy.sft(), changes});
    return error_of([&] { return job.run({}); });
  };
  EXPECT_THAT(problem({}), HasSubstr("rows.jsonl:1: the tokenizer's id 258 is outside the model's vocabulary of 258"));
  const std::string packs = toy.file("packs.jsonl", R"({"input_ids": [1, 258], "loss_mask": [1, 1], "seq_start_id": [0]})").string();
  EXPECT_THAT(problem({"model.data.train_ds.file_path=" + packs, "model.data.train_ds.packed_sequence=true"}),
              HasSubstr("packs.jsonl:1: \"input_ids\": id 258 is outside the model's vocabulary of 258"));
  SftJob job;  // a tokenizer may have more ids as long as no text uses them
  testing::load_job(job, {toy.sft(), {"model.data.train_ds.add_eos=false", "model.data.validation_ds.add_eos=false"}});
  EXPECT_TRUE(job.plan({}).fits);
}

}  // namespace
}  // namespace kedge
