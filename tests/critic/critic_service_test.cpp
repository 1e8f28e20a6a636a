#include "kedge/critic/critic_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"
#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::JudgeFolder;
using testing::TempFolder;
using testing::toy_critic_batch;

// A critic's models as a server calls them.
struct Service {
  using Start = std::function<std::unique_ptr<CriticModel>()>;
  explicit Service(bool combined = true, const Start& start = {}, int64_t max_length = 32)
      : judge_model(judge.load()),
        critic({temp.path(), start ? start : [this, combined] { return make(combined); }, log}),
        rows(judge.path(), judge_model->config(), {.max_length = max_length}),
        models(make_critic_service({critic, rows, {{4}, 2000}, max_length})) {}

  [[nodiscard]] std::unique_ptr<CriticModel> make(bool combined) const {
    return testing::toy_critic(judge, combined ? testing::toy_rewarding_options() : testing::toy_critic_options());
  }

  [[nodiscard]] const ServedModel& model(const std::string& name) const {
    for (const ServedModel& model : models)
      if (model.signature.name == name) return model;
    throw Error("no model " + name);
  }
  ServedResult call(const std::string& name, const std::vector<WireTensor>& inputs, const Json& parameters = Json(Json::Object{})) const {
    const ServedModel& served = model(name);
    InferRequest request;
    request.inputs = inputs;
    request.parameters = parameters;
    check_inputs(served.signature, request);
    if (served.check) served.check(request);
    return served.run(inputs, parameters);
  }
  [[nodiscard]] std::vector<float> numbers(const std::string& name, const std::vector<WireTensor>& inputs, size_t output = 0) const {
    const auto result = call(name, inputs);
    const auto values = fp32_values(result.outputs[output]);
    return {values.begin(), values.end()};
  }

  JudgeFolder judge;
  TempFolder temp;
  MetricsLog log{true};
  std::unique_ptr<Model> judge_model;
  Critic critic;
  ServedRows rows;
  std::vector<ServedModel> models;
};

std::vector<WireTensor> token_inputs(const std::vector<int64_t>& ids, const std::vector<int64_t>& lengths) {
  const auto count = static_cast<int64_t>(lengths.size()), width = static_cast<int64_t>(ids.size()) / count;
  return {int64_tensor("tokens", {count, width}, ids), int64_tensor("sequence_lengths", {count, 1}, lengths)};
}

std::vector<WireTensor> train_inputs(const CriticBatch& batch) {
  const std::vector<int64_t> shape = {batch.num_rows, batch.width - 1};
  return {int64_tensor("tokens", {batch.num_rows, batch.width}, batch.tokens), fp32_tensor("returns", shape, batch.returns),
          fp32_tensor("prev_values", shape, batch.previous), fp32_tensor("mask", shape, batch.mask)};
}

std::vector<WireTensor> dummy() { return {int64_tensor("dummy_var", {1}, std::vector<int64_t>{0})}; }
std::vector<WireTensor> actor_step(int64_t step) { return {int64_tensor("actor_step", {1}, std::vector<int64_t>{step})}; }
Json with(const char* key, Json value) { return Json(Json::Object{{key, std::move(value)}}); }
int64_t train_calls(const ServedResult& result) { return result.parameters.at("train_calls", "reply").as_integer("train_calls"); }

TEST(CriticService, TellsWhatItTakesAndGives) {
  const Service service, separate(false);
  std::vector<std::string> names;
  for (const ServedModel& model : service.models) names.push_back(model.signature.name);
  EXPECT_THAT(names, ElementsAre("critic_infer", "critic_train", "critic_save", "critic_restore"));
  EXPECT_EQ(service.model("critic_infer").signature.max_batch_size, 9999999);
  EXPECT_EQ(service.model("critic_infer").signature.outputs.size(), 2U);
  EXPECT_EQ(separate.model("critic_infer").signature.outputs.size(), 1U);
  EXPECT_EQ(service.model("critic_train").signature.max_batch_size, 0);
  EXPECT_THAT(service.model("critic_train").signature.outputs[0].dims, ElementsAre(1));
  EXPECT_FALSE(service.model("critic_infer").is_kept);
  for (const char* name : {"critic_train", "critic_save", "critic_restore"}) EXPECT_TRUE(service.model(name).is_kept) << name;
}

// Checklist 6: as wide as the request, zeros behind the row's end, and the same numbers whatever the width.
TEST(CriticService, ValuesAreAsWideAsTheRequest) {
  const Service service;
  const ServedResult result = service.call("critic_infer", token_inputs({5, 6, 7, 0, 8, 9, 0, 0}, {3, 2}));
  ASSERT_EQ(result.outputs.size(), 2U);
  EXPECT_EQ(result.outputs[0].name, "values");
  EXPECT_THAT(result.outputs[0].shape, ElementsAre(2, 4));
  EXPECT_EQ(result.outputs[1].name, "rewards");
  EXPECT_THAT(result.outputs[1].shape, ElementsAre(2, 1));
  const auto values = fp32_values(result.outputs[0]);
  for (const size_t zero : {3, 6, 7}) EXPECT_EQ(values[zero], 0);
  const std::vector<float> wide = service.numbers("critic_infer", token_inputs({8, 9, 1, 1, 1, 1, 1}, {2}));
  EXPECT_EQ(wide[0], values[4]);
  EXPECT_EQ(wide[1], values[5]);
  const Tensor wanted = service.critic.values(std::vector<TokenIds>{{5, 6, 7}});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(values[i], wanted[static_cast<int64_t>(i)].item<float>());
  // Of texts, the widest there can be.
  EXPECT_THAT(service.call("critic_infer", {text_tensor("sentences", {1, 1}, std::vector<std::string>{"hi"})}).outputs[0].shape,
              ElementsAre(1, 32));
}

// Checklist 7.
TEST(CriticService, RewardsStayWhatTheyWere) {
  const Service service;
  const auto inputs = token_inputs({5, 6, 7, 0, 8, 9, 0, 0}, {3, 2});
  const std::vector<float> rewards = service.numbers("critic_infer", inputs, 1), values = service.numbers("critic_infer", inputs);
  const RewardScorer judge(*service.judge_model, {});
  EXPECT_EQ(rewards[0], judge.score(std::vector<TokenIds>{{5, 6, 7}})[0][0].item<float>());
  const Service separate(false);
  EXPECT_EQ(separate.numbers("critic_infer", inputs), values);
  for (uint64_t i = 0; i < 10; ++i)
    EXPECT_EQ(train_calls(service.call("critic_train", train_inputs(toy_critic_batch(5, 8, i)))), int64_t(i) + 1);
  EXPECT_EQ(service.numbers("critic_infer", inputs, 1), rewards);
  EXPECT_NE(service.numbers("critic_infer", inputs), values);
  EXPECT_EQ(service.critic.model().step(), 20);
}

// The request of spec 9.5 to a critic that gives 0.6 everywhere: the loss is 0.15125.
TEST(CriticService, TheWorkedExampleOfTheProtocol) {
  const Service service(true, [] { return testing::constant_critic(0.6, testing::toy_critic_options()); });
  EXPECT_NEAR(service.numbers("critic_infer", token_inputs({101, 7, 2}, {3}))[1], 0.6, 1e-7);
  const CriticBatch batch{1, 3, {101, 7, 2}, {0, 1}, {0.5, 0.25}, {0, 1}};
  const ServedResult result = service.call("critic_train", train_inputs(batch));
  EXPECT_EQ(result.outputs[0].name, "loss_mean");
  EXPECT_THAT(result.outputs[0].shape, ElementsAre(1));
  EXPECT_NEAR(fp32_values(result.outputs[0])[0], 0.15125, 1e-7);
}

TEST(CriticService, CallsWithAKeyAreMadeOnce) {
  const Service service;
  const auto inputs = train_inputs(toy_critic_batch(3, 6, 1));
  const ServedResult first = service.call("critic_train", inputs, with("request_key", "a"));
  const ServedResult again = service.call("critic_train", inputs, with("request_key", "a"));
  EXPECT_EQ(first.outputs, again.outputs);
  EXPECT_EQ(train_calls(again), 1);
  EXPECT_EQ(service.critic.train_calls(), 1);
  EXPECT_EQ(train_calls(service.call("critic_train", inputs)), 2);
}

// What an actor may resume from is kept, also that of an older one, which names only the newest.
TEST(CriticService, KeepsTheSavesThatTheActorMayResumeFrom) {
  const auto labels_after = [](const char* key, const Json& resumable) {
    const Service service;
    for (int64_t step = 1; step <= 6; ++step) {
      service.call("critic_train", train_inputs(toy_critic_batch(3, 6, 1)));
      service.call("critic_save", dummy(), Json::Object{{"actor_step", step}, {key, resumable}});
    }
    std::vector<int64_t> labels;
    for (const Checkpoint& one : list_checkpoints(service.temp / "checkpoints")) labels.push_back(one.meta.counters.at("actor_step"));
    return labels;
  };
  EXPECT_THAT(labels_after("resumable_steps", "1,2"), ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(labels_after("resumable_steps", ""), ElementsAre(4, 5, 6));
  EXPECT_THAT(labels_after("resumable_step", 2), ElementsAre(2, 4, 5, 6));
}

TEST(CriticService, SavesAndGoesBack) {
  const Service service;
  const auto batch = train_inputs(toy_critic_batch(3, 6, 1));
  service.call("critic_train", batch);
  const ServedResult saved = service.call("critic_save", dummy(), with("actor_step", 7));
  EXPECT_EQ(saved.outputs[0].name, "status");
  EXPECT_EQ(int64_values(saved.outputs[0])[0], 0);
  EXPECT_EQ(train_calls(saved), 1);
  service.call("critic_train", batch);
  EXPECT_EQ(train_calls(service.call("critic_restore", actor_step(7))), 1);
  EXPECT_EQ(train_calls(service.call("critic_infer", token_inputs({1}, {1}))), 1);
  try {
    service.call("critic_restore", actor_step(8));
    ADD_FAILURE() << "it went back";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 404);
    EXPECT_STREQ(error.what(), "no checkpoint of actor_step 8; there are 7 and 0, the start");
  }
}

TEST(CriticService, CallsSayWhoseTheyAre) {
  const Service service;
  const auto inputs = train_inputs(toy_critic_batch(3, 6, 1));
  const auto status_of = [&](const std::string& name, const std::vector<WireTensor>& given, const Json& parameters) {
    try {
      service.call(name, given, parameters);
      return 200;
    } catch (const RequestError& error) {
      return error.status();
    }
  };
  const auto epoch_of = [](const ServedResult& reply) { return reply.parameters.at("epoch", "reply").as_integer("epoch"); };
  EXPECT_EQ(status_of("critic_train", inputs, Json(Json::Object{})), 200);  // nobody's: as any client calls it
  const int64_t first = epoch_of(service.call("critic_restore", actor_step(0), with("run_id", "mine")));
  const int64_t second = epoch_of(service.call("critic_restore", actor_step(0), with("run_id", "mine")));
  EXPECT_GT(second, first);
  const auto as = [](const char* run, int64_t epoch) { return Json(Json::Object{{"run_id", run}, {"epoch", epoch}}); };
  EXPECT_EQ(status_of("critic_train", inputs, as("mine", second)), 200);
  EXPECT_EQ(status_of("critic_train", inputs, as("mine", first)), 409);
  EXPECT_EQ(status_of("critic_train", inputs, as("other", second)), 409);
  EXPECT_EQ(status_of("critic_train", inputs, Json(Json::Object{})), 409);
  EXPECT_EQ(status_of("critic_save", dummy(), with("run_id", "other")), 409);
  EXPECT_EQ(status_of("critic_restore", actor_step(0), with("run_id", "other")), 409);
  InferRequest request;
  const auto& infer = service.model("critic_infer");
  EXPECT_TRUE(infer.may_run(request));  // whoever only looks need not say who it is
  request.parameters = with("epoch", first);
  EXPECT_THAT(error_of<RequestError>([&] { return infer.may_run(request); }), ::testing::HasSubstr("from an actor that was replaced"));
  request.parameters = with("epoch", second);
  EXPECT_TRUE(infer.may_run(request));
  EXPECT_EQ(status_of("critic_restore", actor_step(0), Json(Json::Object{{"run_id", "other"}, {"take_over", true}})), 200);
  EXPECT_EQ(service.critic.owner(), "other");
  EXPECT_EQ(status_of("critic_save", dummy(), with("run_id", 3)), 400);
  EXPECT_EQ(status_of("critic_restore", actor_step(0), with("take_over", "yes")), 400);
}

TEST(CriticService, ValuesWaitForTheTrainingTheyMustSee) {
  const Service service;
  InferRequest request;
  const auto& infer = service.model("critic_infer");
  EXPECT_TRUE(infer.may_run(request));
  request.parameters = with("min_train_calls", 1);
  EXPECT_FALSE(infer.may_run(request));
  service.call("critic_train", train_inputs(toy_critic_batch(1, 4, 1)));
  EXPECT_TRUE(infer.may_run(request));
}

TEST(CriticService, MistakesShowBeforeAnythingRuns) {
  const Service service;
  const auto refusal = [&](const CriticBatch& batch, const Json& parameters = Json(Json::Object{})) {
    return error_of<RequestError>([&] { return service.call("critic_train", train_inputs(batch), parameters); });
  };
  const CriticBatch good = toy_critic_batch(2, 4, 1);
  CriticBatch bad = good;
  bad.tokens[3] = 259;
  EXPECT_EQ(refusal(bad), "tokens: id 259 is outside the model's vocabulary of 259");
  bad = good;
  bad.returns[1] = std::nanf("");
  EXPECT_EQ(refusal(bad), "row 0, place 1: returns, prev_values and mask must be finite where the mask is not 0");
  EXPECT_EQ(refusal(toy_critic_batch(1, 33, 1)), "tokens: 33 columns, but encoder_seq_length is 32");
  EXPECT_EQ(refusal({1, 1, {1}, {}, {}, {}}), "tokens: expected one or more rows of at least 2 tokens, found 1 rows of 1");
  EXPECT_EQ(refusal(good, with("request_key", 3)), "parameters: request_key: expected a string");
  auto inputs = train_inputs(good);
  inputs[1] = fp32_tensor("returns", {2, 4}, std::vector<float>(8, 0.0F));
  EXPECT_EQ(error_of<RequestError>([&] { return service.call("critic_train", inputs); }),
            "returns: expected [2,3], a column less than tokens, found [2,4]");
  EXPECT_EQ(error_of<RequestError>([&] { return service.call("critic_save", dummy(), with("actor_step", "x")); }),
            "parameters: actor_step: expected an integer of at least 0");
  for (const Json& list : {Json(3), Json("3;4"), Json("3,,4")})
    EXPECT_EQ(error_of<RequestError>([&] { return service.call("critic_save", dummy(), with("resumable_steps", list)); }),
              "parameters: resumable_steps: expected a string of integers, with commas in between");
  EXPECT_EQ(error_of<RequestError>([&] { return service.call("critic_restore", actor_step(-1)); }),
            "actor_step: expected a number of at least 0");
  EXPECT_EQ(error_of<RequestError>([&] { return service.call("critic_infer", token_inputs({1}, {1}), with("min_train_calls", -1)); }),
            "parameters: min_train_calls: expected an integer of at least 0");
  EXPECT_EQ(service.critic.train_calls(), 0);
  // A row of a width that the network cannot read is fine as long as nothing there is learned.
  const Service wide(true, {}, 100);
  CriticBatch long_rows = toy_critic_batch(1, 80, 1);
  EXPECT_EQ(error_of<RequestError>([&] { return wide.call("critic_train", train_inputs(long_rows)); }),
            "row 0, place 64: the model has only 64 positions");
  std::fill(long_rows.mask.begin() + 20, long_rows.mask.end(), 0.0F);
  EXPECT_EQ(train_calls(wide.call("critic_train", train_inputs(long_rows))), 1);
}

}  // namespace
}  // namespace kedge
