#include "kedge/critic/critic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/jsonl.h"
#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;
using testing::JudgeFolder;
using testing::same_bits;
using testing::TempFolder;
using testing::toy_critic_batch;
using Toy = testing::CriticToy;

CriticBatch batch(uint64_t seed) { return toy_critic_batch(6, 8, seed); }

// Everything that must be the same after a crash: what the next calls give, too.
struct State {
  Tensor weights;
  int64_t step, train_calls;

  explicit State(const Toy& toy) : weights(toy.weights().clone()), step(toy->model().step()), train_calls(toy->train_calls()) {}
};
void expect_same(const Toy& toy, const State& wanted, const std::string& where) {
  EXPECT_TRUE(same_bits(toy.weights(), wanted.weights)) << where;
  EXPECT_EQ(toy->model().step(), wanted.step) << where;
  EXPECT_EQ(toy->train_calls(), wanted.train_calls) << where;
}

// The folder as a killed process leaves it.
struct Copy : TempFolder {
  explicit Copy(const Path& of) { fs::copy(of, path(), fs::copy_options::recursive); }
};

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// After every call of a run with saves and returns, a process that is killed there goes on with the same bits: weights, counts, results of
// calls that are sent again, and the calls that follow.
TEST(Critic, KilledAfterAnyCallItGoesOnWithTheSameBits) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  std::map<std::string, CriticResult> results;
  const std::vector<std::pair<std::string, std::function<CriticResult(Critic&)>>> calls = {
      {"t1", [](Critic& critic) { return critic.train(batch(1), "t1"); }},
      {"s1", [](Critic& critic) { return critic.save(1, "s1"); }},
      {"t2", [](Critic& critic) { return critic.train(batch(2), "t2"); }},
      {"t3", [](Critic& critic) { return critic.train(batch(3), "t3"); }},
      {"s2", [](Critic& critic) { return critic.save(2, "s2"); }},
      {"t4", [](Critic& critic) { return critic.train(batch(4), "t4"); }},
      {"r1", [](Critic& critic) { return critic.restore(1, "r1"); }},
      {"t5", [](Critic& critic) { return critic.train(batch(5), "t5"); }},
      {"s3", [](Critic& critic) { return critic.save(3, "s3"); }},
      {"r0", [](Critic& critic) { return critic.restore(0, "r0"); }},
      {"t6", [](Critic& critic) { return critic.train(batch(6), "t6"); }},
  };
  for (const auto& [name, call] : calls) {
    const CriticResult result = call(*toy.critic);
    const State state(toy);
    const Copy copy(temp.path());
    Toy again(judge, copy.path());
    expect_same(again, state, name);
    const CriticResult repeated = call(*again.critic);
    EXPECT_EQ(repeated.loss, result.loss) << name;
    EXPECT_EQ(repeated.train_calls, result.train_calls) << name;
    expect_same(again, state, name + " repeated");
  }
}

TEST(Critic, ARestoreGivesTheLossOfTheSave) {
  const JudgeFolder judge;
  const TempFolder temp;
  std::optional<double> first;
  {
    Toy toy(judge, temp.path());
    first = toy->train(batch(1), "").loss;
    toy->save(1, "");
    toy->train(batch(2), "");
    toy->save(2, "");
  }
  Toy again(judge, temp.path());
  EXPECT_EQ(again->restore(1, "").loss, first);
  EXPECT_FALSE(again->restore(0, "").loss) << "nothing was trained";
}

TEST(Critic, ATornJournalIsACallThatDidNotHappen) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  toy->train(batch(1), "t1");
  const State before(toy);
  const std::string whole = read_text(temp / "journals/journal-0");
  const CriticResult result = toy->train(batch(2), "t2");
  const State after(toy);
  const std::string more = read_text(temp / "journals/journal-0");
  for (const size_t cut : {whole.size() + 1, whole.size() + 16, (whole.size() + more.size()) / 2, more.size() - 1}) {
    const Copy copy(temp.path());
    copy.file("journals/journal-0", more.substr(0, cut));
    Toy again(judge, copy.path());
    expect_same(again, before, std::to_string(cut));
    EXPECT_EQ(again->train(batch(2), "t2").loss, result.loss);  // the caller, who got no answer, sends it again
    expect_same(again, after, std::to_string(cut));
  }
}

TEST(Critic, ACallIsMadeOnceHoweverOftenItIsSent) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  const CriticResult first = toy->train(batch(1), "a");
  const State state(toy);
  EXPECT_EQ(toy->train(batch(1), "a").loss, first.loss);
  EXPECT_EQ(toy->train(batch(2), "a").loss, first.loss);  // the key counts
  expect_same(toy, state, "repeated");
  EXPECT_EQ(toy->train(batch(1), "").train_calls, 2);
  EXPECT_EQ(toy->train(batch(1), "").train_calls, 3);  // without a key, each is another call
}

TEST(Critic, SixtyFourKeysAreRemembered) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  const CriticBatch one = toy_critic_batch(1, 4, 1);
  for (int i = 0; i < 65; ++i) toy->train(one, "key " + std::to_string(i));
  EXPECT_EQ(toy->train(one, "key 1").train_calls, 2);   // the oldest that is known
  EXPECT_EQ(toy->train(one, "key 0").train_calls, 66);  // forgotten: made again
}

// An actor whose save of step 10 failed and who is killed in that of step 15 goes back to 5.
TEST(Critic, CheckpointsAreNamedByTheirStepAndThreeAreKept) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  toy->train(batch(1), "");
  toy->save(1, "");
  EXPECT_EQ(names_in(temp / "checkpoints"), (std::vector<std::string>{"megatron_gpt-step=2-last"}));
  toy->save(2, "");  // nothing was trained in between
  toy->save(2, "");  // the same again pushes nothing out
  EXPECT_EQ(names_in(temp / "checkpoints"), (std::vector<std::string>{"megatron_gpt-step=2-last", "megatron_gpt-step=2-v1-last"}));
  toy->train(batch(2), "");
  toy->save(std::nullopt, "");
  EXPECT_EQ(names_in(temp / "checkpoints"),
            (std::vector<std::string>{"megatron_gpt-step=2-last", "megatron_gpt-step=2-v1-last", "megatron_gpt-step=4-last"}));
  toy->save(4, "");
  EXPECT_EQ(names_in(temp / "checkpoints"),
            (std::vector<std::string>{"megatron_gpt-step=2-v1-last", "megatron_gpt-step=4-last", "megatron_gpt-step=4-v1-last"}));
  EXPECT_EQ(names_in(temp / "journals"), (std::vector<std::string>{"journal-2", "journal-3", "journal-4"}));
  EXPECT_TRUE(is_file(temp / "checkpoints/megatron_gpt-step=4-last/model/config.json"));
}

TEST(Critic, RestoringGoesBackToALabel) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  const State beginning(toy);
  toy->train(batch(1), "t1");
  toy->save(5, "");
  const State saved(toy);
  const CriticResult later = toy->train(batch(2), "t2");
  toy->save(6, "");
  toy->train(batch(3), "t3");
  EXPECT_EQ(toy->restore(5, "").train_calls, 1);
  expect_same(toy, saved, "5");
  // What came later is gone, its keys as well: an actor that goes on from there sends the same calls again.
  EXPECT_EQ(toy->train(batch(2), "t2").loss, later.loss);
  EXPECT_EQ(toy->train_calls(), 2);
  EXPECT_EQ(error_of<RequestError>([&] { return toy->restore(6, ""); }), "no checkpoint of actor_step 6; there are 5 and 0, the start");
  toy->restore(0, "");
  expect_same(toy, beginning, "0");
  EXPECT_EQ(error_of<RequestError>([&] { return toy->restore(5, ""); }), "no checkpoint of actor_step 5; there are only 0, the start");
  toy->save(0, "");
  toy->train(batch(1), "");
  toy->restore(0, "");
  expect_same(toy, beginning, "a label 0");
}

TEST(Critic, ADamagedCheckpointIsNotGoneBackToAndItsCallsAreMadeAgain) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  toy->train(batch(1), "");
  toy->save(5, "");
  toy->train(batch(2), "");
  toy->save(6, "");
  toy->train(batch(3), "");
  const State before(toy);
  const Path file = temp / "checkpoints/megatron_gpt-step=4-last/state/state.safetensors";
  std::string bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_atomic(file, bytes);
  EXPECT_THAT(error_of<RequestError>([&] { return toy->restore(6, ""); }),
              ::testing::AllOf(HasSubstr("the checkpoint of actor_step 6 is damaged: "),
                               HasSubstr("state/state.safetensors: its bytes are not those that were saved")));
  expect_same(toy, before, "refused");
  const Copy copy(temp.path());
  expect_same(Toy(judge, copy.path()), before, "from the checkpoint before it");
  EXPECT_EQ(toy->restore(5, "").train_calls, 1);
}

// Its log is cut back only when the return is on disk: the folder is then good to start from.
TEST(Critic, AReturnThatCannotBeWrittenChangesNothing) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  toy->train(batch(1), "");
  toy->save(5, "");
  toy->train(batch(2), "");
  toy->save(6, "");
  toy->train(batch(3), "");
  const State before(toy);
  // Where the new journal would be, so that it cannot be written, whoever the user is.
  fs::create_directory(temp / "journals/journal-3");
  EXPECT_ANY_THROW(toy->restore(5, ""));
  fs::remove(temp / "journals/journal-3");
  expect_same(toy, before, "now");
  const Copy copy(temp.path());
  expect_same(Toy(judge, copy.path()), before, "restarted");
  EXPECT_EQ(toy->restore(5, "").train_calls, 1);
}

TEST(Critic, ALogThatWasChangedIsNoReasonNotToStart) {
  const JudgeFolder judge;
  const TempFolder temp;
  std::optional<State> before;
  {
    Toy toy(judge, temp.path());
    toy->train(batch(1), "");
    toy->save(5, "");
    before.emplace(toy);
  }
  write_atomic(temp / "metrics.jsonl", "");
  expect_same(Toy(judge, temp.path()), *before, "without its numbers");
}

// The newest call failed in torch, and the process was killed before it was taken back.
TEST(Critic, ANewestCallThatFailsOtherwiseIsTakenBackAsWell) {
  const JudgeFolder judge;
  const TempFolder temp;
  std::optional<State> before;
  CriticBatch wrong = batch(2);
  wrong.tokens[0] = 100000;  // no such id
  {
    Toy toy(judge, temp.path());
    const std::string start = start_print(toy->model().model());
    toy->train(batch(1), "");
    before.emplace(toy);
    CallHistory(temp.path(), "megatron_gpt-{step}").append(to_bytes({"wrong", toy->model().settings(), start, wrong}));
  }
  for (const char* start : {"first", "second"}) expect_same(Toy(judge, temp.path()), *before, start);
}

TEST(Critic, ManyCallsWithoutASaveAreWarnedOf) {
  const JudgeFolder judge;
  const TempFolder temp, logs;
  MetricsLog log{true};
  Critic critic({temp.path(), [&] { return testing::toy_critic(judge); }, log, 2});
  set_log_file((logs / "log").string());
  for (int i = 0; i < 5; ++i) critic.train(toy_critic_batch(1, 4, 1), "");
  set_log_file("");
  const std::string text = read_text(logs / "log");
  EXPECT_THAT(text, HasSubstr("2 training calls without a critic_save"));
  EXPECT_THAT(text, HasSubstr("4 training calls without a critic_save"));
  EXPECT_EQ(text.find("3 training calls without"), std::string::npos);
}

// A call that fails has no effect, neither now nor after a restart.
TEST(Critic, ACallForACriticThatHasGoneBackIsRefused) {
  const JudgeFolder judge;
  const TempFolder temp;
  const Toy toy(judge, temp.path());
  (void)toy->train(batch(1), "a", 0);
  (void)toy->save(1, "s");
  (void)toy->train(batch(2), "b", 1);
  (void)toy->restore(1, "r");
  const State before(toy);
  EXPECT_EQ(error_of<RequestError>([&] { (void)toy->train(batch(3), "late", 2); }),
            "the call expects a critic after 2 training calls, but this one has had 1");
  expect_same(toy, before, "refused");
  EXPECT_EQ(toy->train(batch(1), "a", 0).train_calls, 1);  // known by its key, it is answered as the first time
  EXPECT_EQ(toy->train(batch(4), "c", 1).train_calls, 2);
}

TEST(Critic, ACallThatFailsChangesNothing) {
  const JudgeFolder judge;
  const TempFolder temp;
  CriticOptions options = testing::toy_critic_options();
  options.update.max_skipped_updates = 0;
  Toy toy(judge, temp.path(), options);
  toy->train(batch(1), "t1");
  const State state(toy);
  CriticBatch bad = batch(2);
  bad.returns.back() = bad.returns[bad.returns.size() - 8] = 3e38F;  // in the second update: its gradient is infinite
  bad.mask.assign(bad.mask.size(), 1.0F);
  EXPECT_THAT(error_of<Error>([&] { return toy->train(bad, "bad"); }), HasSubstr("not finite"));
  expect_same(toy, state, "now");
  {
    const Copy copy(temp.path());
    expect_same(Toy(judge, copy.path(), options), state, "restarted");
  }
  toy->train(batch(3), "t3");
  const State after(toy);
  const Copy copy(temp.path());
  expect_same(Toy(judge, copy.path(), options), after, "later");
}

// Where even that cannot be written down, it does not go on with weights that no start would find again.
TEST(Critic, AFailureThatCannotBeTakenBackEndsIt) {
  const JudgeFolder judge;
  const TempFolder temp;
  CriticOptions options = testing::toy_critic_options();
  options.update.max_skipped_updates = 0;
  Toy toy(judge, temp.path(), options);
  const State beginning(toy);
  const CriticBatch bad{1, 2, {1, 2}, {3e38F}, {0}, {1}};
  const int64_t call = static_cast<int64_t>(to_bytes({"bad", toy->model().settings(), start_print(toy->model().model()), bad}).size()) + 17;
  {
    const testing::FileSizeLimit limit(fs::file_size(temp / "journals/journal-0") + static_cast<size_t>(call));
    EXPECT_THAT(error_of<Error>([&] { return toy->train(bad, "bad"); }), HasSubstr("cannot be written"));
  }
  EXPECT_THAT(error_of<Error>([&] { return toy->train(batch(1), ""); }), HasSubstr("restart it"));
  EXPECT_THAT(error_of<Error>([&] { return toy->save(1, ""); }), HasSubstr("restart it"));
  EXPECT_THAT(error_of<Error>([&] { return toy->restore(0, ""); }), HasSubstr("restart it"));
  EXPECT_THAT(error_of<Error>([&] { return toy->values(std::vector<TokenIds>{{1}}); }), HasSubstr("restart it"));
  // Started again, it takes the call back.
  const Copy copy(temp.path());
  for (const char* start : {"first", "second"}) {
    Toy again(judge, copy.path(), options);
    expect_same(again, beginning, start);
  }
}

TEST(Critic, CallsThatAreMadeAgainWithOtherSettingsAreWarnedOf) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy(judge, temp.path())->train(batch(1), "");
  const auto log_of_start = [&](double lr) {
    CriticOptions options = testing::toy_critic_options();
    options.optim.lr = lr;
    const TempFolder logs;
    set_log_file((logs / "log").string());
    { const Toy again(judge, temp.path(), options); }
    set_log_file("");
    return read_text(logs / "log");
  };
  EXPECT_EQ(log_of_start(testing::toy_critic_options().optim.lr).find("training settings have changed"), std::string::npos);
  EXPECT_THAT(log_of_start(1e-4), HasSubstr("training settings have changed"));
}

// Rewards stay those of the folder, wherever the critic goes.
TEST(Critic, RewardsSurviveRestartsReturnsAndFailures) {
  const JudgeFolder judge;
  const auto rows = testing::rows_of({3, 9, 1}, 256);
  const Tensor wanted = RewardScorer(*judge.load(), {.max_tokens = 20}).score(rows);
  for (const ReferenceKind kind : {ReferenceKind::resident, ReferenceKind::swapped}) {
    const TempFolder temp;
    CriticOptions options = testing::toy_rewarding_options(kind);
    options.update.max_skipped_updates = 0;
    Toy toy(judge, temp.path(), options);
    const auto expect_rewards = [&](const Toy& of, const std::string& where) {
      EXPECT_TRUE(same_bits(of->rewards(rows), wanted)) << where;
    };
    expect_rewards(toy, "start");
    toy->train(batch(1), "");
    toy->save(1, "");
    toy->train(batch(2), "");
    expect_rewards(toy, "trained");
    {
      const Copy copy(temp.path());
      const Toy again(judge, copy.path(), options);
      expect_same(again, State(toy), "restarted");
      expect_rewards(again, "restarted");
    }
    toy->restore(1, "");
    expect_rewards(toy, "back");
    toy->restore(0, "");
    expect_rewards(toy, "at the beginning");
    static_cast<void>(error_of<Error>([&] { return toy->train({1, 2, {1, 2}, {3e38F}, {0}, {1}}, ""); }));
    expect_rewards(toy, "after a failure");
  }
}

// A folder whose weights are a little different.
void change_weights(const JudgeFolder& judge) {
  const auto model = judge.load();
  {
    const NoGrad no_grad;
    model->score_head().weight.mul_(1.5);
  }
  save_model(*model, judge.path());
}

TEST(Critic, WhatBeganWithOtherWeightsIsNotGoneOnWith) {
  const JudgeFolder judge, other;
  change_weights(other);
  const auto refusal = [&](const Path& folder) { return error_of([&] { const Toy toy(other, folder); }); };
  const TempFolder untouched, trained, saved, returned;
  { const Toy toy(judge, untouched.path()); }
  { const Toy toy(other, untouched.path()); }  // nothing was done with it yet
  Toy(judge, trained.path())->train(batch(1), "");
  EXPECT_EQ(refusal(trained.path()), "pretrained_checkpoint.restore_from_path: not the model that the critic in " +
                                         trained.path().string() +
                                         " started from: its weights, its config.json or the seed of new weights differ. Use the original "
                                         "model, or start from scratch in another exp_manager.explicit_log_dir");
  Toy(judge, saved.path())->save(1, "");
  EXPECT_THAT(refusal(saved.path()), HasSubstr("not the model that the critic in"));
  {
    Toy toy(judge, returned.path());
    toy->train(batch(1), "");
    toy->restore(0, "");
  }
  { const Toy toy(other, returned.path()); }
  const Toy still(judge, trained.path());
  EXPECT_EQ(still->train_calls(), 1) << "a refusal harms nothing";
}

TEST(Critic, AFolderThatChangesBelowItIsNoticed) {
  const JudgeFolder judge;
  const TempFolder temp;
  Toy toy(judge, temp.path());
  toy->train(batch(1), "");
  change_weights(judge);
  EXPECT_THAT(error_of([&] { return toy->restore(0, ""); }), HasSubstr("not the model that the critic in"));
  EXPECT_THAT(error_of<Error>([&] { return toy->values(std::vector<TokenIds>{{1}}); }), HasSubstr("restart it"));
}

TEST(Critic, NumbersOfUpdatesAreLoggedOnceInTheirOrder) {
  const JudgeFolder judge;
  const TempFolder temp;
  {
    Toy toy(judge, temp.path());
    toy->train(batch(1), "");
    toy->save(1, "");
    toy->train(batch(2), "");
    toy->train(batch(3), "");
  }
  {
    Toy again(judge, temp.path());  // makes two calls again
    again->train(batch(4), "");
    again.log.flush();
  }
  std::vector<int64_t> steps;
  const std::string log = read_text(temp / "metrics.jsonl");
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = log.find('\n', begin);
    steps.push_back(Json::parse(log.substr(begin, end - begin)).at("step", "log").as_integer("step"));
    begin = end + 1;
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace kedge
