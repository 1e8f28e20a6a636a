// Steps that are launched before the tokens of the one before are read. On a CPU nothing runs beside them, but the engine goes through the
// same motions, and rows do not depend on their neighbours: text and log-probabilities have the same bits.
#include <gtest/gtest.h>

#include <cmath>

#include "kedge/engine/engine.h"

#include "tests/support/generation.h"
#include "tests/support/ragged_requests.h"

namespace kedge {
namespace {

using testing::count_ended;
using testing::expect_same;
using testing::Heard;
using testing::kFamilies;
using testing::kTinyLlama;
using testing::listen;
using testing::long_model;
using testing::ragged_requests;

constexpr bool kAhead = true, kAfter = false;

EngineConfig config_of(bool ahead, const SchedulerConfig& scheduler = {}, const std::string& memory = "64MiB") {
  return {.memory = memory, .scheduler = scheduler, .step_ahead_on_cpu = ahead};
}

Heard heard_from(const Model& model, const EngineConfig& config, std::vector<GenerateRequest> requests) {
  Engine engine(model, config);
  return listen(engine, std::move(requests));
}

TEST(StepAhead, EverySampleIsTheSameInEveryFamily) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const auto model = long_model(family, {});
    const Heard wanted = heard_from(*model, config_of(kAfter), ragged_requests(40));
    EXPECT_GT(count_ended(wanted, Finish::end), 10);
    EXPECT_GT(count_ended(wanted, Finish::length), 10);
    const Heard found = heard_from(*model, config_of(kAhead), ragged_requests(40));
    expect_same(found, wanted, 0);
    EXPECT_GT(found.stats.num_computed, wanted.stats.num_computed) << "nothing was computed ahead";
  }
}

TEST(StepAhead, EverySampleIsTheSameWhereSomeWaitOrPromptsComeInPieces) {
  const auto model = long_model(kTinyLlama, {});
  const Heard wanted = heard_from(*model, config_of(kAfter), ragged_requests(30));
  for (const SchedulerConfig& scheduler : {SchedulerConfig{.max_running = 1},
                                           {.max_running = 3},
                                           {.max_batch_tokens = 1},
                                           {.max_batch_tokens = 7},
                                           {.max_batch_tokens = 50, .max_running = 9}})
    expect_same(heard_from(*model, config_of(kAhead, scheduler), ragged_requests(30)), wanted, 0);
  const int64_t block = 2 * model->config().num_layers * model->config().kv_size() * 64 * 4;
  for (const int64_t blocks : {4, 6, 9}) {
    const Heard found = heard_from(*model, config_of(kAhead, {}, std::to_string(blocks * block)), ragged_requests(30));
    expect_same(found, wanted, 0);
    EXPECT_GT(found.stats.num_preempted, 0);
  }
}

TEST(StepAhead, OnlyTheTokensPastAnEndAreComputedInVain) {
  const auto model = long_model(kTinyLlama, {});
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < 6; ++i) {
    requests.push_back(testing::greedy_request(testing::prompts_of({5})[0], 20));
    requests.back().key.prompt = i;
  }
  // Ends by length are known in advance.
  EXPECT_EQ(heard_from(*model, config_of(kAhead), requests).stats.num_computed, 6 * (5 + 19));
  for (size_t i : {2, 3}) requests[i].ends = [](std::span<const int32_t> response) { return response.size() == 8; };
  const Heard found = heard_from(*model, config_of(kAhead), requests);
  EXPECT_EQ(found.stats.num_computed, 4 * (5 + 19) + 2 * (5 + 7) + 2);
  EXPECT_EQ(found.stats.num_drawn, 4 * 20 + 2 * 8);
}

// A third of the ids end a response: nearly every step holds rows past their end.
TEST(StepAhead, ManyEndsLoseNothing) {
  const auto model = long_model(kTinyLlama, {});
  const auto requests = testing::short_requests(100);
  const Heard wanted = heard_from(*model, config_of(kAfter), requests);
  EXPECT_GT(count_ended(wanted, Finish::end), 150);
  for (const int64_t max_running : {5, 64, 256})
    expect_same(heard_from(*model, config_of(kAhead, {.max_running = max_running}), requests), wanted, 0);
}

// A token that was not sampled is read as some id; what comes of it is dropped.
TEST(StepAhead, FailuresAreReportedAsTheyAre) {
  const auto model = long_model(kTinyLlama, {});
  {
    const NoGrad no_grad;  // whoever reads token 7 gets no numbers
    model->parameters().value(model->places().embedding).select(0, 7).fill_(std::nanf(""));
  }
  const Heard wanted = heard_from(*model, config_of(kAfter), ragged_requests(40));
  EXPECT_GT(count_ended(wanted, Finish::failed), 10);
  for (const int64_t max_running : {3, 64})
    expect_same(heard_from(*model, config_of(kAhead, {.max_running = max_running}), ragged_requests(40)), wanted, 0);
}

TEST(StepAhead, ListenersMaySubmit) {
  const auto model = long_model(kTinyLlama, {});
  const auto again = [](const GenerateRequest& request) -> std::optional<GenerateRequest> {
    if (request.key.prompt >= 200) return std::nullopt;
    GenerateRequest next = request;
    next.key.prompt += 100;
    return next;
  };
  const auto run = [&](bool ahead, int64_t max_running) {
    Engine engine(*model, config_of(ahead, {.max_running = max_running}));
    return listen(engine, ragged_requests(12), again);
  };
  const Heard wanted = run(kAfter, 64);
  EXPECT_EQ(wanted.ended.size(), 3 * heard_from(*model, config_of(kAfter), ragged_requests(12)).ended.size());
  for (const int64_t max_running : {2, 64}) expect_same(run(kAhead, max_running), wanted, 0);
}

TEST(StepAhead, APenaltyWaitsForItsTokens) {
  const auto model = long_model(kTinyLlama, {});
  auto requests = ragged_requests(20);
  for (GenerateRequest& request : requests) request.sampling.repetition_penalty = 1.3;
  Heard wanted = heard_from(*model, config_of(kAfter), requests), found = heard_from(*model, config_of(kAhead), requests);
  expect_same(found, wanted, 0);
  EXPECT_EQ(found.stats.num_computed, wanted.stats.num_computed);
  // One that comes and goes among others.
  for (size_t i = 0; i < requests.size(); ++i)
    if (i != 4) requests[i].sampling.repetition_penalty = 1;
  wanted = heard_from(*model, config_of(kAfter), requests);
  for (const int64_t max_running : {2, 64}) {
    found = heard_from(*model, config_of(kAhead, {.max_running = max_running}), requests);
    expect_same(found, wanted, 0);
    EXPECT_GT(found.stats.num_computed, wanted.stats.num_computed);
  }
}

// Every response ends at a token, so that the last step of all is computed in vain.
TEST(StepAhead, NothingIsUnderWayWhenTheLastHasEnded) {
  const auto model = long_model(kTinyLlama, {});
  auto requests = ragged_requests(8);
  for (GenerateRequest& request : requests) request.max_new = 100, request.ends = [](auto response) { return response.size() == 7; };
  Engine engine(*model, config_of(kAhead));
  const Heard first = listen(engine, requests);
  // The next step is that of the next request.
  int64_t heard = 0;
  static_cast<void>(engine.submit(testing::greedy_request({1, 2}, 1)));
  engine.step({[&](int64_t, int64_t, int32_t) { ++heard; }, [](const Completion&) {}});
  EXPECT_EQ(heard, 1);
  EXPECT_TRUE(engine.idle());
  engine.release();
  EXPECT_EQ(engine.memory_bytes(), 0);
  const Heard second = listen(engine, requests);
  expect_same(second, first, 0);
  // Other weights are seen from the first token on.
  testing::scatter_weights(model->parameters(), 900, 0.2);
  const Heard third = listen(engine, requests);
  expect_same(third, heard_from(*model, config_of(kAfter), requests), 0);
  EXPECT_NE(third.tokens, first.tokens);
}

TEST(StepAhead, AnEngineMayGoWithAStepUnderWay) {
  const auto model = long_model(kTinyLlama, {});
  Engine engine(*model, config_of(kAhead));
  static_cast<void>(engine.submit(testing::greedy_request({1, 2}, 50)));
  int64_t heard = 0;
  for (int i = 0; i < 5; ++i) engine.step({[&](int64_t, int64_t, int32_t) { ++heard; }, [](const Completion&) {}});
  EXPECT_EQ(heard, 5);
  EXPECT_FALSE(engine.idle());
}

}  // namespace
}  // namespace kedge
