#include "kedge/run/online_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/run/ppo_job.h"
#include "kedge/run/rs_job.h"

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

const std::vector<std::string> kRule = {"reward.sources.brief={kind: length, target: 4}"};

TEST(OnlineSetup, FindsWhatIsWrongBeforeWeightsAreRead) {
  const testing::JobToy toy;
  write_atomic(toy.path() / "lm/model.safetensors", "no weights");
  const auto make = [&](const std::vector<std::string>& more) {
    RsJob job;
    testing::load_job(job, {toy.online("rs"), kRule, more});
    return OnlineSetup(job).folder;
  };
  const auto problem = [&](const std::vector<std::string>& more) { return error_of([&] { return make(more); }); };
  EXPECT_NO_THROW(make({}));
  EXPECT_THAT(problem({"model.data.data_prefix={train: [no.jsonl], validation: [no.jsonl], test: [no.jsonl]}"}), HasSubstr("no.jsonl"));
  const std::string files = "[" + (toy.path() / "prompts.jsonl").string() + "]";
  EXPECT_THAT(problem({str("model.data.data_prefix={train: ", files, ", validation: ", files, ", validation_hard: ", files,
                           ", test: ", files, "}")}),
              HasSubstr("model.data.data_prefix.validation_hard: online training has one validation set; use kedge eval --prompts FILE"));
  EXPECT_THAT(problem({"pretrained_checkpoint.restore_from_path=nowhere"}),
              HasSubstr("pretrained_checkpoint.restore_from_path: no model nowhere"));
  EXPECT_THAT(problem({"~reward.sources.brief.target", "reward.sources.brief.kind=model", "+reward.sources.brief.folder=nowhere"}),
              HasSubstr("reward.sources.brief.folder"));
  EXPECT_NO_THROW(make({"model.data.add_bos=true"}));
  toy.write_tokenizer_without_bos();
  EXPECT_THAT(problem({"model.data.add_bos=true"}),
              HasSubstr("model.data.add_bos: the tokenizer of " + (toy.path() / "lm").string() + " has no BOS token; set it to false"));
}

TEST(OnlineSetup, APromptWithATokenOutsideTheVocabularyIsRefused) {
  const testing::JobToy toy;
  toy.cut_vocabulary('q');
  toy.file("prompts.jsonl", "{\"text\": \"p\"}\n{\"text\": \"q\"}\n");
  RsJob job;
  testing::load_job(job, {toy.online("rs"), kRule});
  EXPECT_THAT(error_of([&] { return OnlineSetup(job).folder; }), HasSubstr("prompts.jsonl:2: the tokenizer's id 113 is outside"));
}

TEST(OnlineSetup, EveryRowThatIsUsedHasASourceOfItsReward) {
  const testing::JobToy toy;
  toy.file("prompts.jsonl", "{\"text\": \"a\", \"lang\": \"de\"}\n{\"text\": \"b\", \"lang\": \"fr\"}\n");
  const auto make = [&](const std::string& route, const std::vector<std::string>& more = {}) {
    RsJob job;
    testing::load_job(job, {toy.online("rs"), {"reward.sources.brief={kind: length, target: 4, route: " + route + "}"}, more});
    return OnlineSetup(job).folder;
  };
  EXPECT_NO_THROW(make("{lang: [de, fr]}"));
  EXPECT_NO_THROW(make("{lang: de}", {"+reward.sources.others={kind: length, target: 4}"}));
  EXPECT_THAT(error_of([&] { return make("{lang: de}"); }),
              HasSubstr("prompts.jsonl:2: no reward source takes a row where lang is \"fr\"; reward.sources.brief takes lang: \"de\""));
}

TEST(OnlineSetup, TheFilesAnswersDependOnAreInTheFingerprint) {
  const testing::JobToy toy;
  RsJob job;
  testing::load_job(job, {toy.online("rs"), kRule});
  const std::string before = files_fingerprint(OnlineSetup(job));
  EXPECT_EQ(files_fingerprint(OnlineSetup(job)), before);
  toy.file("prompts.jsonl", "{\"text\": \"another\"}\n{\"text\": \"and one\"}\n");
  EXPECT_NE(files_fingerprint(OnlineSetup(job)), before);
}

TEST(OnlineSetup, ACriticInTheProcessTakesMemory) {
  const testing::JobToy toy;
  PpoJob job;
  testing::load_job(job, {toy.online("ppo"), kRule, {"local_critic.restore_from_path=" + (toy.path() / "rm").string()}});
  const OnlineSetup with(job), without(job, {.has_critic = false});
  EXPECT_GT(with.critic_bytes, 0);
  EXPECT_EQ(without.critic_bytes, 0);
  EXPECT_GT(with.memory.needed, without.memory.needed);
}

}  // namespace
}  // namespace kedge
