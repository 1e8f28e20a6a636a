#include "kedge/algo/online/grpo.h"

#include <gtest/gtest.h>

#include "kedge/algo/config_sections.h"
#include "kedge/config/config.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

const std::vector<std::string> kNeeded = {"pretrained_checkpoint.restore_from_path=DIR", "model.data.data_prefix=[prompts.jsonl]"};

template <typename Config>
Config loaded(std::vector<std::string> overrides) {
  Config config;
  overrides.insert(overrides.end(), kNeeded.begin(), kNeeded.end());
  static_cast<void>(load_section(describe(config), ConfigText(), overrides));
  return config;
}

TEST(Grpo, HasTheDefaultsThatPeopleExpect) {
  const auto config = loaded<GrpoConfig>({});
  const GrpoLoopConfig& loop = config.trainer.loop;
  EXPECT_EQ(loop.num_rollouts_per_prompt, 8);
  EXPECT_EQ(loop.baseline, Baseline::group_norm);
  EXPECT_EQ(loop.ratio, RatioKind::clip);
  EXPECT_EQ(loop.clip_min(), 0.2);
  EXPECT_EQ(loop.clip_max(), 0.2);
  EXPECT_EQ(loop.loss_norm, LossNorm::tokens);
  EXPECT_FALSE(loop.wants_reference());
  EXPECT_EQ(loop.unfinished, Unfinished::keep);
  EXPECT_EQ(loop.gradient_clip_val, 1);
  EXPECT_EQ(config.model.optim.lr, 1e-6);
  EXPECT_EQ(config.model.optim.betas, std::vector<double>({0.9, 0.999}));
  EXPECT_EQ(config.model.optim.weight_decay, 0);
  EXPECT_EQ(config.model.optim.sched.name, ScheduleKind::constant);
  EXPECT_EQ(config.model.rollouts.temperature(), 1);
  EXPECT_EQ(settings_of(config).model.global_batch_size, 256) << "all responses are one update";
  const auto rloo = loaded<RlooConfig>({});
  EXPECT_EQ(rloo.trainer.loop.initial_policy_kl_penalty, 0.05);
  EXPECT_EQ(rloo.trainer.loop.sequence_level_importance_ratios, RatioLevel::product);
  EXPECT_EQ(settings_of(rloo).model.global_batch_size, 64);
}

TEST(Grpo, ReadsTheWordsOfOtherSystems) {
  const auto trl = loaded<GrpoConfig>({"trainer.grpo.num_generations=4", "trainer.grpo.epsilon=0.1", "trainer.grpo.epsilon_high=0.3",
                                       "trainer.grpo.delta=2", "trainer.grpo.beta=0.02", "trainer.grpo.loss_type=dr_grpo",
                                       "trainer.grpo.num_iterations=2", "trainer.grpo.importance_sampling_level=sequence",
                                       "model.grpo.max_completion_length=50"});
  const GrpoLoopConfig& loop = trl.trainer.loop;
  EXPECT_EQ(loop.num_rollouts_per_prompt, 4);
  EXPECT_EQ(loop.clip_min(), 0.1);
  EXPECT_EQ(loop.clip_max(), 0.3);
  EXPECT_EQ(loop.ratio_clip_c, 2);
  EXPECT_EQ(loop.reference_policy_kl_penalty, 0.02);
  EXPECT_EQ(loop.loss_norm, LossNorm::constant);
  EXPECT_EQ(loop.epochs, 2);
  EXPECT_EQ(loop.sequence_level_importance_ratios, RatioLevel::sequence);
  EXPECT_EQ(trl.model.rollouts.length_params.max_length, 50);
  EXPECT_EQ(loaded<RlooConfig>({"trainer.rloo.beta=0.02"}).trainer.loop.initial_policy_kl_penalty, 0.02);
  const std::vector<std::string> keys = {"trainer.grpo.rollout.n=3", "trainer.grpo.filter_groups.enable=true",
                                         "trainer.grpo.loss_agg_mode=seq-mean-token-sum"};
  const std::string map = "trainer.grpo={rollout: {n: 3}, filter_groups: {enable: true}, loss_agg_mode: seq-mean-token-sum}";
  for (const auto& given : {keys, std::vector<std::string>{map}}) {
    const auto others = loaded<GrpoConfig>(given);
    EXPECT_EQ(others.trainer.loop.num_rollouts_per_prompt, 3);
    EXPECT_TRUE(others.trainer.loop.use_dynamic_sampling);
    EXPECT_EQ(others.trainer.loop.loss_norm, LossNorm::sum);
  }
  EXPECT_EQ(loaded<GrpoConfig>({"trainer.grpo.token_level_loss=false"}).trainer.loop.loss_norm, LossNorm::sequences);
}

// Settings that an older program wrote out, with every key that it knew.
TEST(Grpo, SettingsFromBeforeAKeyMeanWhatTheyMeantThen) {
  auto config = loaded<GrpoConfig>({});
  Json written = to_json(section_node(describe(config)));
  EXPECT_TRUE(take_older_values(describe(config), written).empty());
  EXPECT_EQ(config.model.rollouts.logprob_temperature, LogprobTemperature::sampling);
  EXPECT_TRUE(config.model.rollouts.share_prompts);
  Json model = written.at("model", ""), rollouts = model.at("grpo", "");
  Json::Object known = rollouts.as_object("");
  std::erase_if(known, [](const Json::Member& member) { return member.first == "logprob_temperature" || member.first == "share_prompts"; });
  model.set("grpo", Json(known));
  written.set("model", model);
  EXPECT_EQ(take_older_values(describe(config), written),
            std::vector<std::string>({"model.grpo.share_prompts=false", "model.grpo.logprob_temperature=one"}));
  EXPECT_EQ(config.model.rollouts.logprob_temperature, LogprobTemperature::one);
  EXPECT_FALSE(config.model.rollouts.share_prompts);
}

TEST(Grpo, ARecipeSetsDefaultsThatASettingChanges) {
  GrpoConfig config;
  set_defaults(describe(config), {"recipe", "trainer: {grpo: {ratio_clip_max: 0.28, num_generations: 16}}"});
  static_cast<void>(load_section(describe(config), {"file", "trainer: {grpo: {num_rollouts_per_prompt: 5}}"}, kNeeded));
  EXPECT_EQ(config.trainer.loop.clip_max(), 0.28);
  EXPECT_EQ(config.trainer.loop.num_rollouts_per_prompt, 5);
  const auto wrong = [&] { return set_defaults(describe(config), {"recipe", "trainer: {grpo: {ratio_clip: 1}}"}), 0; };
  EXPECT_EQ(testing::error_of(wrong).substr(0, 63), "recipe:1: trainer.grpo.ratio_clip: no key that a recipe can set");
}

}  // namespace
}  // namespace kedge
