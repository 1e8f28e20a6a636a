// What TRL's own trainers compute for one batch of prompts and responses, kept in tests/golden/policy (made by make_policy_goldens.py): the
// configurations that stand for its variants give the same numbers, from the text to the gradient of every weight.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "kedge/algo/online/grpo.h"
#include "kedge/model/files/model_files.h"
#include "kedge/reward/reward_rules.h"
#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/assets.h"
#include "tests/support/golden_gradients.h"

namespace kedge {
namespace {

const std::string kWhere = "expected.json";

std::vector<double> numbers(const Json& json, const char* key) {
  std::vector<double> values;
  for (const Json& value : json.at(key, kWhere).as_array(key)) values.push_back(value.as_number(key));
  return values;
}

struct PolicyGolden {
  Path folder = testing::source_folder() / "tests/golden/policy";
  Json expected = Json::parse(read_text(folder / "expected.json"));
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();

  [[nodiscard]] std::unique_ptr<Model> model(const char* name) const { return load_model(folder / name, {.storage = {.trainable = true}}); }
  [[nodiscard]] double number(const char* key) const { return expected.at(key, kWhere).as_number(key); }
  [[nodiscard]] Rollout rollout(const Json& line) const;
  [[nodiscard]] RolloutRows rows() const;
};

Rollout PolicyGolden::rollout(const Json& line) const {
  Rollout rollout{.finished = line.at("finished", "line").as_bool("finished"),
                  .prompt = line.at("prompt", "line").as_text("prompt"),
                  .response = line.at("response", "line").as_text("response")};
  rollout.ids = tokenizer->encode(rollout.prompt);
  rollout.prompt_length = rollout.length();
  for (const TokenId id : tokenizer->encode(rollout.response)) rollout.ids.push_back(id);
  if (rollout.finished) rollout.ids.push_back(tokenizer->special().eos.value());
  return rollout;
}

// With rewards, and log-probabilities of the policy that gave the responses and of the reference.
RolloutRows PolicyGolden::rows() const {
  const RewardRule rule = regex_rule(expected.at("pattern", kWhere).as_text("pattern"), RegexUse::count, "pattern");
  RolloutRows rows;
  std::map<std::string, int64_t> slots;
  std::istringstream lines(read_text(folder / "responses.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    RolloutRow& row = rows.emplace_back();
    row.rollout = std::make_shared<const Rollout>(rollout(Json::parse(line)));
    row.slot = slots.emplace(row.rollout->prompt, std::ssize(slots)).first->second;
    row.reward = rule(*row.rollout);
  }
  Pass all;
  for (int64_t i = 0; i < std::ssize(rows); ++i) all.rows.push_back(i);
  add_policy_logprobs(*model("old"), std::span(&all, 1), rows, number("temperature"));
  add_reference_logprobs(*model("reference"), std::span(&all, 1), rows, number("temperature"));
  return rows;
}

struct Variant {
  const char* name;
  std::function<void(PolicyGradientLoop& loop)> set;
  double entropy_bonus = 0;
};

const std::vector<Variant> kVariants = {
    {"grpo", [](auto& loop) { loop.loss_norm = LossNorm::sequences; }},
    {"grpo_kl", [](auto& loop) { loop.loss_norm = LossNorm::sequences, loop.reference_policy_kl_penalty = 0.04; }},
    {"grpo_kl_plain",
     [](auto& loop) { loop.loss_norm = LossNorm::sequences, loop.reference_policy_kl_penalty = 0.04, loop.kl_ratio_correction = false; }},
    {"grpo_delta", [](auto& loop) { loop.loss_norm = LossNorm::sequences, loop.ratio_clip_c = 1.4; }},
    {"grpo_entropy", [](auto& /*loop*/) {}, 0.01},
    {"dapo", [](auto& loop) { loop.ratio_clip_max = 0.28; }},
    {"dr_grpo", [](auto& loop) { loop.loss_norm = LossNorm::constant, loop.baseline = Baseline::group_mean; }},
    {"bnpo", [](auto& /*loop*/) {}},
    {"gspo",
     [](auto& loop) {
       loop.loss_norm = LossNorm::sequences, loop.sequence_level_importance_ratios = RatioLevel::sequence;
       loop.ratio_clip_min = 3e-4, loop.ratio_clip_max = 4e-4;
     }},
    {"cispo", [](auto& loop) { loop.ratio = RatioKind::cispo; }},
    {"batch_std", [](auto& loop) { loop.baseline = Baseline::group_mean_batch_std; }},
    {"rloo", [](auto& loop) { static_cast<PolicyGradientLoop&>(loop) = RlooLoopConfig(); }},
};

// Each in one pass and in passes of a row or two.
TEST(PolicyGoldens, RewardsAdvantagesLossesAndGradientsAreThoseOfTrl) {
  const PolicyGolden golden;
  const RolloutRows rows = golden.rows();
  const auto rewards = numbers(golden.expected, "rewards");
  ASSERT_EQ(rows.size(), rewards.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].reward.value, rewards[i]);
  const auto max_length = static_cast<int64_t>(golden.number("max_length"));
  EXPECT_EQ(kVariants.size(), golden.expected.at("losses", kWhere).as_object("losses").size());
  for (const Variant& variant : kVariants)
    for (const int64_t tokens_per_pass : {10000, 100}) {
      SCOPED_TRACE(kedge::str(variant.name, " in passes of ", tokens_per_pass));
      const Json& wanted = golden.expected.at("losses", kWhere).at(variant.name, kWhere);
      GrpoLoopConfig loop;
      variant.set(loop);
      const auto algorithm = make_policy_gradient(loop, variant.entropy_bonus, "grpo");
      OnlineStep step{.rows = rows};
      algorithm->score(step);
      const auto advantages = numbers(wanted, "advantages");
      std::vector<int64_t> order, lengths, counts;
      for (size_t i = 0; i < step.rows.size(); ++i) {
        EXPECT_NEAR(step.rows[i].advantage, advantages[i], 1e-6 * (1 + std::abs(advantages[i])));
        order.push_back(static_cast<int64_t>(i));
        lengths.push_back(step.rows[i].rollout->length());
        counts.push_back(step.rows[i].rollout->response_length());
      }
      const auto minibatches =
          plan_minibatches(order, lengths, {.global_size = std::ssize(order), .tokens_per_pass = tokens_per_pass}, 0, 1);
      const TokenObjective objective = algorithm->objective();
      const auto model = golden.model("policy");
      PolicyOptions options;
      options.optim.lr = 0;
      options.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 0};
      options.update.gradient_clip_val = std::nullopt;
      options.num_updates = 1;
      options.temperature = golden.number("temperature");
      Policy policy(*model, Group::single(), options);
      const Metrics metrics = policy.update({.minibatch = minibatches[0],
                                             .weights = token_weights(minibatches[0], counts, 1, objective.norm, max_length),
                                             .loss = objective.loss,
                                             .wants_entropy = objective.wants_entropy},
                                            step.rows);
      const double loss = wanted.at("loss", kWhere).as_number("loss");
      // A loss is a sum of terms around 1 that nearly cancel: fp32 has 1e-7 of those.
      EXPECT_NEAR(*metrics.find("loss"), loss, 1e-5 * std::abs(loss) + 1e-7);
      testing::expect_gradients(*model, golden.folder / kedge::str("gradients_", variant.name, ".safetensors"));
    }
}

}  // namespace
}  // namespace kedge
