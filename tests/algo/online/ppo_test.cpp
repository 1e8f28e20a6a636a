#include "kedge/algo/online/ppo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/algo/config_sections.h"

#include "tests/support/expect_error.h"
#include "tests/support/ppo_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::PpoToy;
using testing::same_bits;
using testing::shown;

double number(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(NAN);
}

TEST(Ppo, AStepSaysWhatItDid) {
  PpoToy toy;
  toy.ppo.trainer.loop.ppo_epochs = 2;
  toy.ppo.model.global_batch_size = 2;
  const auto trainer = toy.ppo_trainer();
  const StepReport report = trainer->train_step();
  ASSERT_EQ(report.updates.size(), 4U) << "4 prompts, 2 an update, twice";
  EXPECT_EQ(number(report.metrics, "train_rollouts/rollout_size"), 4);
  EXPECT_EQ(number(report.metrics, "train_rollouts/init_policy_kl"), 0) << "the policy is the reference still";
  EXPECT_EQ(number(report.metrics, "train_rollouts/consumed_samples"), 4);
  for (const char* name : {"advantages_mean", "advantages_std", "returns_mean", "returns_std", "values_mean", "values_std", "values_loss",
                           "values_explained", "rewards_with_kl"})
    EXPECT_TRUE(std::isfinite(number(report.metrics, str("train_rollouts/", name)))) << name;
  EXPECT_EQ(number(report.updates[0], "train_optim/ppo_ratio"), 1);
  EXPECT_EQ(number(report.updates[0], "train_optim/ppo_ratio_clamped"), 1);
  EXPECT_EQ(number(report.updates[0], "train_optim/ppo_clip_fraction"), 0);
  EXPECT_EQ(number(report.updates[0], "train_optim/scaled_entropy"), 0);
  EXPECT_NE(number(report.updates[3], "train_optim/ppo_ratio"), 1);
  EXPECT_EQ(trainer->counters().at("ppo_optimization_step"), 4);
  trainer->finish();
  EXPECT_EQ(toy.critic->train_calls(), 1);
}

// Bit for bit: with all weights and with adapters, in fp32 and bf16, however log-probabilities are come by.
TEST(Ppo, TheRatioIsOneBeforeTheFirstUpdateOfEveryStep) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const bool adapted : {false, true})
      for (const LogprobSource source : {LogprobSource::automatic, LogprobSource::trainer}) {
        PpoToy toy(testing::byte_model({}, {.dtype = dtype, .trainable = !adapted}));
        if (adapted) {
          toy.model->add_adapters({}, true);
          toy.model->adapters()->initialise(1);
        }
        toy.ppo.model.rollouts.logprobs = source;
        toy.ppo.trainer.loop.ppo_epochs = 2;
        const auto trainer = toy.ppo_trainer();
        for (int i = 0; i < 3; ++i) {
          const StepReport report = trainer->train_step();
          EXPECT_EQ(number(report.updates[0], "train_optim/ppo_ratio"), 1);
          EXPECT_EQ(number(report.updates[0], "train_optim/ppo_ratio_clamped"), 1);
          EXPECT_NE(number(report.updates[1], "train_optim/ppo_ratio"), 1);
        }
      }
}

RolloutRow row_of(int64_t prompt_length, int64_t length, double reward, bool finished = true) {
  Rollout rollout{.prompt_length = prompt_length, .finished = finished};
  for (int64_t i = 0; i < length; ++i) rollout.ids.push_back(static_cast<TokenId>(10 * prompt_length + i));
  RolloutRow row{.rollout = std::make_shared<const Rollout>(std::move(rollout))};
  row.reward.value = reward;
  return row;
}

// The two rows of the reference's vectors 21.2 to 21.4: the places of the answers alone.
RolloutRows vector_rows() {
  RolloutRows rows = {row_of(3, 7, 1.75), row_of(2, 5, -0.40, false)};
  rows[1].slot = 1;
  rows[0].logprobs = {-0.50F, -1.10F, -0.30F, -0.90F};
  rows[0].reference = {-0.80F, -0.90F, -0.45F, -0.60F};
  rows[0].values = {0.30F, 0.42F, 0.37F, 0.55F};
  rows[1].logprobs = {-0.60F, -1.40F, -0.20F};
  rows[1].reference = {-0.50F, -1.10F, -0.65F};
  rows[1].values = {0.05F, -0.20F, 0.12F};
  return rows;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6) << i;  // the vectors' inputs in single precision
}

TEST(Ppo, AdvantagesAndReturnsAreThoseOfTheReference) {
  PpoToy toy;
  toy.ppo.trainer.loop.initial_policy_kl_penalty = 0.05;
  const auto trainer = toy.ppo_trainer();
  OnlineStep step{.rows = vector_rows()};
  RolloutRows& rows = step.rows;
  trainer->generate_ppo_data(step);
  expect_near(rows[0].returns, {1.519670625, 1.5933375, 1.66825, 1.735});
  expect_near(rows[1].returns, {-0.40485625, -0.410375, -0.4225});
  expect_near(rows[0].advantages, {0.860243574, 0.802943345, 0.957422777, 0.817366372});
  expect_near(rows[1].advantages, {-1.210645728, -0.908295486, -1.319034853});
  EXPECT_NEAR((rows[0].reward_with_kl + rows[1].reward_with_kl) / 2, 0.1390625, 1e-6) << "a number of tokens, not of answers";
  EXPECT_NEAR((rows[0].kl_mean + rows[1].kl_mean) / 2, 0.260416667, 1e-6);

  toy.ppo.trainer.loop.normalize_advantages = false;
  const auto plain = toy.ppo_trainer();
  plain->generate_ppo_data(step);
  expect_near(rows[0].advantages, {1.219670625, 1.1733375, 1.29825, 1.185});
  toy.ppo.trainer.loop.discount_factor = 0.9;
  toy.ppo.trainer.loop.gae_lambda = 0.8;
  toy.ppo_trainer()->generate_ppo_data(step);
  expect_near(rows[0].advantages, {0.49637088, 0.601904, 0.9707, 1.185});
  expect_near(rows[1].returns, {-0.255272, -0.2976, -0.4225});
}

// Before they are whitened; over all rows, also those that did not end.
TEST(Ppo, StatisticsAreOfAllTokensBeforeWhitening) {
  PpoToy toy;
  toy.ppo.trainer.loop.initial_policy_kl_penalty = 0.05;
  toy.ppo.trainer.loop.unfinished = Unfinished::drop;
  const auto trainer = toy.ppo_trainer();
  OnlineStep step{.rows = vector_rows()};
  RolloutRows& rows = step.rows;
  trainer->generate_ppo_data(step);
  const Metrics& numbers = step.metrics;
  EXPECT_NEAR(number(numbers, "advantages_mean"), 0.524075268, 1e-6);
  EXPECT_NEAR(number(numbers, "advantages_std"), 0.808602788, 1e-6);
  EXPECT_NEAR(number(numbers, "values_mean"), 0.23, 1e-6);
  EXPECT_NEAR(number(numbers, "values_std"), 0.236763897, 1e-6);
  EXPECT_NEAR(number(numbers, "returns_mean"), 0.754075268, 1e-6);
  EXPECT_NEAR(number(numbers, "returns_std"), 1.012198609, 1e-6);
  EXPECT_TRUE(rows[0].trains);
  EXPECT_FALSE(rows[1].trains);
}

// Not their mean, as REINFORCE has it: what is expected at the first token bears the penalties of all.
TEST(Ppo, PenaltiesOfTokensAddUp) {
  PpoToy toy;
  toy.ppo.trainer.loop.initial_policy_kl_penalty = 0.05;
  toy.ppo.trainer.loop.gae_lambda = 1;
  OnlineStep step{.rows = vector_rows()};
  RolloutRows& rows = step.rows;
  for (RolloutRow& row : rows) row.values.assign(row.values.size(), 0);
  toy.ppo_trainer()->generate_ppo_data(step);
  EXPECT_NEAR(rows[0].returns[0], 1.75 - 0.05 * (0.30 + 0.20 + 0.15 + 0.30), 1e-6);
}

// The policy learns nothing from answers that were cut; its ratio, and the critic, know them.
TEST(Ppo, AnswersThatDidNotEndTeachTheCriticAlone) {
  PpoToy toy;
  toy.ppo.trainer.loop.unfinished = Unfinished::drop;
  toy.ppo.trainer.loop.ppo_epochs = 2;
  toy.ppo.model.rollouts.entropy_bonus = 0.1;
  toy.ppo.model.optim.weight_decay = 0;
  const auto trainer = toy.ppo_trainer();
  static_cast<void>(trainer->train_step());  // now policy and reference differ
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  for (RolloutRow& row : rows) {
    auto cut = std::make_shared<Rollout>(*row.rollout);
    cut->finished = false;
    row.rollout = cut;
    for (float& logprob : row.logprobs) logprob -= std::log(1.5F);  // as if updates had made the policy another
  }
  trainer->generate_ppo_data(step);
  const Tensor before = toy.weights().clone();
  trainer->train_critic(step);
  const std::vector<Metrics> updates = trainer->run_training(step);
  EXPECT_NEAR(number(updates[0], "train_optim/ppo_ratio"), 1.5, 1e-5);
  EXPECT_NEAR(number(updates[0], "train_optim/ppo_ratio_clamped"), 1.2, 1e-6);
  EXPECT_EQ(number(updates[0], "train_optim/ppo_clip_fraction"), 0) << "the clip takes no gradient where there is none";
  for (const Metrics& update : updates) {
    EXPECT_EQ(number(update, "train_optim/loss"), 0);
    EXPECT_EQ(number(update, "train_optim/grad_norm"), 0);
    EXPECT_EQ(number(update, "train_optim/scaled_entropy"), 0) << "of no tokens";
  }
  EXPECT_TRUE(same_bits(toy.weights(), before));
  trainer->finish();
  EXPECT_EQ(toy.critic->train_calls(), 2);
}

TEST(Ppo, TheEntropyOfTheTokensTrainedOnIsRewarded) {
  std::vector<double> losses;
  double scaled = 0;
  for (const double bonus : {0.0, 0.1}) {
    PpoToy toy;
    toy.ppo.model.rollouts.entropy_bonus = bonus;
    const StepReport report = toy.ppo_trainer()->train_step();
    losses.push_back(number(report.updates[0], "train_optim/loss"));
    scaled = number(report.updates[0], "train_optim/scaled_entropy");
    if (bonus > 0) {
      EXPECT_NEAR(scaled, bonus * number(report.metrics, "train_rollouts/entropy"), 1e-5);  // rows weigh alike in both
    }
  }
  EXPECT_NEAR(losses[1], losses[0] - scaled, 1e-6);
}

// The pieces of the policy-gradient family serve here too.
TEST(Ppo, TheKlMayBeInTheLossAndRatiosHaveTheTemperature) {
  PpoToy toy;
  toy.ppo.trainer.loop.initial_policy_kl_penalty = 0;
  toy.ppo.trainer.loop.reference_policy_kl_penalty = 0.1;
  toy.ppo.trainer.loop.rollout_correction = RolloutCorrection::tis;
  toy.ppo.model.rollouts.sampling_params.temperature = 0.6;
  toy.ppo.model.rollouts.ratio_clip_max = 0.28;
  const auto trainer = toy.ppo_trainer();
  for (int i = 0; i < 2; ++i) {
    const StepReport report = trainer->train_step();
    EXPECT_EQ(number(report.updates[0], "train_optim/ppo_ratio"), 1);
    EXPECT_EQ(number(report.updates[0], "train_optim/loss_kl") == 0, i == 0) << "the policy is the reference at first";
    EXPECT_EQ(number(report.metrics, "train_rollouts/rollout_correction_mean"), 1);
    EXPECT_EQ(number(report.metrics, "train_rollouts/logprob_gap_max"), 0);
  }
}

// The critic learns once more than there are such rounds, from other prompts each time; then the prompts come again.
TEST(Ppo, InWarmUpRoundsTheCriticLearnsAlone) {
  PpoToy toy, plain;
  toy.ppo.trainer.loop.critic_warmup_steps = 2;
  const auto trainer = toy.ppo_trainer();
  const StepReport report = trainer->train_step();
  ASSERT_EQ(report.updates.size(), 3U) << "two rounds and one update";
  EXPECT_EQ(number(report.updates[0], "train_rollouts/consumed_samples"), 4);
  EXPECT_EQ(number(report.updates[1], "train_rollouts/consumed_samples"), 8);
  EXPECT_EQ(number(report.updates[1], "train_rollouts/init_policy_kl"), 0) << "the policy has not moved";
  EXPECT_EQ(number(report.metrics, "train_rollouts/consumed_samples"), 4);
  EXPECT_EQ(trainer->counters().at("consumed_samples"), 4);
  trainer->finish();
  EXPECT_EQ(toy.critic->train_calls(), 3);
  static_cast<void>(trainer->train_step());
  trainer->finish();
  EXPECT_EQ(toy.critic->train_calls(), 4) << "only before the first step";
  EXPECT_EQ(trainer->counters().at("consumed_samples"), 8);
  const auto without = plain.ppo_trainer();
  for (int i = 0; i < 2; ++i) static_cast<void>(without->train_step());
  EXPECT_EQ(without->counters().at("consumed_samples"), 8);
}

TEST(Ppo, LearnsWhatIsRewardedAndTheCriticWhatToExpect) {
  PpoToy toy;
  toy.ppo.trainer.loop.initial_policy_kl_penalty = 0.001;
  toy.ppo.trainer.loop.ppo_epochs = 2;
  toy.ppo.model.rollouts.num_rollout_samples = toy.ppo.model.global_batch_size = 8;
  const auto trainer = toy.ppo_trainer();
  const double before = number(trainer->run_validation().metrics, "val_rollouts/rewards");
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    const double loss = number(trainer->train_step().metrics, "train_rollouts/values_loss");
    if (i < 10) first += loss;
    if (i >= 50) last += loss;
  }
  EXPECT_GT(number(trainer->run_validation().metrics, "val_rollouts/rewards"), std::min(0.95, before + 0.3));
  EXPECT_LT(last, first / 2);
}

TEST(Ppo, ARowWithoutARewardIsLeftOut) {
  PpoToy toy;
  toy.rewards.judge = [](const Rollout& rollout) {
    return rollout.prompt_id % 2 == 0 ? RowReward{.value = NAN, .error = "no idea"} : testing::plain_share(rollout);
  };
  const auto trainer = toy.ppo_trainer();
  for (int i = 0; i < 3; ++i) {
    const StepReport report = trainer->train_step();
    for (const auto& [name, value] : report.metrics) EXPECT_TRUE(std::isfinite(value)) << name;
    EXPECT_TRUE(std::isfinite(number(report.updates[0], "train_optim/loss")));
    EXPECT_EQ(number(report.updates[0], "train_optim/ppo_ratio"), 1);
  }
  toy.rewards.judge = [](const Rollout&) { return RowReward{.error = "no idea"}; };
  EXPECT_EQ(number(trainer->train_step().updates[0], "train_optim/loss"), 0);
  trainer->finish();
  EXPECT_LE(toy.critic->train_calls(), 3) << "there was nothing to learn in the last step";
}

// Both go back to the step of the checkpoint, whatever the critic has learned since.
TEST(Ppo, PolicyAndCriticGoOnBitForBit) {
  PpoToy unbroken;
  const auto straight = unbroken.ppo_trainer();
  for (int i = 0; i < 4; ++i) static_cast<void>(straight->train_step());
  straight->finish();

  const testing::TempFolder folder;
  {
    PpoToy broken(testing::byte_model(), folder / "critic");
    const auto first = broken.ppo_trainer();
    for (int i = 0; i < 2; ++i) static_cast<void>(first->train_step());
    StateSnapshot state;
    const FolderWriter write = first->save(state);
    static_cast<void>(first->train_step());
    write(folder / "model");
    state.write(folder / "state");
    first->finish();
    EXPECT_EQ(broken.critic->train_calls(), 3);
  }
  PpoToy resumed(testing::byte_model(), folder / "critic");
  EXPECT_EQ(resumed.critic->train_calls(), 3);
  const auto second = resumed.ppo_trainer();
  second->load(StateFiles(folder / "state"));
  for (int i = 2; i < 4; ++i) static_cast<void>(second->train_step());
  second->finish();
  EXPECT_TRUE(same_bits(resumed.weights(), unbroken.weights()));
  EXPECT_TRUE(same_bits(resumed.critic_weights(), unbroken.critic_weights()));
  EXPECT_EQ(shown(second->train_step()), shown(straight->train_step()));
  EXPECT_EQ(second->counters(), straight->counters());
}

// A critic with the same label that has learned more or less than the policy's checkpoint says is not its own. It is refused when the
// policy is loaded: metrics are cut back after that.
TEST(Ppo, ACriticThatHasLearnedSomethingElseIsRefused) {
  const testing::TempFolder folder;
  {
    PpoToy toy(testing::byte_model(), folder / "critic");
    const auto trainer = toy.ppo_trainer();
    for (int i = 0; i < 2; ++i) static_cast<void>(trainer->train_step());
    StateSnapshot state;
    trainer->save(state)(folder / "model");
    state.write(folder / "state");
    trainer->finish();
    toy.critic->train(testing::toy_critic_batch(4, 6, 1), "");
    toy.critic->save(2, "");
  }
  {
    PpoToy toy(testing::byte_model(), folder / "critic");
    const auto trainer = toy.ppo_trainer();
    EXPECT_THAT(
        error_of<Error>([&] { trainer->load(StateFiles(folder / "state")); }),
        HasSubstr("at step 2 the policy's checkpoint was saved after 2 training calls of the critic, but the critic's save of that step "
                  "has 3"));
  }
  // A state from before they were counted is taken as it is.
  const Path file = folder / "state/state.json";
  Json::Object numbers = Json::parse(read_text(file)).as_object("state");
  EXPECT_EQ(std::erase_if(numbers, [](const Json::Member& member) { return member.first == "trainer.train_calls"; }), 1U);
  write_atomic(file, Json(std::move(numbers)).dump());
  PpoToy toy(testing::byte_model(), folder / "critic");
  const auto trainer = toy.ppo_trainer();
  trainer->load(StateFiles(folder / "state"));
  static_cast<void>(trainer->train_step());
  trainer->finish();
  EXPECT_EQ(toy.critic->train_calls(), 4);
}

// Training fails on its own thread while the policy learns: the checkpoint of that step must not appear without it.
TEST(Ppo, AStepWhoseCriticFailedIsNotSaved) {
  PpoToy toy;
  const auto trainer = toy.ppo_trainer();
  static_cast<void>(trainer->train_step());
  CriticBatch wrong = testing::toy_critic_batch(4, 6, 2);
  wrong.tokens[0] = 100000;  // no such id
  toy.source->train(wrong);
  const testing::TempFolder folder;
  for (const bool copies : {true, false}) {
    StateSnapshot state(copies);
    const FolderWriter write = trainer->save(state);
    EXPECT_ANY_THROW(write(folder / "model")) << copies;
  }
  EXPECT_ANY_THROW(trainer->finish());
}

TEST(Ppo, ANewRunBeginsWithTheCriticsBeginning) {
  const testing::TempFolder folder;
  std::string before;
  for (int i = 0; i < 2; ++i) {
    PpoToy toy(testing::byte_model(), folder / "critic");
    const auto trainer = toy.ppo_trainer();
    const std::string now = shown(trainer->train_step());
    trainer->finish();
    EXPECT_EQ(toy.critic->train_calls(), 1);
    if (i == 1) {
      EXPECT_EQ(now, before);
    }
    before = now;
  }
}

// Answers and rewards come from the record, values from the critic as it is.
TEST(Ppo, RecordedAnswersAreUsedAgain) {
  PpoToy first, second;
  const testing::TempFolder folder;
  std::string before;
  for (PpoToy* toy : {&first, &second}) {
    const auto trainer = toy->ppo_trainer(folder.path());
    static_cast<void>(trainer->train_step());
    const std::string now = shown(trainer->train_step());
    if (toy == &second) {
      EXPECT_EQ(now, before);
    }
    before = now;
  }
  EXPECT_EQ(second.rewards.num_asked, 0);
}

TEST(Ppo, ACriticThatCannotBeSavedLeavesNoCheckpoint) {
  PpoToy toy;
  const auto trainer = toy.ppo_trainer();
  static_cast<void>(trainer->train_step());
  trainer->finish();
  std::filesystem::remove_all(toy.temp / "critic");
  toy.temp.file("critic", "in the way");
  StateSnapshot state;
  const FolderWriter write = trainer->save(state);
  const testing::TempFolder folder;
  EXPECT_ANY_THROW(write(folder / "model"));
}

// Where training waits for the checkpoint, the critic is not asked to save before the policy's part is there: it keeps only a few.
TEST(Ppo, APolicyThatCannotBeWrittenCostsNoSaveOfTheCritics) {
  PpoToy toy;
  const auto trainer = toy.ppo_trainer();
  static_cast<void>(trainer->train_step());
  const testing::TempFolder folder;
  folder.file("in_the_way", "");
  const auto num_saves = [&] {
    trainer->finish();
    const Path saves = toy.temp / "critic" / "checkpoints";
    return std::distance(std::filesystem::directory_iterator(saves), std::filesystem::directory_iterator());
  };
  {
    StateSnapshot state(false);
    EXPECT_ANY_THROW(trainer->save(state)(folder / "in_the_way" / "model"));
    EXPECT_EQ(num_saves(), 0);
  }
  StateSnapshot state(false);
  trainer->save(state)(folder / "model");
  EXPECT_EQ(num_saves(), 1);
}

TEST(PpoConfig, RewardsComeFromOnePlaceOrAnother) {
  PpoConfig config;
  EXPECT_EQ(reward_of(config).sources.at("critic").kind, RewardKind::critic);
  config.remote_critic_rm.combine_rm_and_critic_server = false;
  config.remote_critic_rm.reward_model = {.name = "judge", .ip = "there", .port = 7};
  config.remote_critic_rm.pad_to_length = 99;
  const RewardSourceConfig served = reward_of(config).sources.at("remote_rm");
  EXPECT_EQ(served.url, "http://there:7");
  EXPECT_EQ(served.model_name, "judge");
  EXPECT_EQ(served.pad_to_length, 99);
  EXPECT_EQ(settings_of(config).widths.at("remote_critic_rm.pad_to_length"), 99);
  config.reward.sources["short"] = {.kind = RewardKind::length};
  EXPECT_EQ(reward_of(config).sources.size(), 1U);
  config.remote_critic_rm.combine_rm_and_critic_server = true;
  EXPECT_THAT(error_of([&] { return reward_of(config); }), HasSubstr("none of reward.sources has the kind critic"));
  config.reward.sources["judge"] = {.kind = RewardKind::critic};
  EXPECT_EQ(reward_of(config).sources.size(), 2U) << "both, by their weights";
  config.remote_critic_rm.combine_rm_and_critic_server = false;
  EXPECT_THAT(error_of([&] { return reward_of(config); }), HasSubstr("combine_rm_and_critic_server is false"));
  config.reward.sources.clear();
  config.local_critic.emplace();
  EXPECT_THAT(error_of([&] { return reward_of(config); }), HasSubstr("a local_critic returns none"));
}

TEST(PpoConfig, TheReferencesNamesAreUnderstood) {
  PpoConfig config;
  const std::vector<std::string> given = {"pretrained_checkpoint.restore_from_path=m",
                                          "model.data.data_prefix=[x]",
                                          "remote_critic_rm.critic.name.infer=values",
                                          "remote_critic_rm.critic.port=77",
                                          "remote_critic_rm.reward_model.port=78",
                                          "model.ppo.offload_adam_states=True",
                                          "model.ppo.entropy_bonus=0.01",
                                          "trainer.ppo.ppo_epochs=3",
                                          "trainer.ppo.trt_llm.enable=False",
                                          "model.ppo.forward_micro_batch_size=4"};
  static_cast<void>(load_section(describe(config), ConfigText{"none", ""}, given));
  EXPECT_EQ(config.remote_critic_rm.critic.name.infer, "values");
  EXPECT_EQ(config.remote_critic_rm.critic.port, 77);
  EXPECT_TRUE(config.model.optim.offload_adam_states);
  EXPECT_EQ(config.trainer.loop.critic_epochs, 3);
  EXPECT_EQ(config.exp_manager.checkpoint_callback_params.filename,
            "megatron_gpt-{step}-{consumed_samples}-{ppo_optimization_step}-{epoch}-{val_rewards:.3f}");
}

}  // namespace
}  // namespace kedge
