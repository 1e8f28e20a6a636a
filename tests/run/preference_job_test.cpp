#include "kedge/run/preference_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

struct PreferenceToy : testing::JobToy {
  PreferenceToy() {
    std::string rows;
    for (int i = 0; i < 8; ++i)
      rows += str("{\"prompt\": \"p", i, " \", \"completion\": \"answer\", \"label\": ", i % 3 ? "true" : "false", "}\n");
    file("marked.jsonl", rows);
  }
  [[nodiscard]] std::vector<std::string> settings(const std::string& name, const std::string& run) const {
    const std::string data = (path() / (name == "dpo" ? "pairs.jsonl" : "marked.jsonl")).string();
    return {"pretrained_checkpoint.restore_from_path=" + (path() / "lm").string(),
            "model.data.data_prefix={train: [" + data + "], validation: [" + data + "], test: [" + data + "]}",
            "model.global_batch_size=4",
            "model.micro_batch_size=2",
            "model.optim.lr=1e-2",
            "model.optim.sched.name=constant",
            "model.optim.sched.warmup_steps=0",
            "trainer." + name + ".max_steps=4",
            "trainer." + name + ".max_epochs=100",
            "trainer." + name + ".val_check_interval=2",
            "trainer.threads=1",
            "exp_manager.console=false",
            "exp_manager.explicit_log_dir=" + (path() / run).string()};
  }
  template <typename Job>
  std::string weights_of(const std::string& name, const std::string& run, const std::vector<std::string>& changes = {}) const {
    Job job;
    testing::load_job(job, {settings(name, run), changes});
    EXPECT_EQ(job.run({}), kExitOk);
    return weights_hash(run);
  }
};

TEST(PreferenceJob, TheWeightsAreTheSameHoweverTheReferenceIsKept) {
  const PreferenceToy toy;
  const std::string dpo = toy.weights_of<DpoJob>("dpo", "dpo_memory"), kto = toy.weights_of<KtoJob>("kto", "kto_memory");
  for (const std::string kind : {"disk", "none"}) {
    EXPECT_EQ(toy.weights_of<DpoJob>("dpo", "dpo_" + kind, {"model.dpo.reference_cache=" + kind}), dpo) << kind;
    EXPECT_EQ(toy.weights_of<KtoJob>("kto", "kto_" + kind, {"model.kto.reference_cache=" + kind}), kto) << kind;
  }
  EXPECT_TRUE(is_folder(toy.path() / "dpo_disk/reference_cache"));
  EXPECT_THAT(read_text(toy.path() / "dpo_disk/metrics.jsonl"), HasSubstr("validation/rewards/margins"));
}

TEST(PreferenceJob, ARunThatWasStoppedEndsAsTheOthers) {
  const PreferenceToy toy;
  for (const std::string kind : {"memory", "disk", "none"}) {
    const std::string cache = "model.dpo.reference_cache=" + kind;
    const std::string whole = toy.weights_of<DpoJob>("dpo", "whole_" + kind, {cache});
    toy.weights_of<DpoJob>("dpo", "parts_" + kind, {cache, "trainer.dpo.max_steps=2"});
    EXPECT_EQ(toy.weights_of<DpoJob>("dpo", "parts_" + kind, {cache}), whole) << kind;
  }
}

TEST(PreferenceJob, AResumeNeedsTheReferenceItStartedFrom) {
  const PreferenceToy toy;
  toy.weights_of<DpoJob>("dpo", "run", {"trainer.dpo.max_steps=2"});
  const auto other = testing::byte_model();
  testing::scatter_weights(other->parameters(), 1, 1);
  save_model(*other, toy.path() / "lm");
  DpoJob job;
  testing::load_job(job, {toy.settings("dpo", "run")});
  EXPECT_THAT(error_of([&] { return job.run({}); }), HasSubstr("the reference policy would be a different one"));
}

TEST(PreferenceJob, AdaptersLearnAgainstTheirBase) {
  const PreferenceToy toy;
  DpoJob job;
  testing::load_job(job, {toy.settings("dpo", "run"), {"model.peft.peft_scheme=lora"}});
  EXPECT_EQ(job.run({}), kExitOk);
  EXPECT_TRUE(is_file(toy.path() / "run/model/adapter_config.json"));
}

TEST(PreferenceJob, PlansWithoutReadingWeights) {
  const PreferenceToy toy;
  write_atomic(toy.path() / "lm/model.safetensors", "no weights");
  DpoJob job;
  testing::load_job(job, {toy.settings("dpo", "run")});
  const int64_t cached = job.plan({}).needed;
  testing::load_job(job, {toy.settings("dpo", "run"), {"model.dpo.reference_cache=none"}});
  EXPECT_GT(job.plan({}).needed, cached);  // the copy of the reference
  KtoJob kto;
  testing::load_job(kto, {toy.settings("kto", "run")});
  EXPECT_TRUE(kto.plan({}).fits);
}

TEST(PreferenceJob, ATokenOutsideTheVocabularyIsRefusedBeforeWeightsAreRead) {
  const PreferenceToy toy;
  toy.cut_vocabulary(258);  // without EOS
  const std::vector<std::string> ends = {"model.data.append_eod=true"};
  DpoJob dpo;
  testing::load_job(dpo, {toy.settings("dpo", "run"), ends});
  EXPECT_THAT(error_of([&] { return dpo.run({}); }), HasSubstr("pairs.jsonl:1: the tokenizer's id 258 is outside"));
  KtoJob kto;
  testing::load_job(kto, {toy.settings("kto", "run"), ends});
  EXPECT_THAT(error_of([&] { return kto.run({}); }), HasSubstr("marked.jsonl:1: the tokenizer's id 258 is outside"));
}

}  // namespace
}  // namespace kedge
