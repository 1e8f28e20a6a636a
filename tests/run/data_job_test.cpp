#include "kedge/run/data_job.h"

#include <gtest/gtest.h>

#include "kedge/run/preference_job.h"
#include "kedge/run/rm_job.h"

#include "tests/support/job_toy.h"

namespace kedge {
namespace {

// What all of them take from `model.data` and from the section of their own name.
template <typename Job>
void expect_common(const std::string& name) {
  Job job;
  testing::load_job(job, {{"pretrained_checkpoint.restore_from_path=lm",
                           "model.data.data_prefix={train: [a.jsonl], validation: [b.jsonl], test: [c.jsonl]}", "model.data.seq_length=100",
                           "model.global_batch_size=6", "model.micro_batch_size=3", "model.seed=7",
                           "trainer." + name + ".train_random_sampler=false", "trainer." + name + ".max_steps=4"}});
  const SupervisedSections sections = job.sections();
  EXPECT_EQ(sections.name, name);
  EXPECT_EQ(sections.model_key, "pretrained_checkpoint.restore_from_path");
  EXPECT_EQ(sections.model_path, "lm");
  EXPECT_EQ(sections.loop.max_steps, 4);
  const SupervisedBatches batches = job.batches();
  EXPECT_EQ(batches.global_size, 6);
  EXPECT_EQ(batches.micro_size, 3);
  EXPECT_FALSE(batches.shuffle);
  EXPECT_EQ(batches.seed, 7U);
  EXPECT_EQ(job.files(), (std::vector<Path>{"c.jsonl", "a.jsonl", "b.jsonl"}));
  job.limit_length(64);
  EXPECT_EQ(to_json(section_node(job.section())).at("model", "").at("data", "").at("seq_length", "").as_integer(""), 64);
  job.limit_length(80);
  EXPECT_EQ(to_json(section_node(job.section())).at("model", "").at("data", "").at("seq_length", "").as_integer(""), 64) << "never longer";
}

TEST(DataJob, RewardModelsDpoAndKtoReadTheSameKeys) {
  expect_common<RmJob>("rm");
  expect_common<DpoJob>("dpo");
  expect_common<KtoJob>("kto");
}

}  // namespace
}  // namespace kedge
