#include "kedge/critic/remote_critic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <set>

#include "kedge/core/error.h"
#include "kedge/net/model_server.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

// A critic whose values are the ids plus 100 for every training call, and which remembers saves by their label.
class ToyCritic {
 public:
  std::vector<ServedModel> models(bool with_rewards) {
    std::vector<ServedModel> all(4);
    all[0].signature = {.name = "critic_infer",
                        .max_batch_size = 100,
                        .inputs = {{"tokens", WireType::int64, {-1}}, {"sequence_lengths", WireType::int64, {-1}}},
                        .outputs = {{"values", WireType::fp32, {-1}}}};
    if (with_rewards) all[0].signature.outputs.push_back({"rewards", WireType::fp32, {-1}});
    all[0].may_run = [this](const InferRequest& request) {
      const Json* wanted = request.parameters.find("min_train_calls");
      return wanted == nullptr || calls_ >= wanted->as_integer("min_train_calls");
    };
    all[0].run = [this, with_rewards](const std::vector<WireTensor>& inputs, const Json&) {
      std::vector<float> values, rewards;
      for (const int64_t id : int64_values(inputs[0])) values.push_back(static_cast<float>(id + 100 * calls_));
      for (const int64_t length : int64_values(inputs[1])) rewards.push_back(static_cast<float>(length));
      ServedResult result{{fp32_tensor("values", inputs[0].shape, values)}, parameters()};
      if (with_rewards) result.outputs.push_back(fp32_tensor("rewards", inputs[1].shape, rewards));
      return result;
    };
    all[1] = changing("critic_train",
                      {{"tokens", WireType::int64, {-1, -1}},
                       {"returns", WireType::fp32, {-1, -1}},
                       {"prev_values", WireType::fp32, {-1, -1}},
                       {"mask", WireType::fp32, {-1, -1}}},
                      {"loss_mean", WireType::fp32, {1}}, [this](const std::vector<WireTensor>& inputs, const Json&) {
                        if (fails) throw std::runtime_error("the loss is not finite");
                        ++calls_;
                        return fp32_tensor("loss_mean", {1}, std::vector<float>{fp32_values(inputs[1])[0]});
                      });
    const auto status = [] { return int64_tensor("status", {1}, std::vector<int64_t>{0}); };
    all[2] = changing("critic_save", {{"dummy_var", WireType::int64, {1}}}, {"status", WireType::int64, {1}},
                      [this, status](const std::vector<WireTensor>&, const Json& given) {
                        saved_[given.at("actor_step", "").as_integer("")] = calls_;
                        return status();
                      });
    all[3] = changing("critic_restore", {{"actor_step", WireType::int64, {1}}}, {"status", WireType::int64, {1}},
                      [this, status](const std::vector<WireTensor>& inputs, const Json&) {
                        calls_ = saved_.at(int64_values(inputs[0])[0]);
                        ++epoch;
                        return status();
                      });
    for (ServedModel& model : all)
      model.check = [this](const InferRequest& request) {
        const std::lock_guard lock(mutex_);
        seen.push_back(request.parameters);
      };
    return all;
  }
  std::atomic<bool> fails = false;
  std::set<std::string> keys;
  std::vector<Json> seen;  // parameters of all calls; to be looked at when they are answered
  int64_t epoch = 3;

  [[nodiscard]] bool has_save(int64_t step) const { return saved_.contains(step); }

 private:
  using Run = std::function<WireTensor(const std::vector<WireTensor>&, const Json&)>;
  [[nodiscard]] Json parameters() const { return Json::Object{{"train_calls", calls_}, {"epoch", epoch}, {"loss", 0.5}}; }
  ServedModel changing(const std::string& name, std::vector<TensorSpec> inputs, TensorSpec output, Run run) {
    ServedModel model;
    model.signature = {.name = name, .inputs = std::move(inputs), .outputs = {std::move(output)}};
    model.is_kept = true;
    model.run = [this, run = std::move(run)](const std::vector<WireTensor>& given, const Json& parameters_given) {
      EXPECT_TRUE(keys.insert(parameters_given.at("request_key", "").as_text("")).second);
      return ServedResult{{run(given, parameters_given)}, parameters()};
    };
    return model;
  }

  int64_t calls_ = 0;
  std::map<int64_t, int64_t> saved_;
  std::mutex mutex_;
};

Rollouts rows() {
  Rollout a, b;
  a.ids = {1, 2, 3};
  b.ids = {7, 8};
  return {std::make_shared<Rollout>(a), std::make_shared<Rollout>(b)};
}

CriticBatch batch(float first_return) { return {1, 3, {1, 2, 3}, {first_return, 0}, {0, 0}, {1, 1}}; }

using Values = std::vector<std::vector<float>>;

TEST(RemoteCritic, GivesValuesAndRewardsOfEveryRow) {
  ToyCritic toy;
  ModelServer server({}, toy.models(true));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.pad_to_length = 5});
  critic.check_server();
  const RolloutValues got = critic.values(rows()).get();
  EXPECT_EQ(got.values, (Values{{1, 2}, {7}}));
  EXPECT_EQ(got.rewards.at(0).value, 3);
  EXPECT_EQ(got.rewards.at(1).value, 2);
}

TEST(RemoteCritic, ValuesAskedForAfterTrainingHaveSeenIt) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  for (int round = 1; round <= 5; ++round) {
    critic.train(batch(static_cast<float>(round)));
    EXPECT_EQ(critic.values(rows()).get().values, (Values{{1.F + 100 * round, 2.F + 100 * round}, {7.F + 100 * round}}));
  }
  critic.finish_training();
  critic.finish_training();  // none is under way
}

TEST(RemoteCritic, SavesAndGoesBack) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  critic.train(batch(1));
  critic.save(10, {3, 8}).get();
  EXPECT_EQ(toy.seen.back().at("resumable_steps", ""), Json("3,8"));
  EXPECT_EQ(toy.seen.back().at("resumable_step", ""), Json(8)) << "for an older server";
  critic.train(batch(2));
  EXPECT_EQ(critic.values(rows()).get().values.at(1), (std::vector<float>{207}));
  critic.restore(10);
  EXPECT_EQ(critic.last_loss(), 0.5) << "as the reply says";
  EXPECT_EQ(critic.values(rows()).get().values.at(1), (std::vector<float>{107}));
  critic.train(batch(3));
  EXPECT_EQ(critic.values(rows()).get().values.at(1), (std::vector<float>{207}));
}

// A large call takes longer to arrive than a small one that was sent after it on another connection.
TEST(RemoteCritic, GoingBackAlsoUndoesTheTrainingThatIsUnderWay) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  critic.train(batch(1));
  critic.save(10, {}).get();
  const std::vector<float> many(1 << 20);
  for (int round = 0; round < 3; ++round) {
    critic.train({1, (1 << 20) + 1, std::vector<int64_t>((1 << 20) + 1), many, many, many});
    critic.restore(10);
    EXPECT_EQ(critic.values(rows()).get().values.at(1), (std::vector<float>{107}));
  }
}

TEST(RemoteCritic, TrainingThatFailedIsToldBeforeAnythingElse) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  (void)critic.values(rows()).get();
  toy.fails = true;
  critic.train(batch(1));
  const std::string wanted = str("critic_train of the critic server 127.0.0.1:", server.port(), ": HTTP 500: the loss is not finite");
  EXPECT_EQ(error_of<Error>([&] { (void)critic.values(rows()).get(); }), wanted);  // and does not wait for ever
  EXPECT_EQ(error_of<Error>([&] { critic.train(batch(1)); }), wanted);
}

TEST(RemoteCritic, NothingIsSavedAfterTrainingThatFailed) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  toy.fails = true;
  critic.train(batch(1));
  const std::shared_future<void> saved = critic.save(5, {});
  const std::string wanted = str("critic_train of the critic server 127.0.0.1:", server.port(), ": HTTP 500: the loss is not finite");
  EXPECT_EQ(error_of<Error>([&] { saved.get(); }), wanted);
  EXPECT_EQ(error_of<Error>([&] { critic.finish_training(); }), wanted);
  EXPECT_FALSE(toy.has_save(5));
}

TEST(RemoteCritic, EveryCallAfterARestoreSaysWhoseItIs) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false, .run_id = "mine-1", .take_over = true});
  critic.save(10, {}).get();
  EXPECT_EQ(critic.restore(10), 0);
  (void)critic.values(rows()).get();
  critic.train(batch(1));
  critic.finish_training();
  critic.save(11, {}).get();
  ASSERT_EQ(toy.seen.size(), 5U);
  const auto text = [&](size_t call, const char* name) {
    const Json* found = toy.seen[call].find(name);
    return found == nullptr ? "" : found->dump_compact();
  };
  for (const size_t call : {0U, 1U, 3U, 4U}) EXPECT_EQ(text(call, "run_id"), "\"mine-1\"") << call;
  for (const size_t call : {0U, 1U}) EXPECT_EQ(text(call, "epoch"), "") << call;
  for (const size_t call : {2U, 3U, 4U}) EXPECT_EQ(text(call, "epoch"), "4") << call;
  EXPECT_EQ(text(1, "take_over"), "true");
  EXPECT_EQ(text(4, "take_over"), "");
}

// It is sent while training is still under way, and another training begun before it is answered: it holds what lies between the two.
TEST(RemoteCritic, ASaveHoldsWhatWasTrainedBeforeIt) {
  ToyCritic toy;
  ModelServer server({}, toy.models(false));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  const std::vector<float> many(1 << 20);
  for (int64_t round = 1; round <= 3; ++round) {
    critic.train({1, (1 << 20) + 1, std::vector<int64_t>((1 << 20) + 1), many, many, many});
    const std::shared_future<void> saved = critic.save(round, {});
    critic.train(batch(1));
    saved.get();
    critic.restore(round);
    EXPECT_EQ(critic.values(rows()).get().values.at(1), (std::vector<float>{7.F + 100.F * static_cast<float>(round)}));
  }
}

TEST(RemoteCritic, ASaveThatFailsIsToldToWhoWaitsForItAlone) {
  ToyCritic toy;
  std::vector<ServedModel> models = toy.models(false);
  models[2].run = [](const std::vector<WireTensor>&, const Json&) -> ServedResult { throw std::runtime_error("no room left"); };
  ModelServer server({}, std::move(models));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  const std::shared_future<void> saved = critic.save(1, {});
  critic.train(batch(1));
  critic.finish_training();
  EXPECT_EQ(error_of<Error>([&] { saved.get(); }),
            str("critic_save of the critic server 127.0.0.1:", server.port(), ": HTTP 500: no room left"));
}

TEST(RemoteCritic, TheServersTokenizerAndRowsMustFit) {
  ToyCritic toy;
  std::vector<ServedModel> models = toy.models(false);
  models[0].signature.parameters = {{"tokenizer_fingerprint", "abc"}, {"encoder_seq_length", "64"}};
  ModelServer server({}, std::move(models));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  const auto check_with = [&](const std::string& tokenizer, int64_t longest) {
    RemoteCritic(client, {.wants_rewards = false, .tokenizer_fingerprint = tokenizer, .longest_row = longest}).check_server();
  };
  check_with("abc", 64);
  check_with("", 0);
  const std::string what = str("critic_infer of the critic server 127.0.0.1:", server.port());
  EXPECT_EQ(
      error_of<UsageError>([&] { check_with("abd", 64); }),
      what +
          " has a different tokenizer from the policy (fingerprints abc and abd): the ids sent to it would mean something else there. "
          "Start the critic from a model with the policy's tokenizer");
  EXPECT_EQ(error_of<UsageError>([&] { check_with("abc", 65); }),
            what +
                " takes rows of up to 64 tokens (its model.encoder_seq_length), but 65 may be sent (model.encoder_seq_length, "
                "remote_critic_rm.pad_to_length)");
}

TEST(RemoteCritic, TheFlagOfBothSidesMustBeEqual) {
  ToyCritic toy;
  ModelServer server({}, toy.models(true));
  ModelClient client({.server = {.label = "critic server", .port = server.port()}});
  RemoteCritic critic(client, {.wants_rewards = false});
  EXPECT_EQ(error_of<UsageError>([&] { critic.check_server(); }),
            str("remote_critic_rm.combine_rm_and_critic_server is false, but critic_infer of the critic server 127.0.0.1:", server.port(),
                " gives rewards; the server's trainer.ppo.combine_rm_and_critic_server must be equal"));
}

}  // namespace
}  // namespace kedge
