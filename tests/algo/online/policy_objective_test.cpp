// Losses and gradients of TRL's own loss code, kept in tests/golden/policy (made by make_policy_goldens.py): the configurations that stand
// for its variants give the same numbers, from rewards to the gradient of every weight.
#include <gtest/gtest.h>

#include <functional>

#include "kedge/algo/online/grpo.h"
#include "kedge/model/files/model_files.h"

#include "tests/support/assets.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

const std::string kWhere = "expected.json";

template <typename T>
std::vector<T> numbers(const Json& json, const char* key) {
  std::vector<T> values;
  for (const Json& value : json.at(key, kWhere).as_array(key)) values.push_back(static_cast<T>(value.as_number(key)));
  return values;
}

RolloutRows rows_of(const Json& expected) {
  RolloutRows rows;
  for (const Json& json : expected.at("rows", kWhere).as_array("rows")) {
    Rollout rollout{.ids = numbers<TokenId>(json, "prompt"), .finished = true};
    rollout.prompt_length = rollout.length();
    for (const TokenId id : numbers<TokenId>(json, "response")) rollout.ids.push_back(id);
    RolloutRow& row = rows.emplace_back();
    row.rollout = std::make_shared<const Rollout>(std::move(rollout));
    row.slot = json.at("slot", kWhere).as_integer("slot");
    row.reward.value = json.at("reward", kWhere).as_number("reward");
    row.logprobs = numbers<float>(json, "old");
    row.reference = numbers<float>(json, "reference");
  }
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
    {"rloo", [](auto& loop) { static_cast<PolicyGradientLoop&>(loop) = RlooLoopConfig(), loop.initial_policy_kl_penalty = 0; }},
};

// Each in one pass and in passes of a row or two.
TEST(PolicyGoldens, LossesAndGradientsAreThoseOfTrl) {
  const Path folder = testing::source_folder() / "tests" / "golden" / "policy";
  const Json expected = Json::parse(read_text(folder / "expected.json"));
  const auto max_length = expected.at("max_length", kWhere).as_integer("max_length");
  EXPECT_EQ(kVariants.size(), expected.at("losses", kWhere).as_object("losses").size());
  for (const Variant& variant : kVariants)
    for (const int64_t tokens_per_pass : {1000, 20}) {
      SCOPED_TRACE(kedge::str(variant.name, " in passes of ", tokens_per_pass));
      const Json& wanted = expected.at("losses", kWhere).at(variant.name, kWhere);
      GrpoLoopConfig loop;
      variant.set(loop);
      const auto algorithm = make_policy_gradient(loop, variant.entropy_bonus, "grpo");
      OnlineStep step{.rows = rows_of(expected)};
      algorithm->score(step);
      const auto advantages = numbers<double>(wanted, "advantages");
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
      const auto model = load_model(folder, {.storage = {.trainable = true}});
      PolicyOptions options;
      options.optim.lr = 0;
      options.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 0};
      options.update.gradient_clip_val = std::nullopt;
      options.num_updates = 1;
      options.temperature = expected.at("temperature", kWhere).as_number("temperature");
      Policy policy(*model, Group::single(), options);
      const Metrics metrics = policy.update({.minibatch = minibatches[0],
                                             .weights = token_weights(minibatches[0], counts, 1, objective.norm, max_length),
                                             .loss = objective.loss,
                                             .wants_entropy = objective.wants_entropy},
                                            step.rows);
      const double loss = wanted.at("loss", kWhere).as_number("loss");
      // A loss is a sum of terms around 1 that nearly cancel: fp32 has 1e-7 of those.
      EXPECT_NEAR(*metrics.find("loss"), loss, 1e-5 * std::abs(loss) + 3e-7);
      const Json& gradients = wanted.at("gradients", kWhere);
      const auto table = parameter_layout(model->config(), model->places());
      EXPECT_EQ(gradients.as_object("gradients").size(), table.size());
      for (const WeightSlice& slice : table) {
        const Tensor found = model->parameters().gradient(slice.parameter).narrow(0, slice.row, slice.rows).reshape({-1});
        EXPECT_LT(testing::relative_error(found, at::tensor(numbers<double>(gradients, slice.name.c_str()), at::kDouble)), 1e-5)
            << slice.name;
      }
    }
}

}  // namespace
}  // namespace kedge
